"""Operations that join tensors, or take them apart again."""

from collections.abc import Sequence

from gradcheck_plus.case import Spec
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.conditions import TWIN, at_least, even_last, filled_last, rank, twice, wide_last
from gradcheck_plus.operations.entry import Attributes, Operation, Partner, Results
from gradcheck_plus.operations.tables import functions

_FAMILY = "joining"
_SEVERAL = ("several-results",)


def _rows(a: Spec, b: Spec) -> bool:
    return b.dtype == a.dtype != "float" and b.rank == a.rank and b.shape[:-1] == a.shape[:-1]


def _joined(specs: Sequence[Spec], _: Attributes) -> Results:
    a, b = specs
    return (((*a.shape[:-1], a.last + b.last), a.dtype),)


def _side_by_side(specs: Sequence[Spec], _: Attributes) -> Results:
    sizes = list(specs[0].shape) or [1]
    sizes[1 if len(sizes) > 1 else 0] *= 2
    return ((tuple(sizes), specs[0].dtype),)


def _pieces(*shapes: Shape, dtype: str) -> Results:
    return tuple((shape, dtype) for shape in shapes)


def _halves(specs: Sequence[Spec], _: Attributes) -> Results:
    a = specs[0]
    return _pieces(*[(*a.shape[:-1], a.last // 2)] * 2, dtype=a.dtype)


def _first_and_rest(specs: Sequence[Spec], _: Attributes) -> Results:
    a = specs[0]
    return _pieces((*a.shape[:-1], 1), (*a.shape[:-1], a.last - 1), dtype=a.dtype)


def _upper_and_lower(specs: Sequence[Spec], _: Attributes) -> Results:
    a = specs[0]
    n = a.shape[0]
    return _pieces(((n + 1) // 2, *a.shape[1:]), (n // 2, *a.shape[1:]), dtype=a.dtype)


OPERATIONS = (
    Operation(
        "cat", _FAMILY, "torch.cat([{a}, {b}], -1)", accepts=at_least(1), results=_joined, empty=True,
        partners=(Partner(_rows, fresh=lambda a: a.shape),),
    ),
    Operation(
        "stack", _FAMILY, "torch.stack([{a}, {b}])", partners=(TWIN,), empty=True,
        results=lambda specs, k: (((2, *specs[0].shape), specs[0].dtype),),
    ),
    Operation("hstack", _FAMILY, "torch.hstack([{a}, {b}])", partners=(TWIN,), empty=True, results=_side_by_side),
    Operation(
        "chunk", _FAMILY, "{a}.chunk(2, -1)", accepts=even_last, results=_halves, view=True, strided=True, empty=True,
        traits=_SEVERAL,
    ),
    Operation(
        "split", _FAMILY, "{a}.split([1, {a.last} - 1], -1)", accepts=wide_last, results=_first_and_rest, view=True,
        strided=True, empty=True, traits=_SEVERAL,
    ),
    Operation(
        "tensor_split", _FAMILY, "{a}.tensor_split(2)", accepts=lambda a: a.rank > 0 and a.shape[0] > 1, view=True, empty=True,
        results=_upper_and_lower, traits=_SEVERAL, uses=2,
    ),
    Operation(
        "unbind", _FAMILY, "{a}.unbind(0)", accepts=lambda a: a.shape[:1] == (2,), view=True, empty=True, traits=_SEVERAL,
        results=lambda specs, k: ((specs[0].shape[1:], specs[0].dtype),) * 2,
    ),
    Operation(
        # Not `torch.aminmax`, which has no derivative on torch 2.11.
        "aminmax", _FAMILY, "({a}.amin(0), {a}.amax(0))", accepts=lambda a: a.rank > 0 and a.shape[0] > 0, saves_result=True,
        results=lambda specs, k: ((specs[0].shape[1:], specs[0].dtype),) * 2, traits=_SEVERAL, empty=True, uses=2,
    ),
    Operation(
        "sort", _FAMILY, "{a}.sort(-1)", accepts=filled_last, traits=(*_SEVERAL, "integer-value"), empty=True,
        results=lambda specs, k: ((specs[0].shape, specs[0].dtype), (specs[0].shape, "int64")),
    ),
    *functions(
        _FAMILY, {
            "unsafe_chunk": "{a}.unsafe_chunk(2, -1)",
            "split_equal": "{a}.split({a.last} // 2, -1)",
            "unsafe_split": "{a}.unsafe_split({a.last} // 2, -1)",
        },
        traits=("several-results",), accepts=even_last, results=_halves, empty=True, strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "split_with_sizes": "{a}.split_with_sizes([1, {a.last} - 1], -1)",
            "unsafe_split_with_sizes": "{a}.unsafe_split_with_sizes([1, {a.last} - 1], -1)",
        },
        traits=("several-results",), accepts=wide_last, results=_first_and_rest, empty=True, strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "array_split": "torch.tensor_split({a}, [({a.shape[0]} + 1) // 2])",
        },
        traits=("several-results",), accepts=lambda a: a.rank > 1 and a.shape[0] > 1, results=_upper_and_lower,
        empty=True, uses=2, view=True,
    ),
    *functions(
        _FAMILY, {
            "vsplit": "{a}.vsplit(2)",
        },
        traits=("several-results",), accepts=lambda a: a.rank > 1 and a.shape[0] in (2, 4), results=_upper_and_lower,
        empty=True, uses=2, view=True,
    ),
    *functions(
        _FAMILY, {
            "hsplit": "{a}.hsplit(2)",
        },
        traits=("several-results",), accepts=lambda a: a.rank == 2 and even_last(a), results=_halves, empty=True,
        strided=True, uses=2, view=True,
    ),
    *functions(
        _FAMILY, {
            "dsplit": "{a}.dsplit(2)",
        },
        traits=("several-results",), accepts=lambda a: a.rank == 3 and even_last(a), results=_halves, empty=True,
        strided=True, uses=2, view=True,
    ),
    *functions(
        _FAMILY, {
            "concat": "torch.concat([{a}, {b}])",
            "concatenate": "torch.concatenate([{a}, {b}])",
        },
        partners=(TWIN,), accepts=at_least(1), results=lambda specs,
        k: (((2 * specs[0].shape[0], *specs[0].shape[1:]), specs[0].dtype),), empty=True,
    ),
    *functions(
        _FAMILY, {
            "vstack": "torch.vstack([{a}, {b}])",
        },
        partners=(TWIN,), accepts=at_least(2), results=lambda specs,
        k: (((2 * specs[0].shape[0], *specs[0].shape[1:]), specs[0].dtype),), empty=True,
    ),
    *functions(
        _FAMILY, {
            "column_stack": "torch.column_stack([{a}, {b}])",
        },
        partners=(TWIN,), accepts=rank(1), results=lambda specs, k: (((specs[0].size, 2), specs[0].dtype),), empty=True,
    ),
    *functions(
        _FAMILY, {
            "dstack": "torch.dstack([{a}, {b}])",
        },
        partners=(TWIN,), accepts=rank(2), results=lambda specs, k: (((*specs[0].shape, 2), specs[0].dtype),),
        empty=True,
    ),
    *functions(
        _FAMILY, {
            "block_diag": "torch.block_diag({a}, {b})",
        },
        partners=(TWIN,), accepts=rank(2), results=lambda specs,
        k: (((2 * specs[0].shape[0], 2 * specs[0].shape[1]), specs[0].dtype),), empty=True,
    ),
    *functions(
        _FAMILY, {
            "cartesian_prod": "torch.cartesian_prod({a}, {b})",
        },
        partners=(TWIN,), accepts=rank(1), results=lambda specs, k: (((specs[0].size ** 2, 2), specs[0].dtype),),
        empty=True,
    ),
    *functions(
        _FAMILY, {
            "meshgrid": 'torch.meshgrid({a}, {a}.sin(), indexing="ij")',
        },
        traits=("several-results",), accepts=rank(1), results=lambda specs,
        k: ((specs[0].shape * 2, specs[0].dtype),) * 2, empty=True, strided=True, uses=2, view=True,
    ),
    *functions(
        _FAMILY, {
            "broadcast_tensors": "torch.broadcast_tensors({a}, {a}.sin())",
        },
        traits=("several-results",), accepts=rank(2), results=twice, empty=True, view=True,
    ),
)  # fmt: skip
