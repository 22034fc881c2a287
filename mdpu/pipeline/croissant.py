"""Croissant 1.1 metadata of what a configuration learns from: a file for each source of images and each set of splits.

Croissant is MLCommons' format for datasets (http://mlcommons.org/croissant/1.1), which search engines and loaders read.
The images themselves are not passed on: the metadata names the publisher's files, and the arrays made of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from mdpu import __version__
from mdpu.errors import UserError
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.data.sources import SOURCES, list_archives
from mdpu.pipeline.files import read_json, resource, sha256, write_json
from mdpu.pipeline.plan import DOMINANT, Plan, run_of_split

Node = dict[str, Any]

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
TERMS = (
    "arrayShape citeAs column conformsTo containedIn extract field fileProperty fileObject fileSet format includes "
    "isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate "
    "separator source subField transform equivalentProperty"
)
CONTEXT: Node = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
}
SPDX = {"CC BY 4.0": "CC-BY-4.0", "CC BY-SA 3.0": "CC-BY-SA-3.0", "MIT": "MIT"}
FORMATS = {".gz": "application/gzip", ".mat": "application/x-matlab-data", ".zip": "application/zip"}
PUBLISHED: Mapping[str, Node] = yaml.safe_load(resource("mdpu/pipeline/publications.yaml").read_text(encoding="utf-8"))


def write_croissant(plan: Plan, folder: Path) -> list[Path]:
    """Write ``<source>.json`` and ``splits-<dataset>.json`` for the datasets of a plan; return their paths.

    Raises `UserError` if images have not been made yet. Splits of runs that were reused need not be there.
    """
    nodes: dict[Path, Node] = {}
    for dataset in plan.datasets:
        images, source = plan.layout.images(dataset), plan.dataset(dataset)["source"]
        splits = {name: plan.layout.split(name) for name in plan.splits if name.split("/")[0] == dataset}
        if not images.exists():
            raise UserError(f"{images} is not there yet; run the workflow with this configuration first")
        name = f"own-{dataset}" if is_path(source) else source
        nodes[folder / f"{name}.json"] = describe_source(name, images, folder)
        of_splits = describe_splits(dataset, plan.dataset(dataset), splits, images, folder)
        nodes[folder / f"splits-{dataset}.json"] = of_splits
    for path, node in nodes.items():
        write_json(path, node)
    return list(nodes)


def describe_source(name: str, images: Path, folder: Path) -> Node:
    """Return the metadata of a source: the publisher's files, the arrays made of them, classes and parts."""
    known = read_json(images.with_suffix(".json"))
    archives = list_archives(name) if name in SOURCES else []
    files = [
        _file(
            Path(archive.path).name,
            archive.urls[0],
            FORMATS.get(Path(archive.path).suffix, "application/octet-stream"),
            md5=archive.md5,
            **({"contentSize": f"{archive.size} B"} if archive.size else {}),
        )
        for archive in archives
    ]
    is_table, shape = len(known["shape"]) == 1, " x ".join(map(str, known["shape"]))
    form = ("float32", "(N, d), standardised") if is_table else ("uint8", "(N, H, W) or (N, H, W, C)")
    text = f"{form[0]} arrays `train_images` and `test_images` {form[1]}; `train_labels` and `test_labels`"
    files.append(_local(images, folder, description=f"{text}, int64 (N,), positions in the classes."))
    parts = [{"parts/name": part, "parts/images": known[part]} for part in ("train", "test")]
    classes = [{"classes/id": number, "classes/name": text} for number, text in enumerate(known["classes"])]
    node = _dataset(
        name,
        f"{known['origin']}. {'Rows' if is_table else 'Images'} of {shape} in {len(classes)} classes.",
        SPDX.get(known["licence"], known["licence"]),
        files,
        [
            _records("parts", {"name": "Text", "images": "Integer"}, parts, dataType="cr:Split"),
            _records("classes", {"id": "Integer", "name": "Text"}, classes, dataType="sc:Enumeration"),
        ],
    )
    if (first := name.partition("-")[0]) in PUBLISHED:
        node |= {
            "url": PUBLISHED[first]["url"],
            "datePublished": str(PUBLISHED[first]["year"]),
            "creator": [{"@type": "sc:Person", "name": author} for author in PUBLISHED[first]["authors"]],
            "citeAs": _cited(first),
        }
    return node


def describe_splits(
    dataset: str, definition: Mapping[str, Any], splits: Mapping[str, Path], images: Path, folder: Path
) -> Node:
    """Return the metadata of a dataset's trials: which images are drawn, and the side of each class."""
    known = read_json(images.with_suffix(".json"))
    text = "int64 arrays `tuples` (n, M) and `unlabeled` (n_unlabeled,): positions in `train_images`; no labels."
    there = {name: path for name, path in splits.items() if path.exists()}
    files = [_local(path, folder, name, description=text) for name, path in there.items()]
    trials = [{f"trials/{field}": value for field, value in _trial(name).items()} for name in splits]
    kinds = {str: "Text", int: "Integer", float: "Float"}
    fields = {field: kinds[type(value)] for field, value in _trial(next(iter(splits))).items()}
    sides = [
        {"sides/class": str(name), "sides/side": side}
        for key, side in (("positive", 1), ("negative", -1), ("dropped", 0))
        for name in definition.get(key) or []
    ]
    node = _dataset(
        f"splits-{dataset}",
        f"{len(splits)} draws of tuples, collected by the law of the trial, and of unlabeled images. By the law "
        f"`{DOMINANT}` at least half of the members are positive. "
        f"Drawn from the training images of {images.name}: {known['origin']}. {len(there)} of them are files here; "
        "the rule `split` draws any other.",
        "MIT",
        files,
        [_records("trials", fields, trials), _records("sides", {"class": "Text", "side": "Integer"}, sides)],
    )
    drawn = datetime.fromtimestamp(max(path.stat().st_mtime for path in (images, *there.values())), UTC)
    node["creator"] = [{"@type": "sc:Organization", "name": "The MDPU reproduction authors"}]
    return node | {"datePublished": drawn.date().isoformat(), "citeAs": _cited("mdpu")}


def _cited(key: str) -> str:
    """Return a publication as BibTeX."""
    found = PUBLISHED[key]
    facts = {"author": " and ".join(found["authors"]), "title": found["title"], "howpublished": found["place"]}
    fields = ", ".join(f"{name} = {{{fact}}}" for name, fact in {**facts, "year": found["year"]}.items())
    return f"@misc{{{key}{found['year']}, {fields}}}"


def _dataset(name: str, text: str, licence: str, files: Sequence[Node], records: Sequence[Node]) -> Node:
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": name,
        "description": text,
        "version": __version__,  # of the arrays and draws; publishers give none
        "license": f"https://spdx.org/licenses/{licence}.html" if licence in SPDX.values() else licence,
        "distribution": list(files),
        "recordSet": list(records),
    }


def _file(name: str, url: str, kind: str, **facts: str) -> Node:
    return {"@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": url, "encodingFormat": kind, **facts}


def _local(path: Path, folder: Path, name: str | None = None, **facts: str) -> Node:
    """Return the entry of a file of the results; its address is relative to the metadata."""
    address, size = Path(os.path.relpath(path, folder)).as_posix(), f"{path.stat().st_size} B"
    return _file(name or path.name, address, "application/x-npz", sha256=sha256(path), contentSize=size, **facts)


def _records(name: str, fields: Mapping[str, str], rows: Iterable[Node], **facts: str) -> Node:
    """Return a table whose rows stand in the metadata itself; its first field is the key."""
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "key": {"@id": f"{name}/{next(iter(fields))}"},
        "field": [
            {"@type": "cr:Field", "@id": f"{name}/{field}", "name": f"{name}/{field}", "dataType": f"sc:{kind}"}
            for field, kind in fields.items()
        ],
        "data": list(rows),
        **facts,
    }


def _trial(name: str) -> Node:
    """Return what the name of a split says."""
    run = run_of_split(name)
    facts = {"law": run.law, "tuple_size": run.tuple_size, "prior": float(run.prior), "n": run.n, "seed": run.seed}
    return {"name": name, **facts}
