"""torch's own ways to wrap a module, called as ``wrap(module)``."""

from typing import TYPE_CHECKING

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn

if TYPE_CHECKING:
    from torch import nn


def non_reentrant(module: "nn.Module") -> "nn.Module":
    """Wrap a module in torch's `checkpoint_wrapper`, which calls the non-reentrant checkpoint."""
    from gradcheck_plus.compat import checkpoint_wrapper

    return checkpoint_wrapper(module, reentrant=False)


def reentrant(module: "nn.Module") -> "nn.Module":
    """Wrap a module in torch's `checkpoint_wrapper`, which calls the reentrant checkpoint."""
    from gradcheck_plus.compat import checkpoint_wrapper

    return checkpoint_wrapper(module, reentrant=True)


def offload(module: "nn.Module") -> "nn.Module":
    """Wrap a module in torch's `offload_wrapper`, which keeps what autograd saves on the CPU."""
    from gradcheck_plus.compat import offload_wrapper

    return offload_wrapper(module)


def composable(module: "nn.Module") -> "nn.Module":
    """Apply torch's composable `checkpoint` to a module, which changes it in place."""
    from gradcheck_plus.compat import composable_checkpoint

    return composable_checkpoint(module)


SUBJECTS.add(
    BuiltIn(
        "torch-checkpoint-wrapper",
        "wrapper",
        non_reentrant,
        "wrapper",
        "torch's checkpoint_wrapper, CheckpointImpl.NO_REENTRANT",
        on="torch-checkpoint",
        compared=True,
    )
)
SUBJECTS.add(
    BuiltIn(
        "torch-checkpoint-wrapper-reentrant",
        "wrapper",
        reentrant,
        "reentrant",
        "torch's checkpoint_wrapper, CheckpointImpl.REENTRANT",
        on="torch-checkpoint-reentrant",
    )
)
SUBJECTS.add(
    BuiltIn(
        "torch-offload-wrapper",
        "wrapper",
        offload,
        "save-on-cpu",
        "torch's offload_wrapper: save_on_cpu around every call",
        on="torch-save-on-cpu",
    )
)
SUBJECTS.add(
    BuiltIn(
        "torch-composable-checkpoint",
        "wrapper",
        composable,
        "composable",
        "torch.distributed._composable.checkpoint, which changes the module in place",
        on="torch-checkpoint",
    )
)
