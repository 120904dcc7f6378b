"""The same program on other specs, everything along it computed anew."""

from collections.abc import Callable, Iterator

from gradcheck_plus.campaign.edits.common import propagated, replaced
from gradcheck_plus.case import Case, Parameter, Primal, Program, Spec, Statement, Value
from gradcheck_plus.operations import CATALOGUE, Operation, render, results_of, seen_by


class _DoesNotFitError(Exception):
    """An operation does not take what it would be given."""


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
        self.setups: dict[str, str] = {"": ""}

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
        setup = render(operation.setup, new.operands, specs, dict(new.attributes))
        made = results_of(operation, specs, dict(new.attributes), autocast=self.autocast)
        if len(made) != len(old.results) or self.setups.setdefault(new.module, setup) != setup:
            raise _DoesNotFitError  # a module that several statements call must be the same for all of them
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
