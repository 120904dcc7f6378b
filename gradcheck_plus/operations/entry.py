"""What an entry of the operation catalogue is, and the catalogue itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.case.program import FLOATS, Shape
from gradcheck_plus.registry import Registry

Attributes = Mapping[str, Scalar]
Accepts = Callable[[Spec], bool]
Results = Sequence[tuple[Shape, str]]
Autocast = Literal["keep", "low", "free", "no"]


@dataclass(frozen=True)
class Partner:
    """A further operand, used once: `fits` says which values may be drawn, given the first operand.

    `fresh` shapes a new parameter, which fits if it has the dtype of the first operand; ask `fits` where it may not have it.
    Both see specs as `seen_by` shows them.
    """

    fits: Callable[[Spec, Spec], bool]
    fresh: Callable[[Spec], Shape] | None = None


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation, as data: when it may be drawn, how it prints, what comes out.

    Args:
        name: unique in the catalogue.
        family: the file it stands in; the heading it is listed under.
        line: the expression. ``{a}``, ``{b}``, ``{c}`` are the operands, ``{a.last}`` a property of their `Spec`,
            ``{module}`` the operation's own module, any other name a drawn attribute.
        setup: the constructor of its module; empty for a function.
        accepts: the precondition on the first operand, always a floating tensor; `takes` adds what the other fields say.
        partners: the other operands.
        attributes: for each attribute, the choices that the first operand leaves; drawn in this order, shrinking
            towards the first. An operand that leaves none is not taken.
        results: shape and dtype of every result, given the operands and the attributes; ask `results_of`, which knows
            autocast.
        traits: it is drawn only where all of these may occur, and its presence in a case means that they do.
        low: takes operands of less precision than float32.
        empty: takes operands without elements.
        autocast: what autocast does to it, on any device.
            ``keep``: nothing. It sees its operands as they are, and its results are as declared.
            ``low``: it casts floating operands and parameters to the autocast dtype, whatever they were, and floating
            results have that dtype; float64 it leaves alone.
            ``free``: nothing that can be said beforehand, since devices differ (CUDA runs a softmax in float32, a CPU in
            the dtype of its operand): floating results have dtype ``"float"``.
            ``no``: it does not run under autocast, and is not drawn there.
            Values of low precision are of the autocast dtype then: torch's `cat` and `stack` refuse the other one.
            Draw on `seen_by` and `results_of`, which say the same in code.
        mixed: its module's parameters and buffers may be float32 beside operands of less precision.
        differentiable: its floating results require grad where an operand or a parameter of its module does, and each of
            them sends a gradient to each of those.
        view: a result may share memory with an operand, or be it (dropout in eval mode).
        inner_view: the first operands for which a result is a view of what the operation made inside.
        strided: a result of contiguous operands may have other than standard strides.
        elementwise: the only gradient is that of its first operand, each element of which comes from one element of what
            arrives, in bits that do not depend on strides. (Those of GELU do: its kernel takes another approximation where
            memory is not in a row.)
        in_place: it changes its first operand, and returns it.
        saves_result: autograd keeps a result for the backward, so that it must not be changed in place.
        other_kernel: without grad mode another kernel runs, whose last bits differ (LSTM, GRU).
        uses: how many gradients its first operand, or a parameter of its module, at most sums.
        trainable: its module has parameters.
    """

    name: str
    family: str
    line: str
    setup: str = ""
    accepts: Accepts = lambda a: True
    partners: tuple[Partner, ...] = ()
    attributes: Mapping[str, Callable[[Spec], Sequence[Scalar]]] = field(default_factory=dict)
    results: Callable[[Sequence[Spec], Attributes], Results] = lambda specs, k: ((specs[0].shape, specs[0].dtype),)
    traits: tuple[str, ...] = ()
    low: bool = True
    empty: bool = False
    autocast: Autocast = "keep"
    mixed: bool = False
    differentiable: bool = True
    view: bool = False
    inner_view: Accepts = lambda a: False
    strided: bool = False
    elementwise: bool = False
    in_place: bool = False
    saves_result: bool = False
    other_kernel: bool = False
    uses: int = 1
    trainable: bool = False

    @property
    def given(self) -> tuple[int, ...]:
        """The positions of the operands that its own module is called with; none where it has none.

        Example:
            >>> CATALOGUE["embedding"].line, CATALOGUE["embedding"].given
            ('{a} + {module}({b} % 3).mean(0)', (1,))
        """
        _, called, rest = self.line.partition("{module}(")
        if not called:
            return ()
        depth = list(accumulate((char == "(") - (char == ")") for char in rest))
        inside = rest[: depth.index(-1)]
        return tuple(position for position, letter in enumerate("abcd") if f"{{{letter}}}" in inside)

    def takes(self, spec: Spec, *, autocast: bool, parameters: str = "") -> bool:
        """May a value of this spec be its first operand?

        Args:
            spec: the value.
            autocast: is autocast on?
            parameters: the dtype of the program's parameters; empty for that of the value.
        """
        seen = seen_by(self, spec, autocast=autocast)
        return (
            spec.floating
            and (self.low or not seen.low)
            and (self.empty or spec.size > 0)
            and not (autocast and self.autocast == "no")
            and (not parameters or self._goes_with(seen, seen_by(self, Spec((), parameters), autocast=autocast)))
            and self.accepts(seen)
            and all(choices(seen) for choices in self.attributes.values())
        )

    def _goes_with(self, seen: Spec, parameter: Spec) -> bool:
        """Does an operand go with the parameters and buffers of the operation's own module?"""
        if not (self.trainable or self.mixed):
            return True
        return seen.dtype == parameter.dtype or (self.mixed and seen.low and parameter.dtype == "float32")


def seen_by(operation: Operation, spec: Spec, *, autocast: bool) -> Spec:
    """Return the spec as the operation sees it: autocast casts the operands of ``low`` operations itself, but not float64."""
    if autocast and operation.autocast == "low" and spec.floating and spec.dtype != "float64":
        return Spec(spec.shape, "float32", spec.requires_grad)
    return spec


def results_of(operation: Operation, specs: Sequence[Spec], attributes: Attributes, *, autocast: str) -> Results:
    """Return shape and dtype of every result, under autocast to a dtype if one is given.

    Example:
        >>> results_of(CATALOGUE["matmul"], [Spec((2, 3)), Spec((3, 3))], {}, autocast="bfloat16")
        (((2, 3), 'bfloat16'),)
        >>> results_of(CATALOGUE["softmax"], [Spec((2, 3))], {"d": 0}, autocast="bfloat16")
        (((2, 3), 'float'),)
    """
    seen = [seen_by(operation, spec, autocast=bool(autocast)) for spec in specs]
    made = operation.results(seen, attributes)
    if not autocast or operation.autocast == "keep":
        return made
    return tuple((shape, _cast(operation, dtype, autocast)) for shape, dtype in made)


def _cast(operation: Operation, dtype: str, autocast: str) -> str:
    """Return what autocast makes of a result."""
    if dtype not in FLOATS or dtype == "float64":
        return dtype
    return autocast if operation.autocast == "low" else "float"


class _Operand:
    """Prints as the operand's name; its attributes are those of its spec."""

    __slots__ = ("name", "spec")

    def __init__(self, name: str, spec: Spec) -> None:
        self.name, self.spec = name, spec

    def __format__(self, _: str) -> str:
        return self.name

    def __getattr__(self, attribute: str) -> object:
        return getattr(self.spec, attribute)


def render(template: str, operands: Sequence[str], specs: Sequence[Spec], attributes: Attributes, module: str = "") -> str:
    """Fill in the `line` or `setup` of an operation.

    Example:
        >>> render("F.dropout({a}, {p})", ["h0"], [Spec((2, 3))], {"p": 0.5})
        'F.dropout(h0, 0.5)'
        >>> render("nn.Linear({a.last}, {n})", ["h0"], [Spec((2, 3))], {"n": 4})
        'nn.Linear(3, 4)'
    """
    named = {letter: _Operand(name, spec) for letter, name, spec in zip("abcd", operands, specs, strict=False)}
    literals = {name: repr(value) for name, value in attributes.items()}
    return template.format(module=module, **named, **literals)


CATALOGUE: Registry[Operation] = Registry("operation")


def register(operation: Operation) -> Operation:
    """Add an operation to the catalogue, for every strategy to draw from.

    Raises:
        InvalidArgument: the name is taken.
    """
    applicable.cache_clear()
    return CATALOGUE.add(operation)


@dataclass(frozen=True)
class Group:
    """Operations of one family with the same traits, all in place or none, all of them layers or none.

    A layer is a module that is called with one operand, so that it can stand in an ``nn.Sequential``.
    """

    family: str
    traits: tuple[str, ...]
    in_place: bool
    layers: bool
    operations: tuple[Operation, ...]


@lru_cache(maxsize=8192)
def applicable(
    spec: Spec,
    names: frozenset[str] | None,
    autocast: bool,  # noqa: FBT001
    parameters: str = "",
) -> tuple[Group, ...]:
    """Return the operations that take `spec`, of those named or of all, in groups.

    `autocast` and `parameters` are those of `Operation.takes`.
    """
    found: dict[tuple[str, tuple[str, ...], bool, bool], list[Operation]] = {}
    for operation in CATALOGUE.values():
        if (names is None or operation.name in names) and operation.takes(spec, autocast=autocast, parameters=parameters):
            key = (operation.family, operation.traits, operation.in_place, operation.line == "{module}({a})")
            found.setdefault(key, []).append(operation)
    return tuple(Group(*key, tuple(operations)) for key, operations in found.items())
