"""``python -m mdpu``: one command per rule of the workflow."""

from mdpu.cli import main

main()
