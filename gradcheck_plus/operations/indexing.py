"""Indexing, gathering and scattering. Of integers that are no index yet, the remainder is one."""

from collections.abc import Sequence

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import INDICES, MASK, at_least, filled_last, one_of
from gradcheck_plus.operations.entry import Attributes, Operation, Results

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
)  # fmt: skip
