"""Copies in other shapes, and in another order."""

from gradcheck_plus.operations.conditions import always, at_least, both, filled_last, rank, scalar, shaped
from gradcheck_plus.operations.tables import functions

_FAMILY = "shapes"


OPERATIONS = (
    *functions(
        _FAMILY, {
            "contiguous": "{a}.contiguous()",
            "reshaped": "{a}.reshape_as({a})",
            "type_as": "{a}.type_as({a})",
        },
        accepts=at_least(1), elementwise=True, empty=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "fliplr_like": "torch.flip({a}, (-1,))",
            "clone": "{a}.clone()",
            "view_copy": "torch.view_copy({a}, {a}.shape)",
            "clone_kept": "{a}.clone(memory_format=torch.contiguous_format)",
        },
        accepts=at_least(1), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "swap_back": "{a}.mT.contiguous().mT if {a}.dim() > 1 else {a}.clone()",
        },
        accepts=at_least(1), elementwise=True, empty=True, strided=True, view=True,
    ),
    *functions(
        _FAMILY, {
            "fliplr": "torch.fliplr({a})",
            "flipud": "torch.flipud({a})",
        },
        accepts=rank(2), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "rot90": "torch.rot90({a})",
        },
        accepts=rank(2), results=shaped(lambda shape, k: shape[::-1]), elementwise=True, empty=True, strided=True,
    ),
    *functions(
        _FAMILY, {
            "repeat": "{a}.repeat(2, *[1] * ({a}.dim() - 1))",
        },
        accepts=at_least(1), results=shaped(lambda shape, k: (2 * shape[0], *shape[1:])), empty=True,
    ),
    *functions(
        _FAMILY, {
            "repeat_interleave": "{a}.repeat_interleave(2, 0)",
        },
        accepts=at_least(1), results=shaped(lambda shape, k: (2 * shape[0], *shape[1:])), empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "tile": "{a}.tile(2)",
        },
        accepts=at_least(1), results=shaped(lambda shape, k: (*shape[:-1], 2 * shape[-1])), empty=True,
    ),
    *functions(
        _FAMILY, {
            "diag_embed": "torch.diag_embed({a})",
            "diag": "torch.diag({a})",
            "diagflat": "torch.diagflat({a})",
        },
        accepts=rank(1), results=shaped(lambda shape, k: shape * 2), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "trace": "{a}.trace()",
        },
        accepts=lambda a: a.rank == 2 and a.shape[0] == a.shape[1], results=scalar, autocast="free",
    ),
    *functions(
        _FAMILY, {
            "linalg_vander": "torch.linalg.vander({a} / 4, N=2)",
        },
        accepts=rank(1), results=shaped(lambda shape, k: (shape[0], 2)), elementwise=True, empty=True, low=False,
    ),
    *functions(
        _FAMILY, {
            "combinations": "torch.combinations({a})",
        },
        accepts=both(rank(1), lambda a: a.size < 5),
        results=shaped(lambda shape, k: (shape[0] * (shape[0] - 1) // 2, 2)), empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "topk": "{a}.topk(2).values",
        },
        accepts=lambda a: a.rank > 0 and a.last > 2, results=shaped(lambda shape, k: (*shape[:-1], 2)), empty=True,
    ),
    *functions(
        _FAMILY, {
            "msort": "torch.msort({a})",
            "argsorted": "{a}.sort(dim=-1, descending=True, stable=True).values",
        },
        accepts=filled_last, elementwise=True, empty=True,
    ),
)  # fmt: skip
