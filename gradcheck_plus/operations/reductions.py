"""Reductions over one dimension, over all, and running ones."""

from collections.abc import Callable, Sequence

from gradcheck_plus.case import Scalar, Spec
from gradcheck_plus.operations.conditions import FULL, dims, dropped, filled_dims, promoted, scalar, wide_dims
from gradcheck_plus.operations.entry import Attributes, Autocast, Operation, Results

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
)  # fmt: skip
