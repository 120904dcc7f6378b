"""Statements: the lines of a program, each valid where it stands."""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from gradcheck_plus.case import Parameter, Primal, Scalar, Spec, Statement, Value
from gradcheck_plus.operations import CATALOGUE, Group, Operation, applicable, render, results_of, seen_by
from gradcheck_plus.strategies.chooser import Chooser
from gradcheck_plus.strategies.primals import Precision

#: Values stay small: a fault of this kind does not need size.
_MOST_ELEMENTS, _MOST_DIMENSIONS = 64, 4
#: Operations of small families come nearly as often as if no family were large.
_WEIGHTIEST = 24
#: So many operations at most are drawn from at once.
_FEW = 101
_FALLBACK, _FALLBACK_LAYER = "scale", "tanh_module"


@dataclass
class Live:
    """What is known of a value while its program is drawn.

    `fresh` values may be changed in place: nothing else has looked at them. A value that was changed is no longer `alive`
    under its old name.
    """

    spec: Spec
    segment: int
    fresh: bool = False
    alive: bool = True
    uses: int = 0


class Builder:
    """Grows a program, line by line.

    Attributes:
        values: every value so far, by name.
        statements: the lines so far, by segment.
        parameters: what segments own and use directly.
    """

    def __init__(self, c: Chooser, of: Precision, primals: Sequence[Primal], operations: frozenset[str] | None) -> None:
        self.c, self.of, self.operations = c, of, operations
        self.values = {p.name: Live(p.spec, -1) for p in primals}
        self.statements: list[list[Statement]] = []
        self.parameters: list[Parameter] = []
        self.modules: dict[tuple[str, str], tuple[str, bool]] = {}
        self.counter = 0
        self.made = 0
        self.brought: set[str] = set()
        self._known: dict[Spec, tuple[Group, ...]] = {}

    # choosing -------------------------------------------------------------------------------------------------------

    def scope(self) -> list[str]:
        """Return the values that a statement may take as its first operand."""
        return [name for name, live in self.values.items() if live.alive and live.spec.floating]

    def statement(self, segment: int, *, first: bool) -> None:
        """Draw one statement of a segment; shrinks towards ``sin`` of the newest value."""
        operand = self._operand(segment, first=first)
        operation = self._again(operand) or self._operation(operand, segment)
        partners = self._partners(operation, operand, segment)
        if partners is None:
            operation, partners = CATALOGUE[_FALLBACK], ()
        # A view of a non-leaf that is taken under `no_grad` says that it requires grad, but has no graph.
        island = not operation.in_place and not operation.view and self.c.flag("no-grad-island", 20)
        self.append(operation, (operand, *partners), segment, no_grad=island)

    def chained(self, operand: str, segment: int, previous: str) -> str:
        """Draw one layer of an ``nn.Sequential`` on `operand`; return its result. Layers often repeat, as in real stacks."""
        groups = self._layers(operand)
        same = [o for g in groups for o in g.operations if o.name == previous]
        operation = same[0] if same and self.c.chance(60) else self._pick(groups)
        self.append(operation, (operand,), segment, share=False)
        return self.statements[segment][-1].results[0].name

    def chainable(self, operand: str) -> bool:
        """Is there a layer that takes this value?"""
        return bool(self._layers(operand))

    def _layers(self, operand: str) -> Sequence[Group]:
        return [g for g in self._fitting(operand) if g.layers and not g.in_place]

    def _fitting(self, operand: str) -> tuple[Group, ...]:
        """Return the operations that take a value, of those whose traits may occur."""
        spec = self.values[operand].spec
        if spec not in self._known:
            every = applicable(spec, self.operations, bool(self.of.autocast), self.of.dtype)
            self._known[spec] = tuple(g for g in every if self.c.on.issuperset(g.traits))
        return self._known[spec]

    def _pick(self, groups: Sequence[Group]) -> Operation:
        """Draw one of few operations; of many, a family first. Large families weigh as much as `_WEIGHTIEST` operations."""
        every = [o for g in groups for o in g.operations]
        if len(every) <= _FEW:
            return self.c.pick(every)
        sizes: dict[str, int] = {}
        for g in groups:
            sizes[g.family] = sizes.get(g.family, 0) + len(g.operations)
        weights = {family: min(size, _WEIGHTIEST) for family, size in sizes.items()}
        bounds = list(accumulate(weights.values()))
        family = list(weights)[bisect(bounds, self.c.integer(0, 100) * bounds[-1] // 101)]
        return self.c.pick([o for g in groups if g.family == family for o in g.operations])

    def _operand(self, segment: int, *, first: bool) -> str:
        scope = self.scope()
        if first and segment == 0:
            return scope[0]
        return self.c.mostly(scope[-1], scope[::-1], 60) if len(scope) > 1 else scope[0]

    def _operation(self, operand: str, segment: int) -> Operation:
        """Draw an operation: any, or one for a waiting passenger, or one of a trait.

        The trait is drawn first, so that traits of few operations come as often as those of many; one that the program has
        not yet, so that they meet.
        """
        live = self.values[operand]
        groups = [g for g in self._fitting(operand) if not g.in_place or (live.fresh and live.segment == segment)]
        waiting = [n for n, v in self.values.items() if not v.uses and not v.spec.floating and v.segment < 0]
        if waiting and self.c.chance(50):
            other = self.values[waiting[0]].spec
            taking = [o for g in groups for o in g.operations if o.partners and _fits(o, 0, live.spec, other)]
            if taking:
                return self.c.pick(taking)
        elif themes := {t for g in groups for t in g.traits}:
            theme = self.c.mostly("", sorted(themes - self.brought or themes), 50 if self.c.eager else 75)
            groups = [g for g in groups if theme in g.traits] if theme else groups
        return self._pick(groups) if groups else CATALOGUE[_FALLBACK]

    def _again(self, operand: str) -> Operation | None:
        """Draw an operation whose module is there already and takes this value too, so that modules are shared."""
        if not self.modules or "tied-parameter" not in self.c.on or not self.c.chance(35):
            return None
        known = {name for name, _ in self.modules}
        fitting = [o for g in self._fitting(operand) if not g.in_place for o in g.operations if o.name in known]
        return self.c.pick(fitting) if fitting else None

    def _partners(self, operation: Operation, operand: str, segment: int) -> tuple[str, ...] | None:
        """Draw the other operands; None where one cannot be had."""
        seen = seen_by(operation, self.values[operand].spec, autocast=bool(self.of.autocast))
        drawn: list[str] = []
        for position, partner in enumerate(operation.partners):
            options = [n for n, v in self.values.items() if v.alive and self._fits(operation, position, seen, v.spec)]
            if operation.in_place:  # what it is about to change may be saved for the backward
                options = [n for n in options if n != operand]
            tied = "tied-parameter" in self.c.on and self.c.chance(60)
            options += [p.name for p in self.parameters if tied and self._fits(operation, position, seen, self._spec(p))]
            made = Spec(partner.fresh(seen), self.of.dtype, requires_grad=True) if partner.fresh else None
            if made and self._fits(operation, position, seen, made) and (not options or self.c.chance(40)):
                drawn.append(self._parameter(made.shape, segment))
            elif options:
                drawn.append(self.c.pick(options[::-1]))
            else:
                return None
        return tuple(drawn)

    def _fits(self, operation: Operation, position: int, first: Spec, other: Spec) -> bool:
        return _fits(operation, position, first, seen_by(operation, other, autocast=bool(self.of.autocast)))

    # parameters -----------------------------------------------------------------------------------------------------

    def _parameter(self, shape: tuple[int, ...], segment: int) -> str:
        buffer = self.c.flag("direct-buffer")
        trainable = not buffer and not self.c.flag("frozen-parameter")
        self.parameters.append(Parameter(f"p{len(self.parameters)}", shape, segment, trainable, buffer))
        return self.parameters[-1].name

    def unused_parameter(self, segment: int) -> None:
        """Add a parameter that nothing uses."""
        self.parameters.append(Parameter(f"p{len(self.parameters)}", (3,), segment))

    def _spec(self, p: Parameter) -> Spec:
        return Spec(p.shape, self.of.dtype, p.trainable)

    def spec(self, operand: str) -> Spec:
        """Return what is known of a value or parameter."""
        live = self.values.get(operand)
        return live.spec if live else next(self._spec(p) for p in self.parameters if p.name == operand)

    def _module(self, operation: Operation, setup: str, *, share: bool) -> tuple[str, bool, bool]:
        """Return (attribute, is it new, is it frozen) of the module that an operation calls."""
        known = self.modules.get((operation.name, setup))
        if known and share and "tied-parameter" in self.c.on and self.c.chance(60):
            return known[0], False, known[1]
        frozen = operation.trainable and share and self.c.flag("frozen-parameter")
        name = f"{operation.name.rstrip('_')}{self.made}"
        self.made += 1
        if share:
            self.modules[operation.name, setup] = (name, frozen)
        return name, True, frozen

    # appending ------------------------------------------------------------------------------------------------------

    def append(
        self, operation: Operation, operands: tuple[str, ...], segment: int, *, share: bool = True, no_grad: bool = False
    ) -> None:
        """Append one statement; draws its attributes. A result that would be too large falls back to a scaling."""
        specs = tuple(self.spec(o) for o in operands)
        seen = seen_by(operation, specs[0], autocast=bool(self.of.autocast))
        attributes: dict[str, Scalar] = {k: self.c.pick(choices(seen)) for k, choices in operation.attributes.items()}
        results = results_of(operation, specs, attributes, autocast=self.of.autocast)
        if any(Spec(tuple(shape)).size > _MOST_ELEMENTS or len(shape) > _MOST_DIMENSIONS for shape, _ in results):
            self.append(CATALOGUE[_FALLBACK if share else _FALLBACK_LAYER], operands[:1], segment, share=share)
            return
        setup = render(operation.setup, operands, specs, attributes) if operation.setup else ""
        module, owner, frozen = self._module(operation, setup, share=share) if setup else ("", True, False)
        trained = operation.trainable and not frozen
        grad = operation.differentiable and not no_grad and (trained or any(s.requires_grad for s in specs))
        # Under `no_grad` some results are views of what the operation made inside, which must not be changed in place.
        fresh = not (operation.view or operation.saves_result or no_grad)
        values = tuple(self._result(shape, dtype, segment, grad=grad, fresh=fresh) for shape, dtype in results)
        self._consume(operands, in_place=operation.in_place)
        while len(self.statements) <= segment:
            self.statements.append([])
        pairs = tuple(attributes.items())
        self.brought.update(operation.traits)
        self.statements[segment].append(
            Statement(operation.name, values, operands, specs, pairs, module, owner, frozen and owner, no_grad)
        )

    def _result(self, shape: tuple[int, ...], dtype: str, segment: int, *, grad: bool, fresh: bool) -> Value:
        spec = Spec(tuple(shape), dtype, grad and Spec(shape, dtype).floating)
        name = f"h{self.counter}"
        self.counter += 1
        self.values[name] = Live(spec, segment, fresh=fresh)
        return Value(name, spec)

    def _consume(self, operands: tuple[str, ...], *, in_place: bool) -> None:
        for position, name in enumerate(operands):
            live = self.values.get(name)
            if live:
                live.uses += 1
                live.fresh = False
                live.alive = live.alive and not (in_place and position == 0)


@lru_cache(maxsize=65536)
def _fits(operation: Operation, position: int, first: Spec, other: Spec) -> bool:
    if other.floating and not operation.low and other.low:
        return False
    return bool(operation.partners[position].fits(first, other))
