"""How a table is to be read, where the file itself does not tell."""

from __future__ import annotations

from dataclasses import dataclass

from mdpu.errors import UserError, check_choice

# Where the day stands in dates with slashes.
FORMS = {"day-first": "%d/%m/%Y", "month-first": "%m/%d/%Y"}


@dataclass(frozen=True)
class Reading:
    """How a table is to be read: what the options say; None and empty where the file itself
    tells.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    fill: bool = False
    dates: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.dates is not None:
            check_choice("dates", self.dates, [*FORMS])
        if self.decimal is not None:
            check_choice("decimal", self.decimal, (".", ","))
        if self.sep is not None and len(self.separator or "") != 1:
            raise UserError(f"sep is {self.sep!r}; one character is needed, or tab")

    @property
    def separator(self) -> str | None:
        """The separator as a character."""
        return "\t" if self.sep in ("tab", "\\t") else self.sep
