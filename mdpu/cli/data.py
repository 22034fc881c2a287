"""Rules of the workflow that prepare data: images, labels, splits.

Imports are made inside the commands, so that a command loads only what it needs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from mdpu.cli.common import Configs, Images, Labels, Mirror, Out, Prior, TupleSize, app, load_plan
from mdpu.errors import UserError

PANEL = "Rules: images, labels, splits"


@app.command(rich_help_panel=PANEL)
def dataset(
    source: Annotated[str, typer.Argument(help="Source of images: a name, e.g. mnist, or a path to your own.")],
    config: Configs,
    out: Out,
    mirror: Mirror = None,
) -> None:
    """Fetch and verify a source; write its images, with a description (.json) beside them.

    Raw downloads go to the configuration's `data_dir`, and are taken from there when they are whole.
    """
    from mdpu.data.images import write_images
    from mdpu.data.sources import load_source

    started = time.perf_counter()
    chosen = load_plan(config)
    images, checksums = load_source(source, chosen.layout.data_dir, chosen.config.get("mirror") or mirror, out.parent)
    write_images(images, out, started, checksums)


@app.command(rich_help_panel=PANEL)
def fetch(config: Configs, mirror: Mirror = None) -> None:
    """Fetch and verify the raw files of every selected dataset ahead, e.g. where only the login node has a network."""
    from mdpu.data.sources import SOURCES
    from mdpu.data.sources.download import fetch

    chosen = load_plan(config)
    failures = []
    for source in sorted({chosen.dataset(name)["source"] for name in chosen.datasets} & set(SOURCES)):
        try:
            files = fetch(SOURCES[source].archives(), chosen.layout.data_dir, chosen.config.get("mirror") or mirror)
        except UserError as error:
            failures.append(f"{source}: {error}")
        else:
            print(f"{source}: {len(files)} files there and verified", file=sys.stderr)
    if failures:
        raise UserError("\n".join(failures))


@app.command(rich_help_panel=PANEL)
def labels(
    config: Configs,
    dataset: Annotated[str, typer.Option(help="Dataset of the configuration.")],
    images: Images,
    out: Out,
) -> None:
    """Binarize class ids to +1 and -1; write the labels, with counts (.json) beside them."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import binarize, check_counts, count_sides, write_labels
    from mdpu.files import provenance, write_json

    started = time.perf_counter()
    definition = load_plan(config).dataset(dataset)
    where = f"config key definitions.datasets.{dataset}"
    found = binarize(
        read_images(images), definition["positive"], definition["negative"], definition.get("dropped", ()), where
    )
    counts = count_sides(found)
    check_counts(counts, definition.get("counts", {}), f"{where}.counts")
    write_labels(found, out)
    write_json(out.with_suffix(".json"), {"counts": counts, "provenance": provenance(started, [images])})


@app.command(rich_help_panel=PANEL)
def sheet(
    images: Images,
    labels: Labels,
    positive: Annotated[Path, typer.Option(metavar="FILE", help="PNG of positive images to write.")],
    negative: Annotated[Path, typer.Option(metavar="FILE", help="PNG of negative images to write.")],
) -> None:
    """Draw a contact sheet of each side."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import read_labels
    from mdpu.files import replacing
    from mdpu.report.sheet import contact_sheet

    image_set, sides = read_images(images), read_labels(labels)
    for sign, path in ((1, positive), (-1, negative)):
        with replacing(path) as temporary:
            contact_sheet(image_set, sides, sign).save(temporary)


@app.command(rich_help_panel=PANEL)
def split(
    labels: Labels,
    tuple_size: TupleSize,
    prior: Prior,
    n: Annotated[int, typer.Option("--n", help="Number of tuples.")],
    n_unlabeled: Annotated[int, typer.Option(help="Number of unlabeled images.")],
    trial: Annotated[
        str, typer.Option(help="Name of the trial, e.g. mnist/m2/n10000/prior0.5/seed1: every random number follows.")
    ],
    out: Out,
    replacement: Annotated[bool, typer.Option(help="Draw with replacement.")] = True,
    overlap: Annotated[bool, typer.Option(help="Let tuples and unlabeled images share images.")] = True,
) -> None:
    """Draw the tuples and the unlabeled images of one trial; write how well they follow the law beside them (.json)."""
    from mdpu.data.diagnostics import diagnose
    from mdpu.data.labels import read_labels
    from mdpu.data.splits import draw_split, write_split
    from mdpu.files import provenance, write_json

    started = time.perf_counter()
    train = read_labels(labels)["train"]
    drawn = draw_split(train, tuple_size, prior, n, n_unlabeled, trial, replacement, overlap)
    write_split(drawn, out)
    diagnostics = diagnose(drawn, train, tuple_size, prior)
    write_json(out.with_suffix(".json"), {**diagnostics, "provenance": provenance(started, [labels])})
