"""What `./run` prints instead of Snakemake's text: passes Snakemake's events on to `mdpu.pipeline.console`."""

import os
from logging import ERROR, WARNING, LogRecord
from pathlib import Path

from rich.console import Console
from snakemake.scheduling.job_scheduler import JobRateLimiter, JobScheduler
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from mdpu.pipeline.config import load_config
from mdpu.pipeline.console import Display, DryRun, sentence_of
from mdpu.pipeline.failed import error_of
from mdpu.pipeline.lock import PROGRESS, TOKEN
from mdpu.pipeline.plan import Layout


class LogHandler(LogHandlerBase):
    """Gets Snakemake's events, in order, from one thread."""

    # Snakemake's own text is left out, and its log file is its own.
    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        """Prepare to show what happens, or what would happen."""
        state = PROGRESS if TOKEN in os.environ else None
        self.display = Display(Console(highlight=False), Console(stderr=True, highlight=False), state)
        self.dry = DryRun() if self.common_settings.dryrun else None

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
            print("\n".join(self.dry.lines()), flush=True)
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

    def _expect(self, record: LogRecord) -> None:
        if self.dry is None:
            self.layout = Layout(load_config([Path(os.environ["MDPU_CONFIG"])]))
            self.display.expect({rule: number for rule, number in record.stats.items() if rule != "total"})

    def _start(self, record: LogRecord) -> None:
        if self.dry is not None:
            self.dry.add(record.rule_name, record.reason, record.log)
            return
        job = record.wildcards.get("job") if record.wildcards else None
        self.display.start(record.jobid, record.rule_name, self.layout.progress(job) if job else None)

    def _finish(self, record: LogRecord) -> None:
        self.display.finish(record.job_id)

    def _fail(self, record: LogRecord) -> None:
        self.display.finish(record.jobid, well=False)
        self.display.error(error_of(record.rule_name, record.log))

    def _fail_group(self, record: LogRecord) -> None:
        for facts in record.job_error_info:
            self.display.finish(facts["jobid"], well=False)
            self.display.error(error_of(facts["rule_name"], [*facts["log"], *record.aux_logs]))


ACTIONS = {
    LogEvent.RUN_INFO: LogHandler._expect,
    LogEvent.JOB_INFO: LogHandler._start,
    LogEvent.JOB_FINISHED: LogHandler._finish,
    LogEvent.JOB_ERROR: LogHandler._fail,
    LogEvent.GROUP_ERROR: LogHandler._fail_group,
    LogEvent.ERROR: LogHandler._message,
}


# A patch for which Snakemake 9 has no option. Its scheduler selects jobs again a second after each selection, so every
# job that ends adds one selection per second until the end, and each reads the sizes of the inputs of all jobs that
# wait. After some hundred jobs this takes a whole core. It is of use only if the limit of jobs per second held some
# back.
_register_jobs, _select_later = JobRateLimiter.register_jobs, JobScheduler._schedule_reevalutation


def register_jobs(limiter: JobRateLimiter, number: int) -> None:
    """Count jobs that were started, and note whether no more may be started for now."""
    _register_jobs(limiter, number)
    limiter.reached = limiter.get_free_jobs() == 0


def select_later(scheduler: JobScheduler, delay: float) -> None:
    """Let the scheduler select jobs again after a delay, if the limit held some back."""
    if getattr(scheduler.job_rate_limiter, "reached", False):
        _select_later(scheduler, delay)


JobRateLimiter.register_jobs, JobScheduler._schedule_reevalutation = register_jobs, select_later
