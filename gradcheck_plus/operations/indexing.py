"""Indexing, gathering and scattering. Of integers that are no index yet, the remainder is one."""

from collections.abc import Sequence

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import (
    INDICES,
    MASK,
    always,
    at_least,
    both,
    filled_first,
    filled_last,
    one_of,
    rank,
    scalar,
    weight,
)
from gradcheck_plus.operations.entry import Attributes, Operation, Results
from gradcheck_plus.operations.tables import functions, layers

_FAMILY = "indexing"


def _taken(specs: Sequence[Spec], _: Attributes) -> Results:
    return (((*specs[0].shape[:-1], *specs[1].shape), specs[0].dtype),)


def _picked(name: str, line: str) -> Operation:
    """Picks along the last dimension."""
    return Operation(name, _FAMILY, line, accepts=filled_last, partners=(INDICES,), results=_taken, empty=True)


OPERATIONS = (
    Operation("flip", _FAMILY, "{a}.flip(0)", accepts=at_least(1), empty=True),
    Operation("roll", _FAMILY, "{a}.roll({n}, -1)", accepts=at_least(1), attributes={"n": one_of(1, 2)}, empty=True),
    Operation("tril", _FAMILY, "{a}.tril()", accepts=at_least(2), empty=True),
    Operation("triu", _FAMILY, "{a}.triu(1)", accepts=at_least(2), empty=True),
    _picked("take", "{a}[..., {b} % {a.last}]"),
    _picked("index_select", "{a}.index_select(-1, {b} % {a.last})"),
    _picked("gather", "{a}.gather(-1, ({b} % {a.last}).expand(*{a}.shape[:-1], -1))"),
    Operation(
        "take_along_dim", _FAMILY, "torch.take_along_dim({a}, {a}.argsort(-1), -1)", accepts=filled_last, empty=True,
    ),
    Operation(
        "index_add", _FAMILY, "{a}.index_add(-1, {b} % {a.last}, {a}[..., {b} % {a.last}])", accepts=filled_last, empty=True,
        partners=(INDICES,), uses=2,
    ),
    Operation(
        "scatter_add", _FAMILY, "{a}.scatter_add(-1, ({b} % {a.last}).expand(*{a}.shape[:-1], -1), {a}[..., {b} % {a.last}])",
        accepts=filled_last, partners=(INDICES,), uses=2, empty=True,
    ),
    Operation(
        # `mean` rather than `sum`, which CUDA autocast runs in float32.
        "embedding", _FAMILY, "{a} + {module}({b} % 3).mean(0)", setup="nn.Embedding(3, {a.last})", accepts=at_least(1),
        partners=(INDICES,), trainable=True, empty=True,
    ),
    Operation("masked_fill", _FAMILY, "{a}.masked_fill(~{b}, 0.5)", partners=(MASK,), empty=True, elementwise=True),
    *functions(
        _FAMILY, {
            "index_copy": "{a}.index_copy(-1, {b}[:1] % {a.last}, {a}[..., :1] * 2)",
            "index_fill": "{a}.index_fill(-1, {b} % {a.last}, 0.5) + {a}",
            "scatter": "{a}.scatter(-1, ({b}[:1] % {a.last}).expand(*{a}.shape[:-1], -1), {a}[..., :1] * 2)",
            "scatter_value": "{a}.scatter(-1, ({b} % {a.last}).expand(*{a}.shape[:-1], -1), 0.5) + {a}",
        },
        accepts=filled_last, partners=(INDICES,), empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "index_put": "{a}.index_put(({b} % {a.shape[0]},), {a}[{b} % {a.shape[0]}] * 2, accumulate=True)",
            "put": "{a}.put({b}[:1] % {a.size}, {a}.flatten()[:1] * 2)",
            "index_value": "{a}.index_put(({b} % {a.shape[0]},), {a}.new_ones(())) * 2 + {a}",
            "index_setitem": "{a}.index_add(0, {b}[:1] % {a.shape[0]}, {a}[:1])",
        },
        accepts=filled_last, partners=(INDICES,), uses=2,
    ),
    *functions(
        _FAMILY, {
            "scatter_reduce": (
                "{a}.scatter_reduce(-1, ({b} % {a.last}).expand(*{a}.shape[:-1], -1), {a}[..., {b} % {a.last}] * 2, "
                '"mean")'
            ),
            "scatter_amax": (
                "{a}.scatter_reduce(-1, ({b} % {a.last}).expand(*{a}.shape[:-1], -1), {a}[..., {b} % {a.last}] + 1, "
                '"amax")'
            ),
        },
        accepts=filled_last, partners=(INDICES,), empty=True, saves_result=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "take_flat": "torch.take({a}, {b} % {a.size})",
            "index_flat": "{a}.flatten()[{b} % {a.size}]",
        },
        accepts=filled_last, partners=(INDICES,), results=lambda specs, k: ((specs[1].shape, specs[0].dtype),),
    ),
    *functions(
        _FAMILY, {
            "masked_scatter": "{a}.masked_scatter({b}, {a}.flatten() * 2)",
            "where_scalar": "torch.where({b}, {a}, 0.5) + {a}",
            "where_other": "{a}.where({b}, {a} * 2)",
        },
        partners=(MASK,), empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "masked_fill_tensor": "{a}.masked_fill({b}, {a}.detach().sum()) + {a}",
        },
        partners=(MASK,), autocast="free", empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "masked_select": "{a}.masked_select({b}).sum() + {a}.sum()",
            "masked_index": "({a} * 2)[{b}.expand({a}.shape)].sum() + {a}.sum()",
        },
        partners=(MASK,), results=scalar, autocast="free", empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "select_scatter": "{a}.select_scatter({a}[..., 0] * 2, -1, 0)",
            "slice_scatter": "{a}.slice_scatter({a}[..., :1] * 2, -1, 0, 1)",
        },
        accepts=filled_last, empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "gather_sorted": "{a}.gather(-1, {a}.detach().argsort(-1))",
        },
        accepts=filled_last, elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "diagonal_scatter": "{a}.diagonal_scatter({a}.diagonal() * 2)",
            "as_strided_scatter": (
                "{a}.contiguous().as_strided_scatter({a}.diagonal() * 2, {a}.diagonal().shape, ({a.last} + 1,))"
            ),
        },
        accepts=rank(2), empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "narrow_copy": "torch.narrow_copy({a}, 0, 0, {a.shape[0]})",
        },
        accepts=rank(2), elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "nonzero": "{a}[({a}.detach() > 0).nonzero(as_tuple=True)].sum() + {a}.sum()",
        },
        accepts=at_least(1), results=scalar, autocast="free", empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "segment_reduce": (
                'torch.segment_reduce({a}.flatten(), "sum", '
                "lengths={a}.new_tensor([{a.size}], dtype=torch.int64)).sum()"
            ),
        },
        accepts=at_least(1), results=scalar, autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "segment_mean": (
                'torch.segment_reduce({a}.flatten(), "mean", '
                "lengths={a}.new_tensor([{a.size}], dtype=torch.int64)).squeeze(0)"
            ),
        },
        accepts=both(at_least(1), filled_first), results=scalar, inner_view=always, saves_result=True,
    ),
    *layers(
        _FAMILY, {
            "embedding_bag": "nn.EmbeddingBag(3, {a.last})",
            "embedding_bag_sum": 'nn.EmbeddingBag(3, {a.last}, mode="sum")',
            "embedding_padded": 'nn.EmbeddingBag(3, {a.last}, mode="max")',
        },
        accepts=at_least(1), partners=(INDICES,), line="{a} + {module}({b}.unsqueeze(0) % 3)[0]", empty=True,
        trainable=True,
    ),
    *functions(
        _FAMILY, {
            "functional_embedding": "{a} + F.embedding({b} % 3, {c}).mean(0)",
        },
        accepts=at_least(1),
        partners=(INDICES, weight(lambda a: (3, a.last))),
        autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "functional_embedding_bag": "{a} + F.embedding_bag({b}.unsqueeze(0) % 3, {c})[0]",
        },
        accepts=at_least(1),
        partners=(INDICES, weight(lambda a: (3, a.last))),
        empty=True,
    ),
)  # fmt: skip
