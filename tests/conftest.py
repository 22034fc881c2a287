"""What the tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Several workers share few cores, and the networks here are so small that threads only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every machine: a red test is red for everyone, and a green one stays so.
settings.register_profile("mdpu", derandomize=True, deadline=None)
settings.load_profile("mdpu")
