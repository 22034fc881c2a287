"""Croissant 1.1 metadata of what a configuration learns from: a file for each source of images and each set of splits.

Croissant is MLCommons' format for datasets (http://mlcommons.org/croissant/1.1), which search engines and loaders read.
The images themselves are not passed on: the metadata names the publisher's files, and the arrays made of them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mdpu import __version__
from mdpu.errors import UserError
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.data.sources import SOURCES, list_archives
from mdpu.pipeline.files import read_json, write_json
from mdpu.pipeline.plan import DOMINANT, Plan

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
PAPER = (
    "mdpu",
    2025,
    ("Jiahe Qin", "Junpeng Li", "Changchun Hua", "Yana Yang"),
    "Learning from M-tuple dominant positive and unlabeled data",
    "arXiv:2506.15686",
)
# Page, year, authors, title and place of the publication, by the first word of a source's name.
PUBLISHED: Mapping[str, tuple[str, int, Sequence[str], str, str]] = {
    "mnist": (
        "http://yann.lecun.com/exdb/mnist/",
        1998,
        ("Yann LeCun", "Léon Bottou", "Yoshua Bengio", "Patrick Haffner"),
        "Gradient-based learning applied to document recognition",
        "Proceedings of the IEEE 86(11)",
    ),
    "fashion": (
        "https://github.com/zalandoresearch/fashion-mnist",
        2017,
        ("Han Xiao", "Kashif Rasul", "Roland Vollgraf"),
        "Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms",
        "arXiv:1708.07747",
    ),
    "emnist": (
        "https://www.nist.gov/itl/products-and-services/emnist-dataset",
        2017,
        ("Gregory Cohen", "Saeed Afshar", "Jonathan Tapson", "André van Schaik"),
        "EMNIST: an extension of MNIST to handwritten letters",
        "arXiv:1702.05373",
    ),
    "cifar": (
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        2009,
        ("Alex Krizhevsky",),
        "Learning multiple layers of features from tiny images",
        "Technical report, University of Toronto",
    ),
    "svhn": (
        "http://ufldl.stanford.edu/housenumbers/",
        2011,
        ("Yuval Netzer", "Tao Wang", "Adam Coates", "Alessandro Bissacco", "Bo Wu", "Andrew Y. Ng"),
        "Reading digits in natural images with unsupervised feature learning",
        "NIPS Workshop on Deep Learning and Unsupervised Feature Learning",
    ),
    "digits": (
        "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
        1998,
        ("Ethem Alpaydin", "Cenk Kaynak"),
        "Optical recognition of handwritten digits",
        "UCI Machine Learning Repository, doi:10.24432/C50P49",
    ),
}


def write_croissant(plan: Plan, folder: Path) -> list[Path]:
    """Write ``<source>.json`` and ``splits-<dataset>.json`` for the datasets of a plan; return their paths.

    Raises
    ------
    UserError
        If images have not been made yet. Splits of runs that were reused need not be there.
    """
    written = []
    for dataset in plan.datasets:
        images, source = plan.layout.images(dataset), plan.dataset(dataset)["source"]
        splits = {name: plan.layout.split(name) for name in plan.splits if name.split("/")[0] == dataset}
        if not images.exists():
            raise UserError(f"{images} is not there yet; run the workflow with this configuration first")
        name = f"own-{dataset}" if is_path(source) else source
        for called, node in (
            (name, describe_source(name, images, folder)),
            (f"splits-{dataset}", describe_splits(dataset, plan.dataset(dataset), splits, images, folder)),
        ):
            written.append(folder / f"{called}.json")
            write_json(written[-1], node)
    return list(dict.fromkeys(written))


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
    text = "uint8 arrays `train_images` and `test_images` (N, H, W) or (N, H, W, C); `train_labels` and `test_labels`"
    files.append(_local(images, folder, description=f"{text}, int64 (N,), positions in the classes."))
    parts = [{"parts/name": part, "parts/images": known[part]} for part in ("train", "test")]
    classes = [{"classes/id": number, "classes/name": text} for number, text in enumerate(known["classes"])]
    node = _dataset(
        name,
        f"{known['origin']}. Images of {' x '.join(map(str, known['shape']))} in {len(classes)} classes.",
        SPDX.get(known["licence"], known["licence"]),
        files,
        [
            _records("parts", {"name": "Text", "images": "Integer"}, parts, dataType="cr:Split"),
            _records("classes", {"id": "Integer", "name": "Text"}, classes, dataType="sc:Enumeration"),
        ],
    )
    if (first := name.partition("-")[0]) in PUBLISHED:
        url, year, authors, title, place = PUBLISHED[first]
        node |= {
            "url": url,
            "datePublished": f"{year}",
            "creator": [{"@type": "sc:Person", "name": author} for author in authors],
            "citeAs": _cited(first, year, authors, title, place),
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
        [
            _records("trials", fields, trials),
            _records("sides", {"class": "Text", "side": "Integer"}, sides),
        ],
    )
    drawn = datetime.fromtimestamp(max(path.stat().st_mtime for path in (images, *there.values())), UTC)
    node["creator"] = [{"@type": "sc:Organization", "name": "The MDPU reproduction authors"}]
    return node | {"datePublished": drawn.date().isoformat(), "citeAs": _cited(*PAPER)}


def _cited(key: str, year: int, authors: Sequence[str], title: str, place: str) -> str:
    """Return a publication as BibTeX."""
    facts = {"author": " and ".join(authors), "title": title, "howpublished": place, "year": str(year)}
    return f"@misc{{{key}{year}, {', '.join(f'{name} = {{{fact}}}' for name, fact in facts.items())}}}"


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
    with path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    address = Path(os.path.relpath(path, folder)).as_posix()
    size = f"{path.stat().st_size} B"
    return _file(name or path.name, address, "application/x-npz", sha256=sha256, contentSize=size, **facts)


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
    """Return what the name of a split says, such as some/base/m2/prior0.5/n60/seed1 or, of another law, m2-similar."""
    found = re.search(r"/m(\d+)(?:-([^/]+))?/prior([\d.]+)/n(\d+)/seed(\d+)", name)
    assert found is not None, name
    size, law, prior, n, seed = found.groups()
    facts = {"name": name, "law": law or DOMINANT, "tuple_size": int(size), "prior": float(prior)}
    return facts | {"n": int(n), "seed": int(seed)}
