"""torch's private names, in one place.

`SEEN_ON` says on which torch releases each was seen to do what is said here; `tests/unit/test_compat.py` checks it on the
installed one.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

#: The torch releases on which the names below were seen to work.
SEEN_ON = ("2.11", "2.13")

__all__ = [
    "SEEN_ON",
    "TorchDispatchMode",
    "arguments",
    "builds_on_checkpoint",
    "changes_operand",
    "map_tensors",
    "operation_name",
    "stage_backward",
]


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    """Return a tree with every tensor changed."""
    return tree_map_only(torch.Tensor, change, tree)


def operation_name(func: Any) -> str:
    """Return the name of an operation that a dispatch mode is shown, without its namespace and overload."""
    name: str = func._schema.name
    return name.removeprefix("aten::")


def changes_operand(func: Any) -> bool:
    """Does such an operation write into one of its arguments?"""
    return bool(func._schema.is_mutable)


def arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of such an operation by name, defaults included."""
    declared = func._schema.arguments
    defaults = {a.name: a.default_value for a in declared if a.has_default_value()}
    return defaults | {a.name: value for a, value in zip(declared, args, strict=False)} | dict(kwargs)


def stage_backward(stage_output: Any, output_grads: Any, input_values: Any) -> tuple[torch.Tensor | None, ...]:
    """Call torch's own stage backward, which importing costs a second."""
    from torch.distributed.pipelining._backward import stage_backward as implementation

    return tuple(implementation(stage_output, output_grads, input_values))


def builds_on_checkpoint(call: Callable[..., Any], function: Callable[..., Any], *args: Any) -> bool | None:
    """Run ``call(function, *args)`` and say which of torch's checkpoints ran in it.

    Returns:
        True for the reentrant one, False for the non-reentrant one, None for neither.
    """
    from torch.utils.checkpoint import checkpoint

    code = inspect.unwrap(checkpoint).__code__
    seen: list[bool] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code:
            seen.append(frame.f_locals["use_reentrant"] is not False)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call(function, *args)
    finally:
        sys.setprofile(before)
    return seen[0] if seen else None
