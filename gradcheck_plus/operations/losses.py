"""Loss functions, as operations like any other."""

from collections.abc import Sequence

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import INDICES, TWIN, both, one_of, rank, scalar, wide_last
from gradcheck_plus.operations.entry import Attributes, Operation, Results

_FAMILY = "losses"


def _reduced(specs: Sequence[Spec], k: Attributes) -> Results:
    return ((specs[0].shape if k["reduction"] == "none" else (), specs[0].dtype),)


OPERATIONS = (
    Operation(
        "mse_loss", _FAMILY, "F.mse_loss({a}, {b}, reduction={reduction})", partners=(TWIN,), results=_reduced,
        attributes={"reduction": one_of("mean", "sum", "none")}, autocast="free",
    ),
    Operation("smooth_l1_loss", _FAMILY, "F.smooth_l1_loss({a}, {b})", partners=(TWIN,), results=scalar, autocast="free"),
    Operation(
        "kl_div", _FAMILY, "F.kl_div({a}.log_softmax(-1), {b}.log_softmax(-1), log_target=True, reduction='sum')",
        accepts=wide_last, partners=(TWIN,), results=scalar, autocast="free", empty=True,
    ),
    Operation(
        # As many rows as there are targets, and as many targets as there are rows.
        "cross_entropy", _FAMILY, "F.cross_entropy({a}[:{b.size}], {b}[:{a.shape[0]}] % {a.last})",
        accepts=both(rank(2), wide_last), partners=(INDICES,), results=scalar, autocast="free",
    ),
)  # fmt: skip
