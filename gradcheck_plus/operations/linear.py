"""Linear maps, and small nested modules of them."""

from collections.abc import Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.case.program import Shape
from gradcheck_plus.operations.conditions import (
    TWIN,
    always,
    filled_last,
    index,
    one_of,
    rank,
    scalar,
    shaped,
    weight,
    wide_last,
)
from gradcheck_plus.operations.entry import Attributes, Operation, Partner, Results
from gradcheck_plus.operations.tables import functions, layers

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


_ACROSS, _DOWN = weight(lambda a: a.shape[-1:]), weight(lambda a: a.shape[:1])
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
    *functions(
        _FAMILY, {
            "mm": "torch.mm({a}, {b})",
        },
        accepts=rank(2), partners=(_SQUARE,), autocast="low", empty=True,
    ),
    *functions(
        _FAMILY, {
            "tensordot": "torch.tensordot({a}, {b}, 1)",
        },
        accepts=rank(2), partners=(_SQUARE,), autocast="free", empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "mv": "torch.mv({a}, {b})",
        },
        accepts=rank(2), partners=(_ACROSS,), results=shaped(lambda shape, k: shape[:1]), autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "addmv": "torch.addmv({c}, {a}, {b}, beta=0.5)",
        },
        accepts=rank(2), partners=(_ACROSS, _DOWN), results=shaped(lambda shape, k: shape[:1]), autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "addr": "torch.addr({a}, {c}, {b}, alpha=0.5)",
        },
        accepts=rank(2), partners=(_ACROSS, _DOWN), autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "dot": "torch.dot({a}, {b})",
            "vdot": "torch.vdot({a}, {b})",
        },
        accepts=rank(1), partners=(TWIN,), results=scalar, empty=True,
    ),
    *functions(
        _FAMILY, {
            "inner": "torch.inner({a}, {b})",
        },
        accepts=rank(1), partners=(TWIN,), results=scalar, empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "ger": "torch.ger({a}, {b})",
        },
        accepts=rank(1), partners=(TWIN,), results=lambda specs, k: (((specs[0].size, specs[0].size), specs[0].dtype),),
        empty=True,
    ),
    *functions(
        _FAMILY, {
            "kron": "torch.kron({a}, {b})",
        },
        accepts=rank(1), partners=(TWIN,), results=lambda specs, k: (((specs[0].size ** 2,), specs[0].dtype),),
        empty=True,
    ),
    *functions(
        _FAMILY, {
            "addbmm": "torch.addbmm(torch.zeros_like({a}[0]), {a}, {b})",
        },
        accepts=rank(3), partners=(_BATCH,), results=shaped(lambda shape, k: shape[1:]), autocast="low",
    ),
    *functions(
        _FAMILY, {
            "functional_bilinear": "F.bilinear({a}, {a}, {b})",
        },
        accepts=filled_last, results=shaped(lambda shape, _: (*shape[:-1], 2)),
        partners=(weight(lambda a: (2, a.last, a.last)),),
        empty=True, inner_view=always, uses=2,
    ),
    *layers(
        _FAMILY, {
            "linear_parametrised": "nn.utils.parametrizations.weight_norm(nn.Linear({a.last}, 2))",
        },
        accepts=filled_last, results=shaped(lambda shape, _: (*shape[:-1], 2)), autocast="low", empty=True,
        inner_view=always, trainable=True,
    ),
)  # fmt: skip
