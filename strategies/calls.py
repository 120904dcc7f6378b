"""Cases of a function: a named check, and how the call differs from the sample call."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, find, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from gradcheck_plus.case import Call, Case, Program, Variation
from gradcheck_plus.functions.checks import CHECKS
from gradcheck_plus.functions.drawn import encode
from gradcheck_plus.functions.variations import THEMES
from gradcheck_plus.strategies.cases import only
from gradcheck_plus.strategies.chooser import Chooser

#: How often a case has a variation of a theme, in percent.
_OFTEN: Mapping[str, int] = {"values": 45, "shapes": 25, "dtypes": 25, "layouts": 20, "surroundings": 30, "uses": 45}
#: What makes a narrower dtype show: half of the cases with one have a value of these.
_NARROW = ("under-autocast", "low-precision-inputs", "float32-inputs")
_LARGE = ("beyond-float16", "larger-values")


def calls(
    *,
    checks: Sequence[str] = ("values",),
    variations: Sequence[str] = (),
    inputs: str = "",
    reference: str = "",
    samples: SearchStrategy[str] | None = None,
) -> SearchStrategy[Case]:
    """Draw cases of a function: one of some checks, made of a call that differs from the sample call.

    Shrinks towards the first check, made of the sample call itself.

    Args:
        checks: the names of checks, as ``gradcheck-plus list checks`` shows them.
        variations: the names of variations, as ``gradcheck-plus list traits`` shows them.
        inputs: the target of the sample call.
        reference: the target of the reference.
        samples: draws the sample call itself, as JSON; for those that come from a strategy.

    Example:
        >>> from hypothesis import find, settings
        >>> find(calls(variations=["zero-values"]), lambda case: True, settings=settings(database=None)).call.variations
        ()
    """
    weighted = tuple(name for name in checks for _ in range(CHECKS[name].often))
    themes = {theme: tuple(n for n in names if n in variations) for theme, names in THEMES.items()}
    drawn = _calls(weighted, themes, Call("", (), inputs, reference), st.just("") if samples is None else samples)
    return only(st.lists(drawn, min_size=1, max_size=1, unique_by=id))  # as `gradcheck_plus.strategies.cases` says why


def samples_of(inputs: SearchStrategy[Any]) -> tuple[Any, SearchStrategy[str]]:
    """Return the plainest sample call that a user's strategy draws, and what draws all of them as JSON."""
    config = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    return find(inputs, lambda _: True, settings=config), inputs.map(encode)


@st.composite
def _calls(
    draw: DrawFn, checks: Sequence[str], themes: Mapping[str, Sequence[str]], given: Call, samples: SearchStrategy[str]
) -> Case:
    c = Chooser(draw, frozenset(), eager=True)
    check = c.pick(checks)
    forced = CHECKS[check].forces
    chosen = [Variation(forced, c.integer(0, 7), c.integer(0, 23))] if forced else []
    for theme, names in themes.items():
        # A check that compares a function with itself does so in one dtype, whose rounding is known.
        allowed = names if theme not in ("uses", "dtypes") or CHECKS[check].uses else ()
        if not allowed or not c.chance(_OFTEN[theme]):
            continue
        chosen.extend(
            Variation(c.pick(allowed), c.integer(0, 7), c.integer(0, 23))
            for _ in range(2 if theme == "values" and c.chance(30) else 1)
        )
    if any(v.name in _NARROW for v in chosen) and c.chance(50):
        chosen += [Variation(name, c.integer(0, 7), c.integer(0, 23)) for name in _LARGE if name in themes["values"]][:1]
    unique = {v.name: v for v in reversed(chosen)}  # what a check is about is chosen first, and stays
    call = Call(check, tuple(unique.values()), given.inputs, given.reference, draw(samples))
    return Case(Program(()), (), (), call=call)
