"""torch's `checkpoint_sequential`, with a drawn number of pieces."""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def in_pieces(pieces: int) -> Callable[..., Any]:
    """Return what runs an `nn.Sequential` by `torch.utils.checkpoint.checkpoint_sequential`, and calls anything else.

    Args:
        pieces: into how many pieces a sequence is cut, or as many as it has layers; all but the last are recomputed.

    Example:
        >>> import torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> in_pieces(2)(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Tanh()), x).sum().backward()
        >>> x.grad is not None
        True
    """
    from torch import nn
    from torch.utils.checkpoint import checkpoint_sequential

    def sequential(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not isinstance(function, nn.Sequential):
            return function(*args, **kwargs)
        (given,) = args
        return checkpoint_sequential(function, min(pieces, len(function)), given, use_reentrant=False)

    return sequential


SUBJECTS.add(
    BuiltIn(
        "torch-checkpoint-sequential",
        "checkpoint",
        in_pieces,
        "sequential",
        "torch.utils.checkpoint.checkpoint_sequential, use_reentrant=False, in a drawn number of pieces",
        planned="pieces",
        aims=("sequential-region",),
        on="torch-checkpoint",
    )
)
