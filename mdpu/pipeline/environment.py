"""The virtual environment of `./run`, from ``requirements.lock``. This module needs the standard
library alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "made-from"  # the lock that the environment was made from


def make_if_due() -> None:
    """Make the environment, unless it is there and was made from the lock as it is now."""
    wanted = LOCK.read_bytes()
    if STAMP.exists() and STAMP.read_bytes() == wanted:
        return
    make()
    STAMP.write_bytes(wanted)


def make() -> None:
    """Make .venv from the lock with uv, which pip installs first, from its own entry in the lock.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If a program cannot be started, or fails.
    """
    print(
        "run: installing the locked environment into .venv (once; minutes if packages are "
        "downloaded)",
        flush=True,
    )
    if VENV.is_symlink():  # the environment of another clone stays as it is
        VENV.unlink()
    os.environ["UV_PYTHON_DOWNLOADS"] = "never"
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    system_python = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([system_python, "-m", "venv", "--clear", str(VENV)], check=True)

    pip = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "-r",
        "/dev/stdin",
    ]
    subprocess.run(pip, input=entry_of_uv(LOCK.read_bytes()), check=True)

    uv = [
        str(VENV / "bin" / "uv"),
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--python",
        str(PYTHON),
    ]
    uv += ["--compile-bytecode"]
    subprocess.run([*uv, "--require-hashes", "-r", str(LOCK)], cwd=ROOT, check=True)
    subprocess.run([*uv, "--no-build-isolation", "--editable", str(ROOT)], cwd=ROOT, check=True)


def entry_of_uv(lock: bytes) -> bytes:
    """Return the lock's lines on uv: its version and its hashes."""
    entry = re.search(rb"^uv==(?:.*\\\n)*.*", lock, re.MULTILINE)
    if entry is None:
        raise FileNotFoundError(f"{LOCK} has no entry of uv")
    return entry[0]
