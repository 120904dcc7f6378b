"""Smaller specs: the same program on smaller or simpler values, everything along it computed anew."""

from collections.abc import Callable, Iterator
from functools import partial

from gradcheck_plus.campaign.edits.common import propagated, replaced
from gradcheck_plus.case import Case, Parameter, Primal, Program, Scalar, Spec, Statement, Value
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations import CATALOGUE, Operation, results_of, seen_by

#: The shapes that values are made to have, the simplest first.
_SHAPES: tuple[Shape, ...] = ((2, 3), (3,), (2, 2, 4))
#: The operations that others are replaced by, the simplest first.
_SIMPLEST: tuple[tuple[str, tuple[tuple[str, Scalar], ...]], ...] = (
    ("sin", ()),
    ("scale", (("c", 2.0),)),
    ("square_linear", ()),
)


class _DoesNotFitError(Exception):
    """An operation does not take what it would be given."""


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
    if len(old.results) > 1 or (entry.setup and not old.module):
        return
    operands = old.operands if operation == old.operation else old.operands[:1]
    new = replaced(old, operation=operation, operands=operands, attributes=attributes, module=old.module if entry.setup else "")
    yield from respecified(case, lambda p: p.spec, {old: new})


def respecified(
    case: Case, change: Callable[[Primal], Spec], statements: dict[Statement, Statement] | None = None, dtype: str = ""
) -> Iterator[Case]:
    """Yield the case with other primal specs, if every operation along the program takes what it is then given.

    Args:
        case: a case of a generated program.
        change: the new spec of a primal.
        statements: statements to put in the place of others.
        dtype: the dtype of the parameters; by default the same.
    """
    program = case.program
    if not isinstance(program, Program):
        return
    primals = tuple(replaced(p, spec=change(p)) if p.tensor else p for p in case.primals)
    walk = _Walk(case, program, primals, dtype or program.dtype)
    try:
        segments = tuple(
            replaced(s, statements=tuple(walk.follow(t, (statements or {}).get(t, t)) for t in s.statements))
            for s in program.segments
        )
    except _DoesNotFitError:
        return
    parameters = tuple(walk.parameters[p.name] for p in program.parameters)
    changed = replaced(case, primals=primals)
    new = replaced(program, segments=segments, parameters=parameters, dtype=walk.dtype)
    yield replaced(changed, program=propagated(changed, new))


class _Walk:
    """Follows a program and computes the spec of every value."""

    def __init__(self, case: Case, program: Program, primals: tuple[Primal, ...], dtype: str) -> None:
        self.autocast, self.dtype = case.environment.autocast, dtype
        self.specs = {p.name: p.spec for p in primals}
        self.parameters: dict[str, Parameter] = {p.name: p for p in program.parameters}
        self.shaped: set[str] = set()

    def follow(self, old: Statement, new: Statement) -> Statement:
        """Return a statement with specs computed anew; results keep their names."""
        operation = CATALOGUE[new.operation]
        first = self._spec(new.operands[0])
        if not operation.takes(first, autocast=bool(self.autocast), parameters=self.dtype):
            raise _DoesNotFitError
        seen = seen_by(operation, first, autocast=bool(self.autocast))
        specs = (first, *(self._partner(operation, i, seen, name) for i, name in enumerate(new.operands[1:])))
        if any(value not in operation.attributes[k](seen) for k, value in new.attributes):
            raise _DoesNotFitError
        made = results_of(operation, specs, dict(new.attributes), autocast=self.autocast)
        if len(made) != len(old.results):
            raise _DoesNotFitError
        results = tuple(
            Value(r.name, Spec(tuple(shape), dtype, r.spec.requires_grad))
            for r, (shape, dtype) in zip(old.results, made, strict=True)
        )
        self.specs |= {r.name: r.spec for r in results}
        return replaced(new, specs=specs, results=results)

    def _spec(self, name: str) -> Spec:
        if name in self.specs:
            return self.specs[name]
        p = self.parameters[name]
        return Spec(p.shape, self.dtype, p.trainable and not p.buffer)

    def _partner(self, operation: Operation, position: int, first: Spec, name: str) -> Spec:
        partner = operation.partners[position]
        if name in self.parameters and name not in self.shaped and partner.fresh:
            self.parameters[name] = replaced(self.parameters[name], shape=tuple(partner.fresh(first)))
            self.shaped.add(name)
        spec = self._spec(name)
        seen = seen_by(operation, spec, autocast=bool(self.autocast))
        if (seen.floating and seen.low and not operation.low) or not partner.fits(first, seen):
            raise _DoesNotFitError
        return spec
