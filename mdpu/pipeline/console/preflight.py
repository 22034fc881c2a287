"""Are all files there, or to be had, before any job starts?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.data.download import Archive, find_missing
from mdpu.pipeline.data.sources import SOURCES, list_archives
from mdpu.pipeline.evaluate.verify import read_expected
from mdpu.pipeline.plan import Plan


def check_files(plan: Plan, mirror: str | None) -> None:
    """Raise `UserError` if a plan needs files that are neither in ``data_dir`` nor to be had.

    A line on standard error names each such file with its size, its checksum and its place. Nothing is downloaded. The
    same error says what is wrong with the table of expected numbers, which is compared with only at the end.

    Parameters
    ----------
    plan : Plan
    mirror : str or None
        See `mdpu.pipeline.data.download.fetch`.
    """
    if plan.config.get("expected") and plan.runs:
        read_expected(Path(plan.config["expected"]))
    missing = find_missing(raw_files(plan), plan.layout.data_dir, mirror)
    if not missing:
        return
    print("missing files:", file=sys.stderr)
    for archive in sorted(missing, key=lambda archive: archive.path):
        place = plan.layout.data_dir / archive.path
        print(f"  {place} ({size_of(archive.size)}, MD5 {archive.md5})", file=sys.stderr)
    asked = f"the mirror {mirror} does not give them" if mirror else "their publishers do not answer"
    raise UserError(
        f"{len(missing)} files are missing and {asked}, so nothing was started; connect to the network, put them into "
        "these places, or set the config key mirror (or MDPU_MIRROR) to a folder or server that has them"
    )


def raw_files(plan: Plan) -> Sequence[Archive]:
    """Return the publishers' files that a plan still needs: those of sources whose images are not made yet."""
    names = {plan.dataset(dataset)["source"] for dataset in plan.datasets if not plan.layout.images(dataset).exists()}
    return list(dict.fromkeys(archive for name in sorted(names & SOURCES.keys()) for archive in list_archives(name)))


def size_of(size: int | None) -> str:
    """Return a number of bytes in words.

    >>> size_of(9_912_422), size_of(28_881), size_of(None)
    ('9.9 MB', '0.03 MB', 'size unknown')
    """
    if size is None:
        return "size unknown"
    if size >= 10**9:
        return f"{size / 10**9:.1f} GB"
    return f"{size / 10**6:.1f} MB" if size >= 10**5 else f"{size / 10**6:.2f} MB"
