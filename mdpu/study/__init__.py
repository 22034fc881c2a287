"""The pipeline's brain: from a configuration to runs, from runs to files, and the work on them."""
