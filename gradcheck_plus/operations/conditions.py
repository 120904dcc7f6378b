"""The vocabulary that entries of the catalogue are written in."""

from collections.abc import Callable, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.entry import Accepts, Attributes, Partner, Results

_PRECISION = {"float": 0, "bfloat16": 1, "float16": 1, "float32": 2, "float64": 3}


def always(a: Spec) -> bool:
    """Accept every value."""
    return True


def at_least(rank: int) -> Accepts:
    """Accept values of at least `rank` dimensions."""
    return lambda a: a.rank >= rank


def rank(*ranks: int) -> Accepts:
    """Accept values of one of these ranks."""
    return lambda a: a.rank in ranks


def both(*conditions: Accepts) -> Accepts:
    """Accept what every condition accepts."""
    return lambda a: all(condition(a) for condition in conditions)


def even_last(a: Spec) -> bool:
    """Accept values whose last dimension has an even size."""
    return a.rank > 0 and a.last > 0 and a.last % 2 == 0


def dims(a: Spec) -> Sequence[Scalar]:
    """Choose a dimension."""
    return range(a.rank)


def filled_dims(a: Spec) -> Sequence[Scalar]:
    """Choose a dimension that has elements."""
    return [d for d in range(a.rank) if a.shape[d] > 0]


def wide_dims(a: Spec) -> Sequence[Scalar]:
    """Choose a dimension of several elements: over one, what is normalised has no gradient."""
    return [d for d in range(a.rank) if a.shape[d] > 1]


def wide_last(a: Spec) -> bool:
    """Accept values whose last dimension has several elements."""
    return a.rank > 0 and a.last > 1


def filled_last(a: Spec) -> bool:
    """Accept values whose last dimension has elements."""
    return a.rank > 0 and a.last > 0


def filled(a: Spec) -> bool:
    """Accept values that have elements."""
    return a.size > 0


def filled_first(a: Spec) -> bool:
    """Accept values whose first dimension has elements."""
    return a.rank > 0 and a.shape[0] > 0


def images(*ranks: int) -> Accepts:
    """Accept channels of something, with or without a batch of them. Only the batch may be empty."""
    return lambda a: a.rank in ranks and 0 not in a.shape[a.rank > 2 :]


def one_of(*choices: Scalar) -> Callable[[Spec], Sequence[Scalar]]:
    """Choose one of these, whatever the operand."""
    return lambda a: choices


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """Return the broadcast shape, or None where there is none.

    Example:
        >>> broadcast((2, 3), (3,)), broadcast((2, 3), (2,))
        ((2, 3), None)
    """
    sizes = []
    for i in range(1, max(len(a), len(b)) + 1):
        p, q = (a[-i] if i <= len(a) else 1), (b[-i] if i <= len(b) else 1)
        if p != q and 1 not in (p, q):
            return None
        sizes.append(q if p == 1 else p)
    return tuple(reversed(sizes))


def promoted(a: Spec, b: Spec) -> str:
    """Return the dtype that torch's promotion gives two floating tensors.

    Example:
        >>> promoted(Spec((2,), "bfloat16"), Spec((2,), "float32"))
        'float32'
        >>> promoted(Spec((), "float64"), Spec((2,), "float32"))
        'float32'
    """
    if a.dtype == b.dtype:
        return a.dtype
    if "float" in (a.dtype, b.dtype):
        return "float"
    if (a.rank == 0) != (b.rank == 0):
        return b.dtype if a.rank == 0 else a.dtype
    if _PRECISION[a.dtype] == _PRECISION[b.dtype]:
        return "float32"
    return max(a, b, key=lambda s: _PRECISION[s.dtype]).dtype


def same(specs: Sequence[Spec], _: Attributes) -> Results:
    """One result like the first operand."""
    return ((specs[0].shape, specs[0].dtype),)


def twice(specs: Sequence[Spec], _: Attributes) -> Results:
    """Two results like the first operand."""
    return (*same(specs, _), *same(specs, _))


def together(specs: Sequence[Spec], _: Attributes) -> Results:
    """One result of the broadcast shape and the promoted dtype of the operands."""
    shape, spec = specs[0].shape, specs[0]
    for other in specs[1:]:
        shape = broadcast(shape, other.shape) or ()
        spec = Spec(shape, promoted(spec, other))
    return ((shape, spec.dtype),)


def shaped(shape: Callable[[Shape, Attributes], Shape], dtype: str = "") -> Callable[[Sequence[Spec], Attributes], Results]:
    """One result whose shape is computed from the first operand's."""
    return lambda specs, k: ((shape(specs[0].shape, k), dtype or specs[0].dtype),)


def dropped(specs: Sequence[Spec], k: Attributes) -> Results:
    """One result without dimension ``d``."""
    d = index(k, "d")
    return ((specs[0].shape[:d] + specs[0].shape[d + 1 :], specs[0].dtype),)


def index(k: Attributes, name: str) -> int:
    """Return an attribute that is an integer."""
    value = k[name]
    assert isinstance(value, int), name
    return value


def scalar(specs: Sequence[Spec], _: Attributes) -> Results:
    """One result without dimensions."""
    return (((), specs[0].dtype),)


def swapped(shape: Shape, i: int, j: int) -> Shape:
    """Return the shape with two dimensions exchanged."""
    sizes = list(shape)
    sizes[i], sizes[j] = sizes[j], sizes[i]
    return tuple(sizes)


def broadcastable(a: Spec, b: Spec) -> bool:
    """Fit floating tensors that broadcast with the first operand, and do not take its elements away."""
    shape = broadcast(a.shape, b.shape)
    return b.floating and shape is not None and (a.size == 0 or Spec(shape).size > 0)


def broadcast_into(a: Spec, b: Spec) -> bool:
    """Fit floating tensors that broadcast to the shape of the first operand."""
    return b.floating and broadcast(a.shape, b.shape) == a.shape


def alike(a: Spec, b: Spec) -> bool:
    """Fit tensors of the same shape and dtype."""
    return a.shape == b.shape and a.dtype == b.dtype and a.dtype != "float"


def indices(_: Spec, b: Spec) -> bool:
    """Fit one or more integers in a row."""
    return b.dtype == "int64" and b.rank == 1 and b.size > 0


def mask(a: Spec, b: Spec) -> bool:
    """Fit masks that broadcast to the first operand."""
    return b.dtype == "bool" and b.rank <= a.rank and b.shape == a.shape[a.rank - b.rank :]


def weight(shape: Callable[[Spec], Shape]) -> Partner:
    """A tensor of a shape that the first operand says, of the same dtype."""
    return Partner(lambda a, b: b.shape == shape(a) and b.dtype == a.dtype != "float", fresh=shape)


INTO = Partner(broadcast_into, fresh=lambda a: a.shape[-1:])
ROW = Partner(broadcastable, fresh=lambda a: a.shape[-1:])
FULL = Partner(broadcastable, fresh=lambda a: a.shape)
TWIN = Partner(alike, fresh=lambda a: a.shape)
INDICES = Partner(indices)
MASK = Partner(mask)
ROWS = both(rank(2), wide_last)
P: dict[str, Callable[[Spec], Sequence[Scalar]]] = {"p": one_of(0.5, 0.2)}
