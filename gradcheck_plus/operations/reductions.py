"""Reductions over one dimension, over all, and running ones."""

from collections.abc import Callable, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.operations.conditions import (
    FULL,
    TWIN,
    always,
    dims,
    dropped,
    filled_dims,
    one_of,
    promoted,
    scalar,
    shaped,
    wide_dims,
    wide_last,
)
from gradcheck_plus.operations.entry import Attributes, Autocast, Operation, Results
from gradcheck_plus.operations.tables import functions

_FAMILY = "reductions"


def _over(
    name: str,
    line: str = "",
    *,
    over: Callable[[Spec], Sequence[Scalar]] = filled_dims,
    saves_result: bool = False,
    autocast: Autocast = "keep",
    empty: bool = True,
) -> Operation:
    return Operation(
        f"{name}_dim", _FAMILY, line or f"{{a}}.{name}({{d}})", attributes={"d": over}, results=dropped,
        saves_result=saves_result, empty=empty, autocast=autocast,
    )  # fmt: skip


def _all(name: str, line: str, *, saves_result: bool = False, autocast: Autocast = "keep", empty: bool = False) -> Operation:
    return Operation(
        name, _FAMILY, line, results=scalar, saves_result=saves_result, autocast=autocast, empty=empty,
        accepts=_several if name in ("var", "std") else _any,
    )  # fmt: skip


def _running(name: str, *, saves_result: bool = False, autocast: Autocast = "keep") -> Operation:
    return Operation(
        name, _FAMILY, f"{{a}}.{name}({{d}})", attributes={"d": dims}, empty=True, saves_result=saves_result, autocast=autocast
    )  # fmt: skip


def _any(_: Spec) -> bool:
    return True


def _several(a: Spec) -> bool:
    return a.size > 1


def _together(specs: Sequence[Spec], _: Attributes) -> Results:
    return (((), promoted(*specs)),)


def _dropped_twice(specs: Sequence[Spec], k: Attributes) -> Results:
    return (*dropped(specs, k), *dropped(specs, k))


OPERATIONS = (
    _over("sum", over=dims, autocast="free"),
    _over("mean"),
    _over("logsumexp", saves_result=True, autocast="free"),
    _over("amax", saves_result=True),
    _over("max", "{a}.max({d}).values"),
    # Of an expanded tensor, torch 2.13 on a CPU returns memory that is not its own.
    _over("median", "{a}.contiguous().median({d}).values"),
    _over("prod", saves_result=True, autocast="free"),
    _over("norm", "torch.linalg.vector_norm({a}, dim={d})", saves_result=True, autocast="free"),
    _over("var", over=wide_dims, empty=False),
    _all("sum", "{a}.sum()", empty=True, autocast="free"),
    _all("mean", "{a}.mean()"),
    _all("min", "{a}.min()", saves_result=True),
    _all("norm", "{a}.norm()", saves_result=True, autocast="free", empty=True),
    _all("var", "{a}.var()"),
    _all("std", "{a}.std(correction=0)", saves_result=True),
    Operation(
        "dist", _FAMILY, "torch.dist({a}, {b})", partners=(FULL,), results=_together, saves_result=True, autocast="free",
        empty=True,
    ),
    _running("cumsum", autocast="free"),
    _running("cumprod", saves_result=True, autocast="free"),
    _running("logcumsumexp", saves_result=True),
    *functions(
        _FAMILY, {
            "amin_dim": "{a}.amin({d})",
        },
        attributes={"d": filled_dims}, results=dropped, empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "min_dim": "{a}.min({d}).values",
            "nanmedian_dim": "{a}.contiguous().nanmedian({d}).values",
            "mode_dim": "{a}.mode({d}).values",
            "kthvalue_dim": "{a}.kthvalue(1, {d}).values",
        },
        attributes={"d": filled_dims}, results=dropped, empty=True,
    ),
    *functions(
        _FAMILY, {
            "nansum_dim": "{a}.nansum({d})",
            "nanmean_dim": "{a}.nanmean({d})",
            "sum_low_dim": "{a}.sum({d}, dtype=torch.float64).to({a}.dtype)",
            "renorm_dim": "torch.renorm({a}.unsqueeze(0), 2, 0, 1.0).squeeze(0).sum({d})",
        },
        attributes={"d": filled_dims}, results=dropped, autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "median_keep": "{a}.quantile(0.5, {d})",
            "nanquantile_dim": "{a}.nanquantile(0.5, {d})",
        },
        attributes={"d": filled_dims}, results=dropped, autocast="free", low=False,
    ),
    *functions(
        _FAMILY, {
            "norm_one_dim": "torch.norm({a}, p=1, dim={d})",
            "norm_three_dim": "torch.linalg.vector_norm({a}, 3, dim={d})",
            "norm_inf_dim": 'torch.linalg.vector_norm({a}, float("inf"), dim={d})',
            "linalg_norm_dim": "torch.linalg.norm({a}, dim={d})",
            "frobenius_dim": "torch.norm({a}, dim={d})",
            "min_norm": "torch.linalg.vector_norm({a}, 0.5, dim={d})",
        },
        attributes={"d": filled_dims}, results=dropped, autocast="free", empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "trapezoid_dim": "torch.trapezoid({a}, dim={d}) + {a}.sum({d})",
            "trapz": "torch.trapz({a}, dim={d}) + {a}.mean({d})",
        },
        attributes={"d": filled_dims}, results=dropped, autocast="free", empty=True, uses=4,
    ),
    *functions(
        _FAMILY, {
            "std_dim": "{a}.std({d})",
        },
        attributes={"d": wide_dims}, results=dropped, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "var_biased_dim": "torch.var({a}, {d}, correction=0)",
        },
        attributes={"d": wide_dims}, results=dropped,
    ),
    *functions(
        _FAMILY, {
            "std_mean": "torch.std_mean({a}, {d})",
        },
        attributes={"d": wide_dims}, results=_dropped_twice, traits=("several-results",),
        saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "var_mean": "torch.var_mean({a}, {d})",
        },
        attributes={"d": wide_dims}, results=_dropped_twice, traits=("several-results",),
    ),
    *functions(
        _FAMILY, {
            "amin_all": "{a}.amin()",
            "amax_all": "{a}.amax()",
            "max_all": "{a}.max()",
            "median_all": "{a}.contiguous().median()",
            "nanmedian_all": "{a}.contiguous().nanmedian()",
        },
        results=scalar, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "nansum_all": "torch.nansum({a})",
        },
        results=scalar, autocast="free", empty=True,
    ),
    *functions(
        _FAMILY, {
            "nanmean_all": "torch.nanmean({a})",
        },
        results=scalar, autocast="free",
    ),
    *functions(
        _FAMILY, {
            "prod_all": "({a} / 2).prod()",
            "norm_p_all": "torch.norm({a}, 3)",
            "frobenius": "torch.linalg.norm({a})",
        },
        results=scalar, autocast="free", empty=True, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "quantile_all": "torch.quantile({a}, 0.25)",
            "nanquantile_all": "torch.nanquantile({a}, 0.25)",
        },
        results=scalar, autocast="free", low=False,
    ),
    *functions(
        _FAMILY, {
            "logsumexp_all": "{a}.logsumexp(tuple(range({a}.dim())))",
        },
        results=scalar, autocast="free", saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "sum_to_size": "{a}.sum_to_size(())",
        },
        results=scalar, empty=True,
    ),
    *functions(
        _FAMILY, {
            "inner_self": "torch.inner({a}.flatten(), {a}.flatten())",
        },
        results=scalar, empty=True, inner_view=always, uses=2,
    ),
    *functions(
        _FAMILY, {
            "diff": "torch.diff({a}, prepend={a}[..., :1])",
        },
        accepts=wide_last, empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "cummax": "{a}.cummax(-1).values",
            "cummin": "{a}.cummin(-1).values",
        },
        accepts=wide_last, elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "renorm": "torch.renorm({a}.unsqueeze(0), 2, -1, 1.5).squeeze(0)",
        },
        accepts=wide_last, autocast="free", empty=True, inner_view=always,
    ),
    *functions(
        _FAMILY, {
            "cumulative": "torch.cumsum({a}, -1)",
        },
        accepts=wide_last, autocast="free", elementwise=True, empty=True,
    ),
    *functions(
        _FAMILY, {
            "diff_short": "torch.diff({a})",
        },
        accepts=wide_last, results=shaped(lambda shape, k: (*shape[:-1], shape[-1] - 1)), empty=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "cumulative_trapezoid": "torch.cumulative_trapezoid({a})",
        },
        accepts=wide_last, results=shaped(lambda shape, k: (*shape[:-1], shape[-1] - 1)), autocast="free", empty=True,
        uses=2,
    ),
    *functions(
        _FAMILY, {
            "cov": "torch.cov({a})",
        },
        accepts=lambda a: a.rank == 2 and min(a.shape) > 1, results=shaped(lambda shape, k: (shape[0], shape[0])),
        autocast="low", inner_view=always, uses=2,
    ),
    *functions(
        _FAMILY, {
            "gram": "{a} @ {a}.mT",
        },
        accepts=lambda a: a.rank == 2 and min(a.shape) > 1, results=shaped(lambda shape, k: (shape[0], shape[0])),
        autocast="low", uses=2,
    ),
    *functions(
        _FAMILY, {
            "cdist": "torch.cdist({a}, {a}.sin() + 4.5, p={p})",
        },
        accepts=lambda a: a.rank == 2 and min(a.shape) > 1, results=shaped(lambda shape, k: (shape[0], shape[0])),
        attributes={"p": one_of(2.0, 1.0, 3.0)}, autocast="free", low=False, saves_result=True, uses=2,
    ),
    *functions(
        _FAMILY, {
            "pdist": "F.pdist({a} + {a}.new_tensor([[0.0], [4.5]]))",
        },
        accepts=lambda a: a.rank == 2 and a.shape[0] == 2, results=shaped(lambda shape, k: (1,)), autocast="free",
        elementwise=True, empty=True, low=False, saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "cosine_similarity": "F.cosine_similarity({a}, {a}.cos(), -1)",
        },
        accepts=wide_last, results=shaped(lambda shape, k: shape[:-1]), autocast="free", empty=True, uses=4,
    ),
    *functions(
        _FAMILY, {
            "pairwise_distance": "F.pairwise_distance({a}, {b} + 4.5)",
        },
        partners=(TWIN,), accepts=wide_last, results=shaped(lambda shape, k: shape[:-1]), autocast="free", empty=True,
        saves_result=True,
    ),
    *functions(
        _FAMILY, {
            "vecdot": "torch.linalg.vecdot({a}, {b})",
        },
        partners=(TWIN,), accepts=wide_last, results=shaped(lambda shape, k: shape[:-1]), autocast="low", empty=True,
    ),
    *functions(
        _FAMILY, {
            "gradient": "torch.gradient({a}, dim=-1)[0]",
        },
        accepts=lambda a: a.rank > 0 and a.last > 2, empty=True, uses=6,
    ),
)  # fmt: skip
