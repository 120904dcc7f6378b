"""The only door to Hypothesis: small integers, each shrinking towards the first, simplest choice."""

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

T = TypeVar("T")


@cache
def _integers(low: int, high: int) -> SearchStrategy[int]:
    return st.integers(low, high)


class Chooser:
    """Draws decisions.

    Only integers between 0 and 100 are drawn: Hypothesis mixes the constants of imported local modules into larger ranges, and
    a seed would mean something else elsewhere.

    Args:
        draw: what `hypothesis.strategies.composite` hands in.
        on: the traits that may occur in this case.
        eager: use each of them often; otherwise seldom, as when everything is on.
    """

    def __init__(self, draw: DrawFn, on: frozenset[str], *, eager: bool) -> None:
        self.draw, self.on, self.eager = draw, on, eager

    def integer(self, low: int, high: int) -> int:
        """Draw an integer; shrinks towards `low`."""
        return low if low == high else self.draw(_integers(low, high))

    def pick(self, choices: Sequence[T]) -> T:
        """Draw one of some choices; shrinks towards the first. Of more than 101 choices the last ones are out of reach."""
        return choices[self.integer(0, min(len(choices) - 1, 100))]

    def chance(self, percent: int) -> bool:
        """Draw True in so many of a hundred cases; shrinks towards False."""
        return self.integer(0, 99) >= 100 - percent

    def mostly(self, first: T, others: Sequence[T], percent: int) -> T:
        """Draw one choice in so many of a hundred cases, and otherwise one of others; shrinks towards `first`. One draw."""
        number = self.integer(0, 99) - percent
        return first if number < 0 or not others else others[number * len(others) // (100 - percent)]

    def flagged(self, trait: str, choices: Sequence[T], percent: int = 65) -> T | None:
        """Draw whether a trait is used here, as `flag` does, and if so one of some choices; shrinks towards None. One draw."""
        return self.mostly(None, choices, 100 - (percent if self.eager else 12)) if trait in self.on else None

    def given(self, trait: str) -> bool:
        """Is a trait of the whole case used? Always if it may occur and each is used eagerly, which costs no draw."""
        return trait in self.on and (self.eager or self.chance(12))

    def flag(self, trait: str, percent: int = 65) -> bool:
        """Draw whether a trait that may occur is used here, with this chance if eager; shrinks towards not."""
        return trait in self.on and self.chance(percent if self.eager else 12)
