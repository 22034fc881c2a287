"""The one exception for mistakes that a user can correct, warnings, and text that is safe to
print.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


class UserError(ValueError):
    """A mistake in the configuration, the data or the environment, described in one sentence.

    It is a `ValueError`, which is what scikit-learn's users catch.

    The message says what is wrong, where (file and key), and what to do. The command line prints it
    without a traceback and exits with status 2.
    """


def check_choice(name: str, value: object, choices: Collection[object]) -> None:
    """Raise `UserError` unless the value of a setting is one of its choices."""
    if value not in [*choices]:  # a list asks for no hash
        raise UserError(f"{name} is {value!r}; it must be one of {', '.join(map(str, choices))}")


def check_count(name: str, value: Any) -> None:
    """Raise `UserError` unless a parameter, such as a number of epochs, is an integer of at least
    1.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise UserError(f"{name} is {value!r}; an integer of at least 1 is needed")


def check_number(name: str, value: Any, kind: type = Real) -> None:
    """Raise `UserError` unless a parameter is one number, of a kind such as `Integral`."""
    if isinstance(value, bool) or not isinstance(value, kind):
        raise UserError(
            f"{name} is {value!r}; {'an integer' if kind is Integral else 'a number'} is needed"
        )


PASSED = re.compile(r"(mdpu|sklearn\.callback)(\.|$)")  # modules between a warning and its reader


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn where the caller of the package stands."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back and PASSED.match(frame.f_globals.get("__name__", "")):
        level += 1
        frame = frame.f_back
    warnings.warn(text, category, stacklevel=level)


# Control characters that a terminal would obey, and halves of characters, which no file can hold.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return one line in which control characters are escaped.

    >>> printable("two\n lines, \x1b[31m red")
    'two lines, \\x1b[31m red'
    """
    return CONTROL.sub(
        lambda found: found[0].encode("unicode_escape").decode(), " ".join(text.split())
    )


# Messages of cuBLAS and cuDNN, for which torch does not raise its own exception.
NO_GPU_MEMORY = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "STATUS_ALLOC_FAILED",
    "calling `cublasCreate",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception says that a GPU's memory is full."""
    if type(error).__name__ == "OutOfMemoryError":  # torch is not imported for it
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_GPU_MEMORY)
