"""DeepSpeed's two checkpoints, called as ``checkpoint(function, *args, **kwargs)``.

DeepSpeed wants a process group and its accelerator chosen before it is imported; both are made for one process on the CPU when
nobody has done so.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def reentrant(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `deepspeed.checkpointing.checkpoint`."""
    return _checkpointing().checkpoint(function, *args, **kwargs)


def non_reentrant(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `deepspeed.checkpointing.non_reentrant_checkpoint`."""
    return _checkpointing().non_reentrant_checkpoint(function, *args, **kwargs)


@functools.cache
def _checkpointing() -> Any:
    import torch
    from torch import distributed

    from gradcheck_plus.compat import hash_store

    os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")
    if not distributed.is_initialized():
        distributed.init_process_group("gloo", store=hash_store(), rank=0, world_size=1)
    import deepspeed
    from deepspeed.runtime.activation_checkpointing import checkpointing

    deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False)
    checkpointing.configure(None, partition_activations=False, contiguous_checkpointing=False, checkpoint_in_cpu=False)
    return checkpointing


SUBJECTS.add(
    BuiltIn(
        "deepspeed-checkpoint",
        "checkpoint",
        reentrant,
        "deepspeed",
        "deepspeed.checkpointing.checkpoint",
        needs="deepspeed",
    )
)
SUBJECTS.add(
    BuiltIn(
        "deepspeed-non-reentrant",
        "checkpoint",
        non_reentrant,
        "deepspeed-non-reentrant",
        "deepspeed.checkpointing.non_reentrant_checkpoint",
        needs="deepspeed",
    )
)
