"""What surrounds a forward and a backward."""

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec

Hook = Literal["input", "output", "parameter", "post-accumulate", "forward", "backward"]
Pass = TypeVar("Pass", bound=tuple[int, object])
#: When the gradients of parameters are taken that have a pass of their own.
Delay = Literal["", "forward", "end", "reversed", "stages"]


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything around the function that may change what it leaves behind.

    `schedule` is a sequence of steps: ``F`` runs the next forward, a digit the backward of the forward with that number
    (``F00``: two backwards over one graph; ``FF10``: two forwards first). `changes_parameter`: the first trainable
    parameter is changed in place between forward and backward. `reuses_inputs`: a second forward finds its inputs in the
    tensors of the first. `none_for_zero` and `reversed_keys` say how a pipeline hands cotangents to a stage: `None` where
    nothing arrives, dicts in another order than the outputs'.

    The others are of a backward in two passes. `weights` is when the second ones run: at once after each first one, after the
    first ones of all stages of a forward, or after all first ones, in their order (``end``), the last one first (``reversed``),
    or stage by stage with all forwards (``stages``). `reversed_parameters`: parameters are listed in reverse.
    `repeated_input`: the first input of a stage is listed once more at the end.
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
    weights: Delay = ""
    reversed_parameters: bool = False
    repeated_input: bool = False

    @property
    def forwards(self) -> int:
        """How many forwards are run."""
        return self.schedule.count("F")

    @property
    def backwards(self) -> int:
        """How many backwards are run."""
        return len(self.schedule) - self.forwards

    def second_passes(self, waiting: Iterable[Pass]) -> list[Pass]:
        """Return the second passes that wait, each of a stage and with what it needs, in the order in which they run.

        Example:
            >>> Environment(weights="stages").second_passes([(1, "first"), (0, "first"), (1, "second"), (0, "second")])
            [(1, 'first'), (1, 'second'), (0, 'first'), (0, 'second')]
        """
        ordered = list(waiting)
        if self.weights == "reversed":
            return ordered[::-1]
        return sorted(ordered, key=lambda one: -one[0]) if self.weights == "stages" else ordered
