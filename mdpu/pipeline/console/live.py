"""How far a workflow is: live lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mdpu.pipeline.console.stages import Stage, Tracker, words

WIDTH = 9  # of a stage's name
SECONDS_BETWEEN_LOOKS = 1.0
# A plain line is printed when a stage ends, and during training at each of these shares, or after so many seconds.
SHARE_BETWEEN_LINES = 0.1
SECONDS_BETWEEN_LINES = 600.0


class Display:
    """Shows a tracker: one line for each stage.

    Parameters
    ----------
    tracker : Tracker
    out, err : Console
        For progress, and for errors and warnings.
    """

    def __init__(self, tracker: Tracker, out: Console, err: Console) -> None:
        self.tracker, self.out, self.err = tracker, out, err
        self.failed = False
        self._said: set[str] = set()
        self._shown: set[str] = set()  # stages whose last plain line is printed
        self._share, self._line = 0.0, time.monotonic()
        self._live: Live | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start to show; nothing is shown before."""
        if self._thread is None:
            if self.out.is_terminal:
                self._live = Live(console=self.out, get_renderable=self._table, auto_refresh=False)
                self._live.start()
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Show the last state, and nothing after it."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._refresh()
        if self._live is not None:
            self._live.stop()
            self._live = None

    def error(self, sentence: str) -> None:
        """Print an error, once."""
        self.failed = True
        self._say(f"error: {sentence}")

    def note(self, sentence: str) -> None:
        """Print a warning, once."""
        self._say(f"note: {sentence}")

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            # On a terminal through the live display, which otherwise would be torn.
            console = self.out if self._live is not None else self.err
            console.print(Text(sentence, style="red" if sentence.startswith("error") else "yellow"), soft_wrap=True)

    def _look(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            self._refresh()

    def _refresh(self) -> None:
        self.tracker.update()
        if self._live is not None:
            self._live.refresh()
        else:
            self._print_news()

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        with self.tracker.lock:
            for stage in self._stages():
                style = "green" if stage.done == stage.total else "bold" if stage.running else "dim"
                table.add_row(Text(stage.name.ljust(WIDTH), style=style), Text(describe(self.tracker, stage)))
        return table

    def _stages(self) -> list[Stage]:
        return [stage for stage in self.tracker.stages.values() if stage.total]

    def _print_news(self) -> None:
        with self.tracker.lock:
            for stage in self._stages():
                over = stage.done == stage.total
                if stage.name not in self._shown and (over or (stage.name == "train" and self._is_due())):
                    if over:
                        self._shown.add(stage.name)
                    self._line = time.monotonic()
                    self.out.print(Text(f"{stage.name.ljust(WIDTH)}  {describe(self.tracker, stage)}"), soft_wrap=True)

    def _is_due(self) -> bool:
        """Return whether training has come so far, or taken so long, that another line is worth it."""
        share = self.tracker.training_share()
        if share - self._share < SHARE_BETWEEN_LINES and time.monotonic() - self._line < SECONDS_BETWEEN_LINES:
            return False
        self._share = share
        return share > 0


def describe(tracker: Tracker, stage: Stage) -> str:
    """Return what is to be said of a stage, such as ``3 of 24 cohorts, 54 %, about 6 min left, 45 runs reused``."""
    jobs = " cohorts" if stage.name == "train" else ""
    parts = [f"{stage.done} of {stage.total}{jobs}"]
    if stage.done == stage.total:
        parts[0] += f" in {words(stage.worked)}"
    if stage.name == "train" and (stage.running or stage.done):
        if stage.done < stage.total:
            left = tracker.seconds_left()
            parts += [f"{100 * tracker.training_share():.0f} %", *([f"about {words(left)} left"] if left else [])]
        else:
            parts.append(f"{tracker.trained} runs trained")
        parts.append(f"{tracker.reused} runs reused")
    return ", ".join(parts)
