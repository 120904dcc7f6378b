"""Which traits explain a fault. Needs no torch: the process that reports asks too."""

from gradcheck_plus.traits import TRAITS

#: Traits that nearly every program has, or that say the same as another one: no part of an explanation.
_COMMON = ("reference-raises", "direct-parameter", "fan-out", "skip-connection")


def telling(trait: str) -> bool:
    """Does a trait say something to a person, rather than to the exactness rule?"""
    return not TRAITS[trait].inexact and trait not in _COMMON
