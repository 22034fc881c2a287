"""Files of the project, as git lists them."""

import subprocess

from mdpu.pipeline.files import REPOSITORY


def list_files(*also: str) -> list[str]:
    """Return the files that git tracks, with those that options of ``git ls-files`` add."""
    command = ["git", "ls-files", "-z", "--cached", *also]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]
