"""What the tests share."""

from __future__ import annotations

from hypothesis import settings

# The same examples on every machine: a red test is red for everyone, and a green one stays so.
settings.register_profile("mdpu", derandomize=True, deadline=None)
settings.load_profile("mdpu")
