"""Views: other shapes and strides on the same memory."""

from collections.abc import Callable, Mapping, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.conditions import at_least, both, even_last, filled_last, index, rank, shaped, swapped, wide_last
from gradcheck_plus.operations.entry import Accepts, Attributes, Operation
from gradcheck_plus.operations.tables import functions

_FAMILY = "views"


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
        name, _FAMILY, line, accepts=accepts, attributes=attributes or {}, results=shaped(shape), view=True, strided=strided,
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
    *functions(
        _FAMILY, {
            "view_as": "{a}.view_as({a})",
            "expand_as": "{a}.expand_as({a})",
            "broadcast_to": "torch.broadcast_to({a}, {a}.shape)",
            "alias": "torch.ops.aten.alias({a})",
        },
        traits=("view",), accepts=at_least(1), elementwise=True, empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "ravel": "{a}.ravel()",
        },
        traits=("view",), accepts=at_least(1), results=shaped(lambda shape, k: (Spec(shape).size,)), empty=True,
        view=True,
    ),
    *functions(
        _FAMILY, {
            "swapdims": "{a}.swapdims(0, 1)",
            "swapaxes_function": "torch.swapaxes({a}, 0, 1)",
        },
        traits=("view",), accepts=at_least(2), results=shaped(lambda shape, k: swapped(shape, 0, 1)), empty=True,
        strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "moveaxis": "{a}.moveaxis(-1, 0)",
        },
        traits=("view",), accepts=at_least(2), results=shaped(lambda shape, k: (shape[-1], *shape[:-1])), empty=True,
        strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "permute": "{a}.permute(*reversed(range({a}.dim())))",
        },
        traits=("view",), accepts=at_least(1), results=shaped(lambda shape, k: shape[::-1]), empty=True, strided=True,
        view=True,
    ),
    *functions(
        _FAMILY, {
            "t": "{a}.t()",
            "numpy_t": "{a}.T",
            "adjoint": "{a}.adjoint()",
            "h": "{a}.H",
            "mh": "{a}.mH",
        },
        traits=("view",), accepts=rank(2), results=shaped(lambda shape, k: shape[::-1]), elementwise=True, empty=True,
        strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "unflatten": "{a}.unflatten(-1, (2, -1))",
        },
        traits=("view",), accepts=both(rank(1, 2, 3), even_last),
        results=shaped(lambda shape, k: (*shape[:-1], 2, shape[-1] // 2)), empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "as_strided": "{a}.contiguous().as_strided((2, 2), (0, 0))",
        },
        traits=("view",), accepts=filled_last, results=shaped(lambda shape, k: (2, 2)), strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "real": "{a}.real",
            "conj": "{a}.conj()",
            "resolve_conj": "{a}.resolve_conj()",
            "resolve_neg": "{a}.resolve_neg()",
            "positive": "torch.positive({a})",
        },
        traits=("view",), accepts=rank(0, 1), elementwise=True, empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "linalg_diagonal": "torch.linalg.diagonal({a})",
        },
        traits=("view",), accepts=lambda a: a.rank > 1 and a.shape[0] == a.shape[1] and a.rank == 2,
        results=shaped(lambda shape, k: shape[:1]), strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "atleast_1d": "torch.atleast_1d({a})",
        },
        traits=("view",), accepts=rank(0), results=shaped(lambda shape, k: (1,)), elementwise=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "atleast_2d": "torch.atleast_2d({a})",
        },
        traits=("view",), accepts=rank(1), results=shaped(lambda shape, k: (1, *shape)), elementwise=True, empty=True,
        view=True,
    ),
    *functions(
        _FAMILY, {
            "atleast_3d": "torch.atleast_3d({a})",
        },
        traits=("view",), accepts=rank(2), results=shaped(lambda shape, k: (*shape, 1)), empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "squeeze_all": "{a}.squeeze()",
        },
        traits=("view",), accepts=lambda a: 1 in a.shape,
        results=shaped(lambda shape, k: tuple(n for n in shape if n != 1)), elementwise=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "select_last": "{a}.select(-1, 0)",
            "index_last": "{a}[..., -1]",
        },
        traits=("view",), accepts=both(at_least(2), filled_last), results=shaped(lambda shape, k: shape[:-1]),
        empty=True, strided=True, view=True,
    ),
)  # fmt: skip
