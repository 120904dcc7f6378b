"""Cases: complete test points."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from gradcheck_plus.case import Case, Program
from gradcheck_plus.case.case import needed
from gradcheck_plus.errors import InvalidArgument, unknown
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.strategies.chooser import Chooser
from gradcheck_plus.strategies.cotangents import cotangents
from gradcheck_plus.strategies.environments import environments
from gradcheck_plus.strategies.plans import planned_cases, wrap_plans
from gradcheck_plus.strategies.primals import precision, primals
from gradcheck_plus.strategies.segments import bodies, segments
from gradcheck_plus.strategies.statements import Builder
from gradcheck_plus.strategies.swarms import swarms
from gradcheck_plus.subject import KINDS, Kind, Planned
from gradcheck_plus.traits import TRAITS, compatible, drawable

#: The dtypes that `cases` can be asked for.
DTYPES = ("float32", "float64", "bfloat16", "float16")
#: What takes the place of an operation that does not fit, and what makes sure of a gradient.
_NEEDED_OPERATIONS = {"sin", "scale", "mul"}
_NEEDED = {
    "float64": "float64",
    "bfloat16-input": "bfloat16",
    "autocast-bfloat16": "bfloat16",
    "low-precision": "bfloat16",
    "autocast-float16": "float16",
}


def cases(
    kind: Kind = "checkpoint",
    *,
    traits: Iterable[str] | None = None,
    without: Iterable[str] = (),
    operations: Iterable[str] | None = None,
    dtypes: Iterable[str] = DTYPES,
    max_statements: int = 5,
    planned: Planned = "",
) -> st.SearchStrategy[Case]:
    """Draw cases for a kind of subject.

    Everything drawn is valid by construction. Shrinks towards ``sin`` of one contiguous float32 leaf of shape (2, 3), in one
    segment, with one forward and one backward.

    Args:
        kind: the kind of subject, ``checkpoint``, ``wrapper`` or ``stage-backward``; it decides what is worth drawing.
        traits: the traits to aim at; all of the kind by default. Every trait named is in every swarm.
        without: traits not to aim at.
        operations: the names of the operations to draw from; the whole catalogue by default. ``sin`` and ``scale`` are
            always among them, since something must be.
        dtypes: the dtypes that values may have.
        max_statements: the most statements of a segment, at least 1.
        planned: the field of the case's plan that the subject is made of, for subjects that are told what to do.

    Raises:
        InvalidArgument: a name is not known, or a bound is out of range.

    Example:
        >>> from hypothesis import find, settings
        >>> find(cases(), lambda case: True, settings=settings(database=None)).size
        1
    """
    allowed = allowed_traits(kind, traits, without, dtypes)
    always = () if traits is None else tuple(t for t in allowed if t in set(traits))
    return aimed_cases(kind, allowed, always, operations, tuple(dtypes), max_statements, planned)


def aimed_cases(
    kind: Kind,
    allowed: Sequence[str],
    always: Sequence[str],
    operations: Iterable[str] | None,
    dtypes: tuple[str, ...],
    max_statements: int,
    planned: Planned = "",
) -> st.SearchStrategy[Case]:
    """Draw cases that aim at the allowed traits and at no others; `always` are in every swarm.

    With `planned`, each of them tells the subject something.
    """
    if operations is not None:
        operations = {CATALOGUE[name].name for name in operations} | _NEEDED_OPERATIONS
    if "float32" not in dtypes:
        operations = set(CATALOGUE if operations is None else operations) - {"to_float32"}
    if max_statements < 1:
        raise InvalidArgument(f"`max_statements`={max_statements} leaves nothing to run. Write at least 1.")
    chosen = None if operations is None else frozenset(operations)
    drawn = _cases(kind, tuple(allowed), tuple(always), chosen, dtypes, max_statements)
    if planned:
        drawn = planned_cases(drawn, planned)
    # Hypothesis follows each example with mutants in which one draw is copied over another: most cases would have nearly the
    # same traits as the one before (`benchmarks/diversity.py`). It does not do so inside a collection of unique elements.
    return only(st.lists(drawn, min_size=1, max_size=1, unique_by=id))


def allowed_traits(kind: Kind, traits: Iterable[str] | None, without: Iterable[str], dtypes: Iterable[str]) -> tuple[str, ...]:
    """Return the traits that may be aimed at, given what is asked for.

    Raises:
        InvalidArgument: a name is not known, or a trait asked for cannot be aimed at.
    """
    if kind not in KINDS:
        raise InvalidArgument(f"`kind`={kind!r} is not a kind of subject. Write one of {', '.join(KINDS)}.")
    dtypes, without = tuple(dtypes), tuple(without)
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise InvalidArgument(f"`dtype`={dtype!r} is not drawn. Write one of {', '.join(DTYPES)}.")
    if not dtypes:
        raise InvalidArgument(f"`dtypes`=() leaves nothing to draw. Write some of {', '.join(DTYPES)}.")
    possible = [t for t in drawable(kind) if _NEEDED.get(t, dtypes[0]) in dtypes]
    for name in (*(traits or ()), *without):
        if name not in TRAITS:
            raise unknown("trait", name, TRAITS)
    if traits is None:
        return tuple(t for t in possible if t not in without)
    wanted = {need for name in traits for need in (name, *TRAITS[name].needs)}
    for a, b in combinations(sorted(wanted), 2):
        if not compatible(a, b):
            raise InvalidArgument(f"`trait`={a!r} and {b!r} cannot be aimed at together. Write one of them.")
    for name in wanted & set(without):
        raise InvalidArgument(f"`trait`={name!r} is asked for, or needed, and left out. Write it once.")
    for name in wanted:
        if name not in possible:
            raise InvalidArgument(
                f"`trait`={name!r} cannot be aimed at for `kind`={kind!r} with `dtypes`={dtypes}. "
                f"`gradcheck-plus list traits` says which can."
            )
    return tuple(t for t in possible if t in wanted and t not in without)


@st.composite
def only(draw: DrawFn, lists: st.SearchStrategy[list[Case]]) -> Case:
    """Draw the case in a list of one: Hypothesis would print ``map`` as a call."""
    return draw(lists)[0]


@st.composite
def _cases(
    draw: DrawFn,
    kind: Kind,
    allowed: Sequence[str],
    always: Sequence[str],
    operations: frozenset[str] | None,
    dtypes: tuple[str, ...],
    most: int,
) -> Case:
    on, eager = draw(swarms(allowed, always=always))
    c = Chooser(draw, on, eager=eager)
    of = precision(c, dtypes)
    drawn = primals(c, of)
    b = Builder(c, of, drawn, operations)
    forms = bodies(c, b, most)
    cut = segments(c, b, forms, drawn)
    specs = {name: live.spec for name, live in b.values.items()}
    trainable = any(p.trainable and not p.buffer for p in b.parameters) or any(
        CATALOGUE[s.operation].trainable for segment in cut for s in segment.statements
    )
    environment = environments(c, of, kind, cut, trainable=trainable)
    program = Program(tuple(cut), tuple(b.parameters), of.dtype)
    plan = wrap_plans(c, program)
    return Case(program, needed(drawn, cut), cotangents(c, cut, specs), environment, plan)
