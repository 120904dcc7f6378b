"""Plans: what subjects that can be told what to do are told in a case."""

import re
from collections.abc import Sequence

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from gradcheck_plus.case import Case, Layer, Plan, Program, Statement
from gradcheck_plus.execute.dispatched import dispatched
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.strategies.chooser import Chooser
from gradcheck_plus.subject import Planned

#: Operations that every checkpoint adds for itself, and that policies are not asked about.
_IGNORED = ("aten.detach.default", "prim.device.default")
_LAYERS: tuple[Layer, ...] = ("non-reentrant", "save-on-cpu")
#: How a line ends that reads a field of what its module returns.
_FIELD = re.compile(r"\)\.\w+$")
#: Of a hundred policies so many keep nothing, and so many keep every call of what they keep.
_NOTHING, _BY_NAME = 10, 30


@st.composite
def planned_cases(draw: DrawFn, cases: st.SearchStrategy[Case], planned: Planned) -> Case:
    """Draw a case, and what a subject is told in it.

    Shrinks towards what tells the subject least: to recompute everything, one layer, one piece.

    Args:
        draw: handed in by Hypothesis.
        cases: the cases to tell something in.
        planned: the field of the plan that means something to the subject.
    """
    case = draw(cases)
    c = Chooser(draw, frozenset(), eager=True)
    match planned:
        case "saved":
            plan = Plan(saved=_saved(c, dispatched(case)))
        case "layers":
            plan = Plan(layers=tuple(c.pick(_LAYERS) for _ in range(c.integer(0, 3))))
        case "pieces":
            longest = max((len(s.statements) for s in case.program.segments), default=1)
            plan = Plan(pieces=c.integer(1, max(longest, 1)))
        case _:
            return case
    return msgspec.structs.replace(case, plan=plan)


def wrap_plans(c: Chooser, program: Program) -> Plan:
    """Draw which modules inside regions are wrapped too, and how often regions are. Shrinks towards the regions, once."""
    paths = [
        f"segment{index}.{number if segment.form == 'sequential' else s.module}"
        for index, segment in enumerate(program.segments)
        for number, s in enumerate(segment.statements)
        if segment.region and s.owner and _called(s)
    ]
    inner = tuple(path for path in dict.fromkeys(paths) if c.flag("inner-wrap"))
    return Plan(inner=inner, times=2 if c.given("double-wrap") else 1)


def _called(s: Statement) -> bool:
    """Is a statement's module called as a whole, and nothing else done with it, nor by it to its operand?

    Nor may it return something with fields of its own, such as a namedtuple: those are drawn for what regions return.
    """
    operation = CATALOGUE[s.operation]
    once = operation.line.count("{module}") == operation.line.count("{module}(") == 1
    return once and not operation.in_place and not _FIELD.search(operation.line)


def _saved(c: Chooser, calls: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Draw a policy over calls: nothing, every call of some operations, some calls, or about half of them."""
    calls = [call for call in calls if call[0] not in _IGNORED]
    if not calls or not c.chance(100 - _NOTHING):
        return ()
    if c.chance(_BY_NAME):
        names = list(dict.fromkeys(name for name, _ in calls))
        kept = {c.pick(names) for _ in range(c.integer(1, 3))}
        return tuple(call for call in calls if call[0] in kept)
    if c.chance(50):
        chosen = {c.pick(calls) for _ in range(c.integer(1, 3))}
        return tuple(call for call in calls if call in chosen)
    return tuple(call for call in calls if c.chance(50))
