"""``python -m mdpu``: the commands of the workflow's rules, and those that go from a number back to
its runs.
"""

import io
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT  # the status by which shells know a command that was interrupted


def main() -> None:
    """Run the command line, or say what it needs: the library alone is installed without it."""
    try:
        from mdpu.pipeline.cli import main as run

        if isinstance(sys.stdout, io.TextIOWrapper):
            # a terminal that has ASCII alone lacks ±
            sys.stdout.reconfigure(errors="backslashreplace")
        status = run()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("mdpu"):
            raise
        extra = "files" if sys.argv[1:2] in (["fit"], ["predict"]) else "pipeline"
        sys.exit(
            f"error: the command line needs {error.name}; run pip install '.[{extra}]' in a "
            "checkout"
        )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    main()
