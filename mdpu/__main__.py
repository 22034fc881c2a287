"""``python -m mdpu``: the commands of the workflow's rules, and those that go from a number back to its runs."""

import io
import sys


def main() -> None:
    """Run the command line, or say what it needs: the library alone is installed without it."""
    try:
        from mdpu.pipeline.cli import main as run
    except ModuleNotFoundError as error:
        sys.exit(f"error: the command line needs {error.name}; run pip install '.[pipeline]' in a checkout")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that has ASCII alone lacks ±
    sys.exit(run())


if __name__ == "__main__":
    main()
