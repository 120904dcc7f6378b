"""Linear maps, and small nested modules of them."""

from collections.abc import Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.conditions import always, filled_last, index, one_of, rank, shaped, wide_last
from gradcheck_plus.operations.entry import Attributes, Operation, Partner, Results

_FAMILY = "linear"


def _folded(a: Spec) -> bool:
    """Is the product taken of a matrix, and seen as what the operand was?"""
    return a.rank != 2


def _widths(a: Spec) -> Sequence[Scalar]:
    return (a.last, 2, 3, 4)


def _wide(shape: Shape, k: Attributes) -> Shape:
    return (*shape[:-1], index(k, "n"))


def _of(*ranks: int) -> Partner:
    """A tensor of one of these ranks that maps the last dimension to one of the same size; batches are the same."""

    def fits(a: Spec, b: Spec) -> bool:
        batch = () if b.rank == 2 else a.shape[:-2]
        return b.dtype == a.dtype != "float" and b.rank in ranks and b.shape == (*batch, a.last, a.last)

    return Partner(fits, fresh=lambda a: (*(a.shape[:-2] if 2 not in ranks else ()), a.last, a.last))


def _bias(a: Spec, b: Spec) -> bool:
    return b.dtype == a.dtype and b.shape in (a.shape, a.shape[-1:])


def _vector(a: Spec, b: Spec) -> bool:
    return b.dtype == a.dtype != "float" and b.rank == 1 and b.size > 0


def _outer(specs: Sequence[Spec], _: Attributes) -> Results:
    return (((specs[0].size, specs[1].size), specs[0].dtype),)


_SQUARE, _BATCH, _BIAS = _of(2), _of(3), Partner(_bias, fresh=lambda a: a.shape)

OPERATIONS = (
    Operation(
        "linear", _FAMILY, "{module}({a})", setup="nn.Linear({a.last}, {n}, bias={bias})", accepts=filled_last, empty=True,
        attributes={"n": _widths, "bias": one_of(True, False)}, results=shaped(_wide), autocast="low", trainable=True,
        inner_view=_folded,
    ),
    Operation(
        "square_linear", _FAMILY, "{module}({a})", setup="nn.Linear({a.last}, {a.last})", accepts=filled_last, empty=True,
        autocast="low", trainable=True, inner_view=_folded,
    ),
    Operation(
        "functional_linear", _FAMILY, "F.linear({a}, {b})", accepts=filled_last, empty=True, partners=(_SQUARE,),
        autocast="low",
    ),
    Operation("matmul", _FAMILY, "{a} @ {b}", accepts=filled_last, empty=True, partners=(_SQUARE,), autocast="low"),
    Operation("bmm", _FAMILY, "torch.bmm({a}, {b})", accepts=rank(3), empty=True, partners=(_BATCH,), autocast="low"),
    Operation(
        "addmm", _FAMILY, "torch.addmm({b}, {a}, {c})", accepts=rank(2), empty=True, partners=(_BIAS, _SQUARE), autocast="low",
    ),
    Operation(
        "baddbmm", _FAMILY, "torch.baddbmm({b}, {a}, {c}, alpha=0.5)", accepts=rank(3), empty=True, partners=(_BIAS, _BATCH),
        autocast="low",
    ),
    Operation(
        # Over a single element it multiplies instead, which autocast leaves alone.
        "einsum", _FAMILY, "torch.einsum('...i,ij->...j', {a}, {b})", accepts=wide_last, empty=True, partners=(_SQUARE,),
        autocast="low", inner_view=always,
    ),
    Operation(
        "outer", _FAMILY, "torch.outer({a}, {b})", accepts=rank(1), empty=True, results=_outer,
        partners=(Partner(_vector, fresh=lambda a: (2,)),),
    ),
    Operation(
        "mlp", _FAMILY, "{module}({a})", accepts=filled_last, empty=True, autocast="low", trainable=True,
        setup="nn.Sequential(nn.Linear({a.last}, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, {a.last})))",
        traits=("nested-module",), inner_view=_folded,
    ),
    Operation(
        "gated", _FAMILY, "{module}['up']({a}).sigmoid() * {module}['down']({a})", accepts=filled_last, empty=True,
        setup="nn.ModuleDict({{'up': nn.Linear({a.last}, {a.last}), 'down': nn.Linear({a.last}, {a.last})}})",
        autocast="low", trainable=True, traits=("nested-module",), uses=2,
    ),
    Operation(
        "bilinear", _FAMILY, "{module}({a}, {a})", setup="nn.Bilinear({a.last}, {a.last}, 2)", accepts=filled_last, empty=True,
        results=shaped(lambda shape, _: (*shape[:-1], 2)), trainable=True, uses=2,
    ),
)  # fmt: skip
