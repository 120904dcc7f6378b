"""Normalisation, with and without state. Over a single element it would have no gradient."""

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import always, both, rank, wide_dims, wide_last
from gradcheck_plus.operations.entry import Operation

_FAMILY = "normalisation"


def _several_per_channel(a: Spec) -> bool:
    return a.size // max(a.shape[1], 1) > 1


def _several_per_sample(a: Spec) -> bool:
    return a.size // max(a.shape[0], 1) > 1


def _lrn(a: Spec) -> bool:
    return a.rank == 3 or (a.rank == 4 and not a.low)


OPERATIONS = (
    Operation(
        "layer_norm", _FAMILY, "{module}({a})", setup="nn.LayerNorm({a.last})", accepts=wide_last, autocast="free",
        trainable=True, mixed=True, empty=True,
    ),
    Operation(
        "rms_norm",
        _FAMILY,
        "F.rms_norm({a}, ({a.last},), eps=1e-5)",  # by default it is that of the dtype
        accepts=wide_last,
        autocast="free",
        empty=True,
        uses=2,
    ),
    Operation(
        "group_norm", _FAMILY, "F.group_norm({a}, 1)", accepts=both(rank(2, 3, 4), _several_per_sample), autocast="free",
    ),
    Operation(
        "batch_norm", _FAMILY, "{module}({a})", setup="nn.BatchNorm1d({a.channels})", trainable=True, mixed=True,
        accepts=both(rank(2, 3), _several_per_channel), traits=("batch-norm",),
    ),
    Operation(
        "batch_norm2d", _FAMILY, "{module}({a})", setup="nn.BatchNorm2d({a.channels})", trainable=True, mixed=True,
        accepts=both(rank(4), _several_per_channel), traits=("batch-norm",),
    ),
    Operation(
        # Buffers, but no parameters.
        "batch_norm_plain", _FAMILY, "{module}({a})", setup="nn.BatchNorm1d({a.channels}, affine=False)", mixed=True,
        accepts=both(rank(2, 3), _several_per_channel), traits=("batch-norm",),
    ),
    Operation(
        "instance_norm", _FAMILY, "F.instance_norm({a})", accepts=both(rank(3, 4), wide_last), empty=True, inner_view=always,
    ),
    Operation("local_response_norm", _FAMILY, "F.local_response_norm({a}, 2)", accepts=_lrn, autocast="free", uses=3),
    Operation(
        "softmax", _FAMILY, "{a}.softmax({d})", attributes={"d": wide_dims}, saves_result=True, autocast="free", empty=True,
    ),
    Operation(
        "log_softmax", _FAMILY, "{a}.log_softmax({d})", attributes={"d": wide_dims}, saves_result=True, autocast="free",
        empty=True,
    ),
    Operation("normalize", _FAMILY, "F.normalize({a}, dim=-1)", accepts=wide_last, autocast="free", uses=2, empty=True),
)  # fmt: skip
