"""Checkpoints inside each other, in drawn layers."""

import functools
from collections.abc import Callable
from typing import Any

from gradcheck_plus.case import Layer
from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn
from gradcheck_plus.subjects.torch_checkpoint import non_reentrant, save_on_cpu

_LAYERS: dict[Layer, Callable[..., Any]] = {
    "non-reentrant": non_reentrant,
    "save-on-cpu": save_on_cpu,
}


def inside(layers: tuple[Layer, ...]) -> Callable[..., Any]:
    """Return torch's non-reentrant checkpoint inside others.

    Args:
        layers: what is around it, the outermost first.

    Example:
        >>> import torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> inside(("non-reentrant", "save-on-cpu"))(torch.sin, x).sum().backward()
        >>> bool((x.grad == x.cos()).all())
        True
    """

    def nested(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        innermost = functools.partial(non_reentrant, function)
        called = functools.reduce(lambda inner, layer: functools.partial(_LAYERS[layer], inner), reversed(layers), innermost)
        return called(*args, **kwargs)

    return nested


SUBJECTS.add(
    BuiltIn(
        "torch-checkpoint-nested",
        "checkpoint",
        inside,
        "nested",
        "torch.utils.checkpoint.checkpoint, use_reentrant=False, inside drawn layers of others",
        planned="layers",
        on="torch-checkpoint",
    )
)
