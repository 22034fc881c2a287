"""Snakemake as `./run` starts it.

It always ends after SIGTERM, its scheduler works only when there is something to do, and with our logger it does not
name its profile.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from threading import Thread

from snakemake import cli
from snakemake.scheduling.job_scheduler import JobRateLimiter, JobScheduler

parse_args = cli.parse_args
exit_gracefully = JobScheduler.exit_gracefully
register_jobs = JobRateLimiter.register_jobs
select_later = JobScheduler._schedule_reevalutation


def exit_in_a_thread(scheduler: JobScheduler, *_signal: object) -> None:
    """Ask the scheduler to end.

    Snakemake 9 does so in the signal's handler, which waits for a lock. If the main thread holds the lock when the
    signal comes, Snakemake hangs for good.
    """
    Thread(target=exit_gracefully, args=(scheduler,), daemon=True).start()


def register_and_look(limiter: JobRateLimiter, number: int) -> None:
    """Count jobs that were started, and note whether no more may be started for now."""
    register_jobs(limiter, number)
    limiter.reached = limiter.get_free_jobs() == 0


def select_later_if_held_back(scheduler: JobScheduler, delay: float) -> None:
    """Let the scheduler select jobs again after a delay, if the limit of jobs per second held some back.

    Snakemake 9 does so in any case, each time that it has selected. So every job that ends adds one selection per
    second until the end, and each reads the sizes of the inputs of all jobs that wait. After some hundred jobs this
    takes a whole core.
    """
    if getattr(scheduler.job_rate_limiter, "reached", False):
        select_later(scheduler, delay)


def parse_quietly(argv: Sequence[str] | None) -> tuple[ArgumentParser, Namespace]:
    """Return what Snakemake makes of the command line. Errors are printed.

    The profile is not; Snakemake names it before it asks a logger plugin.
    """
    said = StringIO()
    try:
        with redirect_stderr(said):
            return parse_args(argv)
    finally:
        lines = said.getvalue().splitlines(keepends=True)
        sys.stderr.writelines(line for line in lines if not line.endswith("default command line arguments.\n"))


if __name__ == "__main__":
    sys.argv[0] = "snakemake"  # what its help and its errors call it
    if "--logger" in sys.argv:  # ./run --verbose is Snakemake's own text, with all of its lines
        cli.parse_args = parse_quietly
    JobScheduler.exit_gracefully = exit_in_a_thread
    JobRateLimiter.register_jobs = register_and_look
    JobScheduler._schedule_reevalutation = select_later_if_held_back
    cli.main()
