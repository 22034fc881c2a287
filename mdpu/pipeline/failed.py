"""Jobs that failed, and why; a report on the others leaves out what they train.

No file marks a failure, so that none can outlive it. A training job has failed if training has ended and it has no
manifest; the next run trains it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
        name: reason_in(plan.layout.training_log(name, made[name]))
        for name in plan.jobs
        if not plan.layout.manifest(name, made[name]).exists()
    }
    if failed and len(failed) == len(plan.jobs):
        raise UserError(f"no training job ended well, so there is nothing to report; {next(iter(failed.values()))}")
    return {**config, "failed": failed}


def error_of(rule: str, logs: Iterable[str]) -> str:
    """Return why a job failed, in one sentence, by the first of its logs that is there."""
    log = next((log for log in map(Path, logs) if log.exists()), None)
    return f"{rule}: {reason_in(log)}" if log else f"{rule} failed, and left no log"


def reason_in(log: Path) -> str:
    """Return why the job of a log failed, in one sentence that names the log."""
    if not log.exists():
        return "it did not begin, because something that it needs failed"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in map(str.strip, lines) if ERROR.match(line)]
    if not errors:
        return f"it was killed, for example because memory or time ran out ({log})"
    why = errors[-1].removeprefix("error: ")
    return f"{why[:LONGEST]}{' ...' if len(why) > LONGEST else ''} ({log})"
