"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gradcheck_plus.campaign.plan import Outcome
from gradcheck_plus.results import Fault

_EVERY = 10.0


class Reporter:
    """Told by a campaign how far it is.

    Args:
        name: what it says of whom.
        total: how many cases there will be.
        bar: where it shows that; None for lines on standard error.
        quiet: say nothing there.
    """

    def __init__(self, name: str, total: int, bar: Progress | None, *, quiet: bool = False) -> None:
        self.name, self.total, self.bar, self.quiet = name, total, bar, quiet
        self.task = bar.add_task(name, total=total, faults="") if bar else None
        self.done, self.faults, self.said = 0, 0, time.monotonic()

    def tick(self, number: int) -> None:
        """A case of the running block has begun."""
        self._show(min(self.done + number, self.total))

    def progress(self, outcome: Outcome, faults: Sequence[Fault]) -> None:
        """A block has ended, or a fault was explained."""
        self.done, self.faults = outcome.counts.run, len(faults)
        self._show(self.done)

    def _show(self, cases: int) -> None:
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=cases, faults=f"faults: {self.faults}" if self.faults else "")
        elif not self.quiet and time.monotonic() - self.said > _EVERY:
            self.said = time.monotonic()
            with suppress(BrokenPipeError):
                print(f"{self.name}: {cases} of {self.total} cases", file=sys.stderr, flush=True)  # noqa: T201

    def end(self) -> None:
        """The check has ended; a campaign that found its fault early is done too."""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, total=max(self.done, 1), completed=max(self.done, 1))


@contextmanager
def bars(*, shown: bool = True) -> Iterator[Progress | None]:
    """Show bars for as long as this lasts, if standard error is a terminal."""
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[faults]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress
