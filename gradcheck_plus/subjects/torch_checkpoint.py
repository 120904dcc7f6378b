"""torch's own ways to save activation memory, called as ``checkpoint(function, *args, **kwargs)``."""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def non_reentrant(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `torch.utils.checkpoint.checkpoint` with ``use_reentrant=False``."""
    from torch.utils.checkpoint import checkpoint

    return checkpoint(function, *args, use_reentrant=False, **kwargs)


def reentrant(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `torch.utils.checkpoint.checkpoint` with ``use_reentrant=True``."""
    from torch.utils.checkpoint import checkpoint

    return checkpoint(function, *args, use_reentrant=True, **kwargs)


def save_on_cpu(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function under `torch.autograd.graph.save_on_cpu`."""
    from torch.autograd.graph import save_on_cpu as saved

    with saved():
        return function(*args, **kwargs)


def identity(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function: no checkpoint at all, which must match in everything."""
    return function(*args, **kwargs)


SUBJECTS.add(
    BuiltIn(
        "torch-checkpoint",
        "checkpoint",
        non_reentrant,
        "checkpoint",
        "torch.utils.checkpoint.checkpoint, use_reentrant=False",
        compared=True,
    )
)
SUBJECTS.add(
    BuiltIn(
        "torch-checkpoint-reentrant",
        "checkpoint",
        reentrant,
        "reentrant",
        "torch.utils.checkpoint.checkpoint, use_reentrant=True",
        compared=True,
    )
)
SUBJECTS.add(
    BuiltIn(
        "torch-save-on-cpu",
        "checkpoint",
        save_on_cpu,
        "save-on-cpu",
        "torch.autograd.graph.save_on_cpu around the call",
        compared=True,
    )
)
SUBJECTS.add(BuiltIn("identity", "checkpoint", identity, "strict", "a plain call, which must match in everything"))
