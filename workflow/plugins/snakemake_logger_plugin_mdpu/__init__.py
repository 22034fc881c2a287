"""What `./run` prints instead of Snakemake's text: passes Snakemake's events on to `mdpu.pipeline.console`."""

import os
from dataclasses import dataclass, field
from logging import ERROR, WARNING, LogRecord
from pathlib import Path
from typing import Any

from rich.console import Console
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

from mdpu.pipeline.config import load_config
from mdpu.pipeline.console.dry import DryRun
from mdpu.pipeline.console.live import Display
from mdpu.pipeline.console.reasons import error_of, sentence_of
from mdpu.pipeline.console.stages import Tracker
from mdpu.pipeline.console.work import TrainingWork
from mdpu.pipeline.plan import Plan


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Options on Snakemake's command line."""

    failed: bool = field(default=False, metadata={"help": "In a dry run, show how jobs that did not end failed."})


class LogHandler(LogHandlerBase):
    """Gets Snakemake's events, in order, from one thread."""

    def __post_init__(self) -> None:
        """Prepare to show what happens, or what would happen."""
        self.tracker = Tracker(os.cpu_count() or 1)
        self.display = Display(self.tracker, Console(highlight=False), Console(stderr=True, highlight=False))
        self.dry = DryRun() if self.common_settings.dryrun else None
        self.gpus, self.on_cluster = 1, False

    def emit(self, record: LogRecord) -> None:
        """Take note of an event."""
        event = getattr(record, "event", None)
        try:
            if event in ACTIONS:
                ACTIONS[event](self, record)
            elif event is None and record.levelno >= WARNING:
                self._message(record)
        except Exception:  # nothing that is shown may end what is done
            self.handleError(record)

    def close(self) -> None:
        """Show the last state; Snakemake closes a handler, and Python does so again at its end."""
        self.display.end()
        if self.dry is not None and not self.display.failed:
            self.dry.show(self.settings.failed)
        self.dry = None
        super().close()

    def _message(self, record: LogRecord) -> None:
        sentence = sentence_of(record.getMessage())
        if "CalledProcessError" in sentence:
            return  # a job's command failed: the job's own error comes next
        if record.levelno < ERROR:
            self.display.note(sentence)
        elif not self.display.failed:  # a job's own error has been shown; what follows repeats it
            self.display.error(sentence)

    def _resources(self, record: LogRecord) -> None:
        resources = getattr(record, "provided_resources", {})
        if hasattr(record, "nodes"):  # of a cluster: jobs share neither cores nor GPUs
            self.tracker.slots, self.on_cluster = record.nodes, True
        elif hasattr(record, "cores"):
            self.tracker.slots = record.cores
        elif "gpu" in resources:
            self.gpus = int(resources["gpu"].value)

    def _expect(self, record: LogRecord) -> None:
        self.tracker.expect({rule: number for rule, number in record.stats.items() if rule != "total"})
        if self.dry is None:
            self.tracker.work = TrainingWork(Plan(load_config([Path(os.environ["MDPU_CONFIG"])])))
            self.display.begin()

    def _start(self, record: LogRecord) -> None:
        if self.dry is not None:
            self.dry.add(record.rule_name, record.reason, record.log)
            return
        cohort = record.wildcards.get("cohort") if record.wildcards else None
        self.tracker.start(record.jobid, record.rule_name, cohort, self._slots(record.threads, record.resources))

    def _slots(self, threads: int, resources: Any) -> int:
        """Return how many jobs with these threads and resources fit side by side."""
        if self.on_cluster:
            return self.tracker.slots
        slots = self.tracker.slots // max(1, threads)
        return max(1, min(slots, self.gpus // needed) if (needed := resources.get("gpu")) else slots)

    def _finish(self, record: LogRecord) -> None:
        self.tracker.finish(record.job_id)

    def _fail(self, record: LogRecord) -> None:
        self.tracker.fail(record.jobid)
        self.display.error(error_of(record.rule_name, record.log))

    def _fail_group(self, record: LogRecord) -> None:
        for facts in record.job_error_info:
            self.tracker.fail(facts["jobid"])
            self.display.error(error_of(facts["rule_name"], [*facts["log"], *record.aux_logs]))

    @property
    def writes_to_stream(self) -> bool:
        """It does: Snakemake's own text is left out."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """It does not; Snakemake writes a log of its own."""
        return False

    @property
    def has_filter(self) -> bool:
        """It chooses the events itself."""
        return True

    @property
    def has_formatter(self) -> bool:
        """It words the events itself."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """It does not."""
        return False


ACTIONS = {
    LogEvent.RESOURCES_INFO: LogHandler._resources,
    LogEvent.RUN_INFO: LogHandler._expect,
    LogEvent.JOB_INFO: LogHandler._start,
    LogEvent.JOB_FINISHED: LogHandler._finish,
    LogEvent.JOB_ERROR: LogHandler._fail,
    LogEvent.GROUP_ERROR: LogHandler._fail_group,
    LogEvent.ERROR: LogHandler._message,
}
