"""Stage backwards that are wrong only where two things meet."""

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from gradcheck_plus.zoo.stage_backward import Pairs, StageBackward, plant


class MissingBecomesOnes(StageBackward):
    """Where a container receives something, what is missing in it is taken for ones, as for the loss of the last stage."""

    @override
    def pairs(self, output: Any, grad: Any) -> Pairs:
        pairs = super().pairs(output, grad)
        if isinstance(output, Tensor) or all(g is None for _, g in pairs):
            return pairs
        return [(o, torch.ones_like(o) if g is None and o.requires_grad else g) for o, g in pairs]


missing_becomes_ones = MissingBecomesOnes()

plant(
    "missing-becomes-ones",
    missing_becomes_ones,
    trigger="none-cotangent several-outputs | none-cotangent duplicate-output",
    source="a neighbour of deepspeedai/DeepSpeed#5518",
)
