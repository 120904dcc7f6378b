"""fairscale's `checkpoint_wrapper`, called as ``wrap(module)``."""

from typing import TYPE_CHECKING

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn

if TYPE_CHECKING:
    from torch import nn


def wrapper(module: "nn.Module") -> "nn.Module":
    """Wrap a module in `fairscale.nn.checkpoint.checkpoint_wrapper`, which changes it in place."""
    from fairscale.nn.checkpoint import checkpoint_wrapper

    wrapped: nn.Module = checkpoint_wrapper(module)
    return wrapped


SUBJECTS.add(
    BuiltIn(
        "fairscale-checkpoint-wrapper",
        "wrapper",
        wrapper,
        "fairscale",
        "fairscale.nn.checkpoint.checkpoint_wrapper",
        needs="fairscale",
    )
)
