"""Swarms: which traits may occur in a case. Rare ones meet because each case has only some of them, and those often.

After Groce et al., "Swarm Testing" (ISSTA 2012): a random subset of the features finds what all of them together hide.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from gradcheck_plus.traits import TRAITS, clashes

#: The most traits of a swarm, apart from those swarms that have all of them.
LARGEST = 60
_EVERYTHING = 3


@lru_cache(maxsize=4096)
def order(allowed: tuple[str, ...], first: int, second: int) -> tuple[str, ...]:
    """Return the traits in an order that two numbers choose, the same on every machine.

    By a cryptographic hash: a checksum is linear, so that of two names of one length the same few bits would always differ, and
    some would never be among the first together.
    """
    return tuple(sorted(allowed, key=lambda trait: blake2b(f"{first}.{second}.{trait}".encode(), digest_size=8).digest()))


def closed(chosen: Iterable[str], allowed: frozenset[str]) -> frozenset[str]:
    """Add what a trait needs, and leave out what clashes with an earlier one.

    Example:
        >>> sorted(closed(["dataclass-output", "eval", "dropout"], frozenset(TRAITS)))
        ['dataclass-output', 'eval', 'nested-output']
    """
    kept: set[str] = set()
    excluded: set[str] = set()
    for trait in chosen:
        wanted = {*TRAITS[trait].needs, trait}
        if wanted <= allowed and excluded.isdisjoint(wanted):
            kept |= wanted
            excluded.update(*(clashes()[w] for w in wanted))
    return frozenset(kept)


@st.composite
def swarms(draw: DrawFn, allowed: Sequence[str], *, always: Sequence[str] = ()) -> tuple[frozenset[str], bool]:
    """Draw the traits that may occur, and whether each is used eagerly; shrinks towards none.

    Args:
        draw: handed in by Hypothesis.
        allowed: the traits to choose from.
        always: traits that are in every swarm.
    """
    small = st.integers(0, 100)
    largest = min(LARGEST, len(allowed))
    size = draw(st.integers(0, largest + _EVERYTHING))
    ordered = order(tuple(allowed), draw(small), draw(small)) if size else ()
    everything = size > largest
    return closed((*always, *(ordered if everything else ordered[:size])), frozenset(allowed)), not everything
