"""torch's selective checkpoint under drawn policies: which results are kept, which are recomputed.

The policy is data: pairs of an operation, as the dispatcher names it, and the number of its call in the region. What is not
named is recomputed, so that no pair at all is a plain non-reentrant checkpoint.
"""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def saving(saved: tuple[tuple[str, int], ...]) -> Callable[..., Any]:
    """Return the checkpoint that keeps the results of some operations, and recomputes all others.

    Args:
        saved: for each, its name, such as ``aten.mul.Tensor``, and the number of the call in the region, from 0.

    Example:
        >>> import torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> saving((("aten.sin.default", 0),))(lambda x: x.sin().exp(), x).sum().backward()
        >>> bool((x.grad == x.cos() * x.sin().exp()).all())
        True
    """
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    def selective(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def contexts() -> Any:
            return create_selective_checkpoint_contexts(_policy(frozenset(saved)))

        return checkpoint(function, *args, use_reentrant=False, context_fn=contexts, **kwargs)

    return functools.update_wrapper(selective, saving, assigned=("__module__", "__doc__"))


def _policy(saved: frozenset[tuple[str, int]]) -> Callable[..., Any]:
    """Return the policy for one call of a region. Before torch 2.13 it is asked in the recompute too."""
    from torch.utils.checkpoint import CheckpointPolicy

    counts: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}

    def policy(context: Any, operation: Any, *_args: Any, **_kwargs: Any) -> Any:
        name, count = str(operation), counts[bool(context.is_recompute)]
        number = count[name]
        count[name] += 1
        return CheckpointPolicy.MUST_SAVE if (name, number) in saved else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


SUBJECTS.add(
    BuiltIn(
        "torch-selective",
        "checkpoint",
        saving,
        "selective",
        "torch.utils.checkpoint.create_selective_checkpoint_contexts, with drawn policies",
        planned="saved",
        on="torch-checkpoint",
    )
)
