"""What surrounds a forward and a backward."""

from typing import Literal

import msgspec

Hook = Literal["input", "parameter", "post-accumulate", "forward", "backward"]


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything around the function that may change what it leaves behind.

    `schedule` is a sequence of steps: ``F`` runs the next forward, a digit the backward of the forward with that number
    (``F00``: two backwards over one graph; ``FF10``: two forwards first). `changes_parameter`: the first trainable
    parameter is changed in place between forward and backward. `reuses_inputs`: a second forward finds its inputs in the
    tensors of the first. `none_for_zero` and `reversed_keys` say how a pipeline hands cotangents to a stage: `None` where
    nothing arrives, dicts in another order than the outputs'.
    """

    train: bool = True
    autocast: Literal["", "bfloat16", "float16"] = ""
    draws_after: int = 0
    existing_grad: bool = False
    schedule: str = "F0"
    hooks: tuple[Hook, ...] = ()
    changes_parameter: bool = False
    reuses_inputs: bool = False
    none_for_zero: bool = False
    reversed_keys: bool = False

    @property
    def forwards(self) -> int:
        """How many forwards are run."""
        return self.schedule.count("F")

    @property
    def backwards(self) -> int:
        """How many backwards are run."""
        return len(self.schedule) - self.forwards
