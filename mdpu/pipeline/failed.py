"""Training jobs that failed, and why: what a report on the others leaves out.

No file marks a failure, so that none can outlive it. A job has failed if training has ended and it has no manifest; the
next run trains it again.
"""

from __future__ import annotations

import re
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.cache import identity
from mdpu.pipeline.config import Config
from mdpu.pipeline.plan import Plan

# A line that names an error: the sentence of a `UserError`, or the last line of a traceback.
ERROR = re.compile(r"(error: |[\w.]*(Error|Exception|Interrupt|Exit)\b)")
LONGEST = 300  # characters of a reason


def without_failed(config: Config) -> Config:
    """Return a configuration with the training jobs that were not trained under ``failed``, each with the reason."""
    plan = Plan({**config, "failed": {}})
    made = {name: identity(plan, name) for name in plan.jobs}
    failed = {
        name: reason(plan.layout.training_log(name, made[name]))
        for name in plan.jobs
        if not plan.layout.manifest(name, made[name]).exists()
    }
    if failed and len(failed) == len(plan.jobs):
        raise UserError(f"no training job ended well, so there is nothing to report; {next(iter(failed.values()))}")
    return {**config, "failed": failed}


def reason(log: Path) -> str:
    """Return why a training failed, in one sentence that names its log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "it did not begin, because something that it needs failed"
    errors = [line for line in map(str.strip, lines) if ERROR.match(line)]
    if not errors:
        return f"it was killed, for example because memory or time ran out ({log})"
    why = errors[-1].removeprefix("error: ")
    return f"{why[:LONGEST]}{' ...' if len(why) > LONGEST else ''} ({log})"
