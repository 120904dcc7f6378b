"""torchgpipe's `checkpoint`, called as ``checkpoint(function, *args, **kwargs)``."""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `torchgpipe.checkpoint.checkpoint`, which hands a function one tensor, or one tuple of tensors.

    Raises:
        TypeError: there are keyword arguments, for which it has no place.
    """
    from torchgpipe.checkpoint import checkpoint as implementation

    if kwargs:
        raise TypeError(f"torchgpipe's checkpoint takes no keyword arguments; got {', '.join(kwargs)}")
    if len(args) == 1:
        return implementation(function, args[0])
    return implementation(lambda given: function(*given), args)


SUBJECTS.add(
    BuiltIn(
        "torchgpipe-checkpoint",
        "checkpoint",
        checkpoint,
        "torchgpipe",
        "torchgpipe.checkpoint.checkpoint",
        needs="torchgpipe",
    )
)
