"""``python -m mdpu``: one command per rule of the workflow."""

import sys


def main() -> None:
    """Run the command line, or say what it needs: the library alone is installed without it."""
    try:
        from mdpu.pipeline.cli import main as run
    except ModuleNotFoundError as error:
        sys.exit(f"error: the command line needs {error.name}; run pip install '.[pipeline]' in a checkout")
    run()


if __name__ == "__main__":
    main()
