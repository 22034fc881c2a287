"""What a configuration would take: runs to train and to reuse, files, space; and whether all files are to be had."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.filesize import decimal

from mdpu.errors import UserError
from mdpu.pipeline.cache import cache_of, content_of, fingerprint, read_packed, recipes_of, unfinished
from mdpu.pipeline.data.download import Archive, find_missing, list_absent
from mdpu.pipeline.data.sources import SOURCES, list_archives
from mdpu.pipeline.evaluate.verify import read_expected
from mdpu.pipeline.outcome import count
from mdpu.pipeline.plan import Plan, Run

EPOCH_BYTES = 600  # of a run's epoch in its finished run, in histories and in metrics
INDEX_BYTES = 8  # of an image in a split
PIXELS = {"resnet34": 32 * 32 * 3}  # of an image for a network; for another one 28 x 28


def check_files(plan: Plan, mirror: str | None) -> None:
    """Raise `UserError` if a plan needs files that are neither in ``data_dir`` nor to be had; nothing is downloaded.

    A line on standard error names each such file with its size, its checksum and its place. The same error says what is
    wrong with the table of expected numbers, which is compared with only at the end.
    """
    if plan.config.get("expected") and plan.runs:
        read_expected(Path(plan.config["expected"]))
    missing = once(find_missing(raw_files(plan), plan.layout.data_dir, mirror))
    if not missing:
        return
    print("missing files:", file=sys.stderr)
    for archive in missing:
        place = plan.layout.data_dir / archive.path
        print(f"  {place} ({size_of(archive.size)}, MD5 {archive.md5})", file=sys.stderr)
    why = f"the mirror {mirror} lacks them" if mirror else "their publishers do not answer"
    raise UserError(
        f"{count(len(missing), 'missing file')}, and {why}, so nothing was started; connect to the network, put them "
        "into their places, set the config key mirror (or MDPU_MIRROR) to a folder or server that has them, or select "
        "datasets that do without, as in --config 'datasets=[mnist]'"
    )


def raw_files(plan: Plan) -> Sequence[Archive]:
    """Return the publishers' files that a plan still needs: those of sources whose images are not made yet."""
    names = {plan.dataset(dataset)["source"] for dataset in plan.datasets if not plan.layout.images(dataset).exists()}
    return list(dict.fromkeys(archive for name in sorted(names & SOURCES.keys()) for archive in list_archives(name)))


def once(archives: Iterable[Archive]) -> list[Archive]:
    """Return archives in order of their paths; one that several sources share is one file."""
    by_path = {archive.path: archive for archive in archives}
    return [by_path[path] for path in sorted(by_path)]


def estimate(plan: Plan) -> list[str]:
    """Return lines that say what a configuration would take.

    Before images and labels are there, nobody knows which of their runs the cache has.
    """
    left = {run for runs in unfinished(plan).values() for run in runs}
    ahead = likely_shipped(plan, left)
    absent = once(list_absent(raw_files(plan), plan.layout.data_dir))
    download = f"{size_of(sum(archive.size or 0 for archive in absent))} in {count(len(absent), 'file')}"
    more = f", and {count(len(ahead), 'shipped run')} if the images are those of the publishers" if ahead else ""
    unknown = any(content_of(plan, dataset) is None for dataset in {run.dataset for run in left - ahead})
    return [
        f"{count(len(plan.runs), 'run')} in {count(len(plan.jobs), 'training job')}, "
        f"{count(len(plan.splits), 'split')}, {count(len(plan.datasets), 'dataset')}",
        f"train     {'at most ' if unknown else ''}{count(len(left) - len(ahead), 'run')}",
        f"reuse     {count(len(plan.runs) - len(left), 'run')}{more}",
        f"download  {download if absent else 'nothing'}",
        f"store     about {size_of(bytes_to_store(plan, left - ahead))} in {plan.layout.results.parent}",
    ]


def likely_shipped(plan: Plan, runs: set[Run]) -> set[Run]:
    """Return those of some runs that are shipped, as far as can be said before their images and labels are there."""
    shipped, unknown = cache_of(plan).shipped, {"images": None, "labels": None}
    if shipped is None or not shipped.exists() or not runs:
        return set()
    recipes = (json.loads(about)["recipe"] for about in read_packed(shipped, ["about"])["about"].unique().to_pylist())
    there = {fingerprint({**recipe, **unknown}) for recipe in recipes}
    return {run for run in runs if any(fingerprint(recipe) in there for recipe in recipes_of(plan, run, unknown))}


def bytes_to_store(plan: Plan, runs: set[Run]) -> int:
    """Return about how many bytes images, splits, histories and finished runs will take that are not there yet."""
    images: dict[Path, int] = {}
    for dataset in plan.datasets:
        path = plan.layout.images(dataset)
        number = sum(side for part in plan.dataset(dataset).get("counts", {}).values() for side in part.values())
        if not path.exists():  # datasets may share a source
            images[path] = max(images.get(path, 0), number * PIXELS.get(plan.network(dataset), 28 * 28))
    drawn = {run.split: plan.images_of(run) for run in plan.runs if not plan.layout.split(run.split).exists()}
    histories = sum(EPOCH_BYTES * plan.epochs_of(run) for run in runs)
    return sum(images.values()) + INDEX_BYTES * sum(drawn.values()) + histories


def size_of(size: int | None) -> str:
    """Return a number of bytes in words.

    >>> size_of(9_912_422), size_of(28_881), size_of(None)
    ('9.9 MB', '28.9 kB', 'size unknown')
    """
    return "size unknown" if size is None else decimal(size)
