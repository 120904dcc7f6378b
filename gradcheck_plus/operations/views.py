"""Views: other shapes and strides on the same memory."""

from collections.abc import Callable, Mapping, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.conditions import at_least, both, even_last, index, rank, shaped, swapped, wide_last
from gradcheck_plus.operations.entry import Accepts, Attributes, Operation


def _view(
    name: str,
    line: str,
    shape: Callable[[Shape, Attributes], Shape],
    *,
    accepts: Accepts = lambda a: True,
    attributes: Mapping[str, Callable[[Spec], Sequence[Scalar]]] | None = None,
    strided: bool = False,
) -> Operation:
    return Operation(
        name, "views", line, accepts=accepts, attributes=attributes or {}, results=shaped(shape), view=True, strided=strided,
        empty=True, traits=("view",),
    )  # fmt: skip


def _earlier(a: Spec) -> Sequence[Scalar]:
    return range(a.rank - 1)


def _single(a: Spec) -> Sequence[Scalar]:
    return [d for d in range(a.rank) if a.shape[d] == 1]


def _some(a: Spec) -> bool:
    return a.rank > 0 and a.shape[0] > 0


def _several(a: Spec) -> bool:
    return a.rank > 0 and a.shape[0] > 1


def _square(a: Spec) -> bool:
    return a.rank > 1 and a.shape[0] == a.shape[1]


OPERATIONS = (
    _view(
        "transpose", "{a}.transpose({d}, -1)", lambda shape, k: swapped(shape, index(k, "d"), -1), attributes={"d": _earlier},
        strided=True,
    ),
    _view("swapaxes", "{a}.mT", lambda shape, k: swapped(shape, -2, -1), accepts=at_least(2), strided=True),
    _view("movedim", "{a}.movedim(0, -1)", lambda shape, k: (*shape[1:], shape[0]), accepts=at_least(2), strided=True),
    _view("flatten", "{a}.flatten(-2)", lambda shape, k: (*shape[:-2], shape[-2] * shape[-1]), accepts=at_least(2)),
    _view("reshape", "{a}.reshape({a.size})", lambda shape, k: (Spec(shape).size,), accepts=at_least(1)),
    # Splitting a dimension is a view whatever the strides; joining some is not.
    _view(
        "view", "{a}.view(*{a}.shape[:-1], 2, {a.last} // 2)", lambda shape, k: (*shape[:-1], 2, shape[-1] // 2),
        accepts=both(rank(1, 2, 3), even_last),
    ),
    _view("narrow", "{a}.narrow(0, 1, {a.shape[0]} - 1)", lambda shape, k: (shape[0] - 1, *shape[1:]), accepts=_several),
    _view("unsqueeze", "{a}.unsqueeze(0)", lambda shape, k: (1, *shape), accepts=rank(0, 1, 2)),
    _view(
        "squeeze", "{a}.squeeze({d})", lambda shape, k: shape[: index(k, "d")] + shape[index(k, "d") + 1 :],
        attributes={"d": _single},
    ),
    _view("expand", "{a}.expand(2, *{a}.shape)", lambda shape, k: (2, *shape), accepts=rank(0, 1, 2), strided=True),
    _view("select", "{a}[0]", lambda shape, k: shape[1:], accepts=_some),
    _view("step", "{a}[..., ::2]", lambda shape, k: (*shape[:-1], (shape[-1] + 1) // 2), accepts=wide_last, strided=True),
    _view("diagonal", "{a}.diagonal()", lambda shape, k: (*shape[2:], shape[0]), accepts=_square, strided=True),
    # Windows that overlap in memory.
    _view(
        "unfold", "{a}.unfold(-1, 2, 1)", lambda shape, k: (*shape[:-1], shape[-1] - 1, 2),
        accepts=both(rank(1, 2, 3), wide_last), strided=True,
    ),
)  # fmt: skip
