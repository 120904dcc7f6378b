"""The case: one complete test point."""

import hashlib
from collections.abc import Sequence

import msgspec

from gradcheck_plus.case.call import Call
from gradcheck_plus.case.environment import Environment
from gradcheck_plus.case.plan import Plan
from gradcheck_plus.case.point import Cotangent, Primal
from gradcheck_plus.case.program import ModuleProgram, Program, Segment
from gradcheck_plus.case.trees import names
from gradcheck_plus.errors import InvalidArgument


def needed(primals: Sequence[Primal], segments: Sequence[Segment]) -> tuple[Primal, ...]:
    """Leave out the primals that nothing is passed, except those that hold another one's tensor or storage."""
    passed = {name for segment in segments for name in names(*segment.inputs)}
    holders = {p.alias or p.share for p in primals if p.name in passed}
    return tuple(p for p in primals if p.name in passed | holders)


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program, the point at which its VJP is taken, what the VJP is applied to, its surroundings, and what a subject is told.

    A case of a function has a `call` and no program.

    Pure data: equal cases run equally, and `from_json` returns what `to_json` was given.

    Example:
        >>> from gradcheck_plus.case import Name, Segment, Spec, Statement, Value
        >>> x, y = Spec((2, 3), requires_grad=True), Value("h0", Spec((2, 3), requires_grad=True))
        >>> segment = Segment((Statement("sin", (y,), ("x0",), (x,)),), (Name("x0"),), (), Name("h0"))
        >>> case = Case(Program((segment,)), (Primal("x0", x),), (Cotangent(0),))
        >>> Case.from_json(case.to_json()) == case
        True
    """

    program: Program | ModuleProgram
    primals: tuple[Primal, ...]
    cotangents: tuple[Cotangent, ...]
    environment: Environment = Environment()
    plan: Plan = Plan()
    call: Call | None = None

    @property
    def size(self) -> int:
        """The number of statements, or of variations of a call."""
        return len(self.call.variations if self.call else self.program.statements)

    @property
    def reused(self) -> frozenset[str]:
        """The primals whose tensors receive the values of the next forward: none that another one shares memory with."""
        shared = {p.share for p in self.primals}
        reusable = (p.name for p in self.primals if p.reusable and p.name not in shared)
        return frozenset(reusable) if self.environment.reuses_inputs else frozenset()

    @property
    def wrapped(self) -> tuple[str, ...]:
        """The paths of the modules that a wrapper wraps, in that order; those of the plan that there are."""
        regions = [f"segment{index}" for index, segment in enumerate(self.program.segments) if segment.region]
        inner = {
            f"segment{index}.{number if segment.form == 'sequential' else s.module}"
            for index, segment in enumerate(self.program.segments)
            for number, s in enumerate(segment.statements)
            if segment.form == "sequential" or (s.module and s.owner)
        }
        kept = (path for path in self.plan.inner if path in inner)
        return (*kept, *(path for path in regions for _ in range(self.plan.times)))

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that name this case."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:8]

    def __repr__(self) -> str:
        """Return a short name; reports print the program, and `to_json` everything."""
        return f"Case({self.digest}: {self.size} statements)"

    def to_json(self) -> str:
        """Return the case as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str) -> "Case":
        """Return the case that `to_json` wrote.

        Raises:
            InvalidArgument: the text is not the JSON of a case; the message says where.
        """
        try:
            return msgspec.json.decode(text, type=Case)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise InvalidArgument(f"`text` is not the JSON of a case: {error}. Pass what `Case.to_json` wrote.") from error
