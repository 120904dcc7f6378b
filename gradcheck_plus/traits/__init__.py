"""Traits: the named properties of a case that some implementation somewhere gets wrong. One table, one file a theme.

A trait is computed from the case, never remembered from how the case was drawn. Most can be aimed at; the rest are only
observed. To add a trait, add an entry to a file; `gradcheck-plus list traits` and the docs show it from then on.
"""

from collections.abc import Iterable
from functools import cache, lru_cache

from gradcheck_plus.case import Case
from gradcheck_plus.subject import Kind
from gradcheck_plus.traits import calls, cotangents, environment, inputs, observed, outputs, plans, programs
from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CALL, TRAITS, Trait

for _theme in (inputs, outputs, cotangents, programs, environment, plans, observed, calls):
    for _trait in _theme.TABLE:
        TRAITS.add(_trait)

__all__ = ["TRAITS", "Facts", "Trait", "clashes", "compatible", "drawable", "exact", "traits"]


@lru_cache(maxsize=512)  # shrinking asks of the same case again and again
def traits(case: Case) -> frozenset[str]:
    """Return the names of the traits that a case has.

    Example:
        >>> from gradcheck_plus.case import Cotangent, Name, Primal, Program, Segment, Spec, Statement, Value
        >>> x, y = Spec((2, 3), requires_grad=True), Value("h0", Spec((2, 3), requires_grad=True))
        >>> segment = Segment((Statement("sin", (y,), ("x0",), (x,)),), (Name("x0"),), (), Name("h0"))
        >>> sorted(traits(Case(Program((segment,)), (Primal("x0", x, layout="strided"),), (Cotangent(0),))))
        ['strided-input']
    """
    facts = Facts(case)
    of_call = case.call is not None  # which has no program that the others could be read off
    return frozenset(name for name, trait in TRAITS.items() if (trait.kinds == CALL) == of_call and trait.when(facts))


def drawable(kind: Kind) -> tuple[str, ...]:
    """Return the traits that a strategy can aim at for a kind of subject, in table order."""
    return tuple(name for name, trait in TRAITS.items() if trait.drawn and kind in trait.kinds)


def compatible(a: str, b: str) -> bool:
    """May two traits be aimed at in one case?"""
    return b not in clashes()[a]


@cache
def clashes() -> dict[str, frozenset[str]]:
    """Return, for every trait, those that cannot be aimed at together with it."""
    return {
        name: frozenset(trait.clashes) | {other.name for other in TRAITS.values() if name in other.clashes}
        for name, trait in TRAITS.items()
    }


def exact(found: Iterable[str]) -> bool:
    """Must a correct subject give equal bits in a case with these traits?"""
    return not any(TRAITS[name].inexact for name in found)
