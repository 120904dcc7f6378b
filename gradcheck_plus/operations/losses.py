"""Loss functions, as operations like any other."""

from collections.abc import Sequence

from gradcheck_plus.case import Spec
from gradcheck_plus.operations.conditions import INDICES, ROWS, TWIN, both, filled, one_of, rank, scalar, wide_last
from gradcheck_plus.operations.entry import Attributes, Operation, Results
from gradcheck_plus.operations.tables import functions, layers

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
    *functions(
        _FAMILY, {
            "l1_loss": "F.l1_loss({a}, {b})",
            "huber_loss": "F.huber_loss({a}, {b})",
            "binary_cross_entropy_with_logits": "F.binary_cross_entropy_with_logits({a}, {b}.sigmoid())",
            "poisson_nll_loss": "F.poisson_nll_loss({a} / 16, {b}.abs())",
            "smooth_l1_beta": "F.smooth_l1_loss({a}, {b}, beta=0.5)",
            "margin_ranking_loss": "F.margin_ranking_loss({a}, {b} + 1, {a}.detach().sign(), margin=4.0)",
        },
        partners=(TWIN,), results=scalar, accepts=filled, autocast="free",
    ),
    *functions(
        _FAMILY, {
            "gaussian_nll_loss": "F.gaussian_nll_loss({a}, {b}, {a}.cos() + 1.5)",
        },
        partners=(TWIN,), results=scalar, accepts=filled, autocast="free", uses=2,
    ),
    *functions(
        _FAMILY, {
            "binary_cross_entropy": "F.binary_cross_entropy({a}.sigmoid() * 0.9 + 0.05, {b}.sigmoid())",
        },
        partners=(TWIN,), results=scalar, accepts=filled, autocast="no",
    ),
    *layers(
        _FAMILY, {
            "bce_loss_module": "nn.BCELoss()",
        },
        partners=(TWIN,), results=scalar, accepts=filled, autocast="no",
        line="{module}({a}.sigmoid() * 0.9 + 0.05, {b}.sigmoid())",
    ),
    *layers(
        _FAMILY, {
            "l1_loss_module": "nn.L1Loss()",
            "mse_loss_module": "nn.MSELoss()",
            "smooth_l1_loss_module": "nn.SmoothL1Loss()",
            "huber_loss_module": "nn.HuberLoss()",
        },
        partners=(TWIN,), results=scalar, accepts=filled, line="{module}({a}, {b})", autocast="free",
    ),
    *layers(
        _FAMILY, {
            "bce_with_logits_module": "nn.BCEWithLogitsLoss()",
        },
        partners=(TWIN,), results=scalar, accepts=filled, line="{module}({a}, {b}.sigmoid())", autocast="free",
    ),
    *layers(
        _FAMILY, {
            "poisson_nll_module": "nn.PoissonNLLLoss()",
        },
        partners=(TWIN,), results=scalar, accepts=filled, line="{module}({a} / 16, {b}.abs())", autocast="free",
    ),
    *functions(
        _FAMILY, {
            "soft_margin_loss": "F.soft_margin_loss({a} / 16, {a}.detach().cos().sign())",
        },
        results=scalar, accepts=filled, autocast="free",
    ),
    *functions(
        _FAMILY, {
            "hinge_embedding_loss": "F.hinge_embedding_loss({a}, {a}.detach().cos().sign(), margin=4.0)",
        },
        results=scalar, accepts=filled, autocast="free", uses=2,
    ),
    *layers(
        _FAMILY, {
            "soft_margin_module": "nn.SoftMarginLoss()",
            "hinge_embedding_module": "nn.HingeEmbeddingLoss()",
        },
        results=scalar, accepts=filled, line="{module}({a} / 16, {a}.detach().cos().sign())", autocast="free",
    ),
    *layers(
        _FAMILY, {
            "gaussian_nll_module": "nn.GaussianNLLLoss()",
        },
        partners=(TWIN,), results=scalar, accepts=filled, line="{module}({a}, {b}, {a}.cos() + 1.5)", uses=2,
    ),
    *layers(
        _FAMILY, {
            "margin_ranking_module": "nn.MarginRankingLoss(4.0)",
        },
        partners=(TWIN,), results=scalar, accepts=filled, line="{module}({a}, {b} + 1, {a}.detach().sign())",
        autocast="free",
    ),
    *functions(
        _FAMILY, {
            "multilabel_soft_margin_loss": "F.multilabel_soft_margin_loss({a}, {b}.sigmoid())",
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, uses=2,
    ),
    *functions(
        _FAMILY, {
            "cosine_embedding_loss": "F.cosine_embedding_loss({a}, {a}.cos(), {a}.new_ones({a.shape[0]}))",
        },
        results=scalar, accepts=ROWS, autocast="free", uses=6,
    ),
    *functions(
        _FAMILY, {
            "triplet_margin_loss": "F.triplet_margin_loss({a}, {b} + 4.5, {a}.sin() - 4.5, margin=20.0)",
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, autocast="free", uses=3,
    ),
    *functions(
        _FAMILY, {
            "triplet_margin_with_distance_loss": (
                "F.triplet_margin_with_distance_loss({a}, {b} + 4.5, {a}.sin() - 4.5, margin=20.0)"
            ),
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, uses=3,
    ),
    *functions(
        _FAMILY, {
            "cross_entropy_probabilities": "F.cross_entropy({a}, {b}.softmax(-1))",
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, autocast="free",
    ),
    *layers(
        _FAMILY, {
            "triplet_margin_module": "nn.TripletMarginLoss(20.0)",
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, line="{module}({a}, {b} + 4.5, {a}.sin() - 4.5)",
        autocast="free", uses=3,
    ),
    *layers(
        _FAMILY, {
            "triplet_margin_distance_module": "nn.TripletMarginWithDistanceLoss(margin=20.0)",
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, line="{module}({a}, {b} + 4.5, {a}.sin() - 4.5)", uses=3,
    ),
    *layers(
        _FAMILY, {
            "multilabel_soft_margin_module": "nn.MultiLabelSoftMarginLoss()",
        },
        partners=(TWIN,), results=scalar, accepts=ROWS, line="{module}({a}, {b}.sigmoid())", uses=2,
    ),
    *layers(
        _FAMILY, {
            "cosine_embedding_module": "nn.CosineEmbeddingLoss()",
        },
        results=scalar, accepts=ROWS, line="{module}({a}, {a}.cos(), {a}.new_ones({a.shape[0]}))",
        autocast="free", uses=6,
    ),
    *layers(
        _FAMILY, {
            "kl_div_module": 'nn.KLDivLoss(reduction="batchmean")',
        },
        partners=(TWIN,), results=scalar, accepts=wide_last, line="{module}({a}.log_softmax(-1), {b}.sigmoid() + 0.1)",
        autocast="free",
    ),
    *functions(
        _FAMILY, {
            "nll_loss": "F.nll_loss({a}[:{b.size}].log_softmax(-1), {b}[:{a.shape[0]}] % {a.last})",
            "cross_entropy_smooth": (
                "F.cross_entropy({a}[:{b.size}], {b}[:{a.shape[0]}] % {a.last}, label_smoothing=0.1, ignore_index=2)"
            ),
            "nll_rows": "F.nll_loss({a}[:1].log_softmax(-1)[..., None], {b}[:1, None] % {a.last})",
            "nll_loss2d": "F.nll_loss({a}[:1].log_softmax(-1)[..., None, None], {b}[:1, None, None] % {a.last})",
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled), autocast="free",
    ),
    *functions(
        _FAMILY, {
            "multi_margin_loss": "F.multi_margin_loss({a}[:{b.size}], {b}[:{a.shape[0]}] % {a.last}, margin=20.0)",
            "multilabel_margin_loss": (
                "F.multilabel_margin_loss({a}[:1] / 64, torch.full_like({a}[:1], -1, "
                "dtype=torch.int64).index_fill(1, {b}.new_zeros(1), {b}[0] % {a.last}))"
            ),
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled), low=False,
    ),
    *layers(
        _FAMILY, {
            "cross_entropy_module": "nn.CrossEntropyLoss()",
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled),
        line="{module}({a}[:{b.size}], {b}[:{a.shape[0]}] % {a.last})", autocast="free",
    ),
    *layers(
        _FAMILY, {
            "multi_margin_module": "nn.MultiMarginLoss(margin=20.0)",
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled),
        line="{module}({a}[:{b.size}], {b}[:{a.shape[0]}] % {a.last})", low=False,
    ),
    *layers(
        _FAMILY, {
            "nll_loss_module": "nn.NLLLoss()",
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled),
        line="{module}({a}[:{b.size}].log_softmax(-1), {b}[:{a.shape[0]}] % {a.last})", autocast="free",
    ),
    *layers(
        _FAMILY, {
            "multilabel_margin_module": "nn.MultiLabelMarginLoss()",
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled),
        line="{module}({a}[:1] / 64, "
        "torch.full_like({a}[:1], -1, dtype=torch.int64).index_fill(1, {b}.new_zeros(1), {b}[0] % {a.last}))",
        low=False,
    ),
    *layers(
        _FAMILY, {
            "adaptive_log_softmax": "nn.AdaptiveLogSoftmaxWithLoss({a.last}, 4, [2], div_value=1.0)",
        },
        partners=(INDICES,), results=scalar, accepts=both(ROWS, filled),
        line="{module}({a}[:1].expand(2, -1), {b}.new_tensor([0, 3])).loss", autocast="no", trainable=True,
    ),
    *functions(
        _FAMILY, {
            "ctc_loss": (
                "F.ctc_loss({a}.log_softmax(-1), {a}.new_ones({a.channels}, 1, dtype=torch.int64), "
                "{a}.new_full(({a.channels},), {a.shape[0]}, dtype=torch.int64), {a}.new_ones({a.channels}, dtype=torch.int64))"
            ),
        },
        results=scalar, accepts=lambda a: a.rank == 3 and a.last > 1 and a.size > 0, autocast="free", low=False,
    ),
    *layers(
        _FAMILY, {
            "ctc_loss_module": "nn.CTCLoss()",
        },
        results=scalar, accepts=lambda a: a.rank == 3 and a.last > 1 and a.size > 0,
        line="{module}({a}.log_softmax(-1), "
        "{a}.new_ones({a.channels}, 1, dtype=torch.int64), {a}.new_full(({a.channels},), {a.shape[0]}, dtype=torch.int64), "
        "{a}.new_ones({a.channels}, dtype=torch.int64))",
        autocast="free", low=False,
    ),
)  # fmt: skip
