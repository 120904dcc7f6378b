"""Primals: the inputs of a program."""

from dataclasses import dataclass

import msgspec

from gradcheck_plus.case import Primal, Scalar, Spec
from gradcheck_plus.case.point import Fill, Layout
from gradcheck_plus.case.program import Shape
from gradcheck_plus.strategies.chooser import Chooser

SHAPES: tuple[Shape, ...] = ((2, 3), (3,), (2, 2, 4), (4, 2), (2, 4, 3), (3, 3), (2, 3, 2, 2))
_CONSTANTS: tuple[Scalar, ...] = (2, 0.5, None, True)
#: Seeds of single values between 0.5 and 1: many activations make a constant of one that is negative or near zero.
_SINGLE = (10, 14, 25, 29)


@dataclass(frozen=True)
class Precision:
    """The dtypes of one case: of its parameters, and what autocast makes of values ("" without autocast)."""

    dtype: str = "float32"
    autocast: str = ""


def precision(c: Chooser, dtypes: tuple[str, ...]) -> Precision:
    """Draw the dtypes of a case; shrinks towards the first of `dtypes` without autocast."""
    full = [d for d in ("float32", "float64") if d in dtypes]
    plain = full[0] if full else c.pick(dtypes)
    if "float64" in full and c.flag("float64"):
        return Precision("float64")
    for dtype in ("bfloat16", "float16"):
        if plain == "float32" and c.flag(f"autocast-{dtype}"):
            return Precision(plain, dtype)
    return Precision(plain)


def primals(c: Chooser, of: Precision) -> list[Primal]:
    """Draw the primals of a case; shrinks towards one contiguous leaf of shape (2, 3)."""
    shape = c.pick(_shapes(c))
    grad = not c.flag("no-grad-input", 50)
    first = _tensor(c, of, 0, shape, grad=grad)
    drawn = [first, *(_tensor(c, of, n, _other_shape(c, shape), grad=grad) for n in range(1, 1 + _extra(c)))]
    return [*drawn, *_passengers(c, drawn)]


def _shapes(c: Chooser) -> tuple[Shape, ...]:
    """Return the shapes to choose from: those that the traits of the case need, if they need some."""
    special: list[Shape] = []
    if c.flag("scalar-value", 40):
        special.append(())
    if c.flag("empty-value", 15):
        special += [(0, 3), (2, 0)]
    if not special and c.on & {"recurrent"}:
        special += [(2, 2, 4), (2, 4, 3)]
    return tuple(special) or SHAPES


def _other_shape(c: Chooser, shape: Shape) -> Shape:
    if c.flag("empty-value", 30):
        return (0, 3)
    if c.flag("scalar-value", 30):
        return ()
    return c.mostly(shape, (shape, shape[-1:], (3,), (2, 3)), 60)


def _extra(c: Chooser) -> int:
    more = bool(c.on & {"mixed-requires-grad", "unused-input", "nested-input", "kwarg-tensor"})
    return c.integer(0, 2) + (1 if more and c.chance(70) else 0)


def _tensor(c: Chooser, of: Precision, number: int, shape: Shape, *, grad: bool) -> Primal:
    dtype = "bfloat16" if number and c.flag("bfloat16-input") else of.dtype
    if number and c.flag("mixed-requires-grad"):
        grad = not grad
    fill: Fill = c.flagged("special-values", ("integers", "large", "tiny", "zero")) or "generic"
    seed = number + 1 if shape else _SINGLE[number % len(_SINGLE)]
    return Primal(f"x{number}", Spec(shape, dtype, grad), seed, _layout(c), fill)


def _layout(c: Chooser) -> Layout:
    return (
        c.flagged("strided-input", ("transposed", "strided", "offset"))
        or c.flagged("expanded-input", ("expanded",))
        or c.flagged("non-leaf-input", ("view", "computed", "expanded-view"))
        or "contiguous"
    )


def _passengers(c: Chooser, drawn: list[Primal]) -> list[Primal]:
    """Draw what comes beside the tensors that gradients flow through."""
    first = drawn[0]
    more: list[Primal] = []

    def add(primal: Primal) -> None:
        number = len(drawn) + len(more)
        more.append(msgspec.structs.replace(primal, name=f"x{number}", seed=number + 1))

    if c.flag("duplicate-input"):
        add(Primal("", first.spec, alias=first.name))
    if first.spec.shape and c.flag("shared-storage"):
        drawn[0] = msgspec.structs.replace(first, layout="contiguous")
        add(Primal("", first.spec, share=first.name, fill=first.fill))
    if c.flag("integer-input"):
        add(Primal("", Spec((3,), "int64")))
    if c.flag("boolean-input"):
        add(Primal("", Spec(first.spec.shape[-1:], "bool")))
    if c.flag("python-value"):
        add(Primal("", Spec((), "python"), constant=c.pick(_CONSTANTS)))
    return more
