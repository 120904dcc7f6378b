"""Smaller specs: the same program on smaller or simpler values, everything along it computed anew."""

from collections.abc import Iterator
from functools import partial

from gradcheck_plus.campaign.edits.common import replaced
from gradcheck_plus.campaign.edits.respecified import respecified
from gradcheck_plus.case import Case, Primal, Scalar, Spec, Statement
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations import CATALOGUE

#: The shapes that values are made to have, the simplest first.
_SHAPES: tuple[Shape, ...] = ((2, 3), (3,), (2, 2, 4))
#: The operations that others are replaced by, the simplest first.
_SIMPLEST: tuple[tuple[str, tuple[tuple[str, Scalar], ...]], ...] = (
    ("sin", ()),
    ("scale", (("c", 2.0),)),
    ("square_linear", ()),
)


def simpler(case: Case) -> Iterator[Case]:
    """Yield the cases that are the same program on simpler values, or with one simpler operation. All of them are valid."""
    yield from _shaped(case)
    yield from _simplified(case)


def _shaped(case: Case) -> Iterator[Case]:
    """Give all primals of one shape another shape, or all of one dtype float32."""
    shapes = dict.fromkeys(p.spec.shape for p in case.primals if p.tensor)
    for shape in shapes:
        for other in _SHAPES[: _SHAPES.index(shape) if shape in _SHAPES else None]:
            yield from respecified(case, partial(_reshaped, old=shape, new=other))


def _reshaped(p: Primal, old: Shape, new: Shape) -> Spec:
    return replaced(p.spec, shape=new) if p.spec.shape == old else p.spec


def _simplified(case: Case) -> Iterator[Case]:
    """Replace one operation by a simpler one, or its attributes by the first choices."""
    layers = {s for segment in case.program.segments if segment.form == "sequential" for s in segment.statements}
    for statement in case.program.statements:
        ranks = [name for name, _ in _SIMPLEST]
        rank = ranks.index(statement.operation) if statement.operation in ranks else len(ranks)
        for name, attributes in _SIMPLEST[:rank]:
            if statement.owner and (statement not in layers or CATALOGUE[name].setup):
                yield from _with(case, statement, name, attributes)
        first = _first_choices(statement)
        if first != statement.attributes:
            yield from _with(case, statement, statement.operation, first)


def _first_choices(s: Statement) -> tuple[tuple[str, Scalar], ...]:
    return tuple((k, next(iter(choices(s.specs[0])))) for k, choices in CATALOGUE[s.operation].attributes.items())


def _with(case: Case, old: Statement, operation: str, attributes: tuple[tuple[str, Scalar], ...]) -> Iterator[Case]:
    entry = CATALOGUE[operation]
    shared = any(s.module == old.module and s != old for s in case.program.statements)
    if len(old.results) > 1 or (entry.setup and not old.module) or (old.module and shared):
        return
    operands = old.operands if operation == old.operation else old.operands[:1]
    new = replaced(old, operation=operation, operands=operands, attributes=attributes, module=old.module if entry.setup else "")
    yield from respecified(case, lambda p: p.spec, {old: new})
