"""What came in and what became of it: files, rows, groups and columns, each with a reason where it
was not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SHOWN = 5  # names in a line of the account
# kinds of columns that become something else
KINDS = {"category": "categories", "date": "dates", "duration": "durations"}


@dataclass(frozen=True)
class Column:
    """A column of a table: what it holds, whether training uses it, and if not, why and what would
    keep it.

    `kind` is ``group``, ``count`` (which says something of each group), ``number``, ``truth``,
    ``date``, ``duration``, ``category``, ``text`` or ``other``.
    """

    name: str
    kind: str
    used: bool
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Account:
    """All that went into a table or a folder, so that nothing is lost or merged in silence.

    Parameters
    ----------
    files_seen, files_read : int
    passed_over : dict of str to int
        Files that were not read, by the reason.
    rows : int
        Rows that were read, or pictures.
    names_written, groups : int
        Different names of groups as they stand in the file, and as they are after blanks around
        them were taken away.
    columns : list of Column
        All columns of a table, those that name the groups among them.
    notes : list of str
        What was done, and what is in doubt with the option that settles it.
    rule : str
        What is known of the positives in groups, in words.
    """

    files_seen: int
    files_read: int
    passed_over: dict[str, int]
    rows: int
    names_written: int
    groups: int
    columns: list[Column] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rule: str = ""

    @property
    def left_out(self) -> list[Column]:
        """The columns that training does not use, but for those that name the groups or say
        something of them.
        """
        return [
            column
            for column in self.columns
            if not column.used and column.kind not in ("group", "count")
        ]

    def __str__(self) -> str:
        """Return the account in lines."""
        lines = []
        if self.files_seen:
            lines.append(f"files: {self.files_seen} seen, {self.files_read} read")
        for reason, count in self.passed_over.items():
            lines.append(f"files not read: {count} {reason}")
        lines.append(f"rows read: {self.rows}")
        if self.groups:
            lines.append(f"groups: {self.groups}")
        if self.names_written != self.groups:
            lines[-1] += (
                f"; their names stand in {self.names_written} forms, which differ by blanks alone"
            )
        if self.rule:
            lines.append(f"rule of the groups: {self.rule}")
        if self.columns:
            lines.append(self._columns())
        for kind, words in KINDS.items():
            names = [column.name for column in self.columns if _is_plainly(column, kind)]
            if names:
                lines.append(f"taken as {words}: {few(names)}")
        for column in self.columns:
            if not column.used or not column.reason:
                continue
            words = "text" if column.kind == "text" else "taken as categories"
            lines.append(f"{column.name}: {words}, because {column.reason}; {column.remedy}")
        for column in self.left_out:
            lines.append(f"left out: {column.name}, because {column.reason}")
            if column.remedy:
                lines[-1] += f"; {column.remedy}"
        return "\n".join([*lines, *self.notes])

    def _columns(self) -> str:
        names = [column.name for column in self.columns if column.kind == "group"]
        used = sum(column.used for column in self.columns)
        line = f"columns: {len(self.columns)} in, {used} used, {len(self.left_out)} left out"
        if names:
            line += f"; groups are named by {' and '.join(names)}"
        statements = [column.name for column in self.columns if column.kind == "count"]
        if statements:
            line += f", and {statements[0]} says something of each"
        return line


def _is_plainly(column: Column, kind: str) -> bool:
    """Return whether training uses a column as what it is, without a doubt."""
    return column.used and column.kind == kind and not column.reason


def few(names: list[str]) -> str:
    """Return some names and how many more there are."""
    text = ", ".join(names[:SHOWN])
    if len(names) > SHOWN:
        text += f" and {len(names) - SHOWN} more"
    return text
