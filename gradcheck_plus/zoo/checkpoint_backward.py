"""Checkpoints whose recompute or backward goes another way than the forward went."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from typing_extensions import override

from gradcheck_plus.zoo import graphs
from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint, Pairs, Region, plant


class ParameterGradAssigned(FunctionCheckpoint):
    """Gradients of parameters are computed and assigned to `.grad`, where they should be added to it."""

    @override
    def differentiate(self, region: Region, pairs: Pairs, inputs: Sequence[Tensor]) -> None:
        for leaf in graphs.leaves(o for o, _ in pairs):
            leaf.grad = None
        super().differentiate(region, pairs, inputs)


class FirstGradientsRemembered(FunctionCheckpoint):
    """A second backward hands out the input gradients of the first, whatever the outputs receive now."""

    @override
    def gradients(self, region: Region, inputs: Sequence[Tensor]) -> list[Tensor | None]:
        remembered: list[Tensor | None] = region.notes.setdefault("gradients", super().gradients(region, inputs))
        return remembered


class CotangentReadFlat(FunctionCheckpoint):
    """What an output receives is read as if it lay in memory in a row."""

    @override
    def pairs(self, outputs: Sequence[Tensor], received: Sequence[Tensor | None]) -> Pairs:
        return [(o, _flat(g)) for o, g in super().pairs(outputs, received)]


def _flat(tensor: Tensor) -> Tensor:
    start = tensor.storage_offset()
    memory = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.itemsize - start,), (1,))
    return memory[: tensor.numel()].view(tensor.shape) if memory.numel() >= tensor.numel() else tensor


class SequentialFromFirstInput(FunctionCheckpoint):
    """Each layer of an `nn.Sequential` is recomputed from the input of the first, not from the output of the one before."""

    @override
    def recompute(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        if not isinstance(region.function, nn.Sequential):
            return self.call(region, inputs)
        args, _ = region.rebuild(iter(inputs))
        return [layer(*args) for layer in region.function][-1]


class ModuleHooksBypassed(FunctionCheckpoint):
    """The recompute calls a module's `forward` itself, so that its backward hooks never fire."""

    @override
    def recompute(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        args, kwargs = region.rebuild(iter(inputs))
        return getattr(region.function, "forward", region.function)(*args, **kwargs)


parameter_grad_assigned = ParameterGradAssigned()
first_gradients_remembered = FirstGradientsRemembered()
cotangent_read_flat = CotangentReadFlat()
sequential_from_first_input = SequentialFromFirstInput()
module_hooks_bypassed = ModuleHooksBypassed()

plant(
    "parameter-grad-assigned",
    parameter_grad_assigned,
    trigger="existing-grad | accumulation | second-backward | tied-across-segments",
    source="NVIDIA/TransformerEngine#3437, deepspeedai/DeepSpeed#988",
)
plant(
    "first-gradients-remembered",
    first_gradients_remembered,
    trigger="second-backward",
    source="openai/guided-diffusion#144, pytorch/pytorch#90105",
)
plant(
    "cotangent-read-flat",
    cotangent_read_flat,
    trigger="strided-cotangent | many-segments",
    source="Dao-AILab/flash-attention#355, pytorch/pytorch#195210",
)
plant(
    "sequential-from-first-input",
    sequential_from_first_input,
    trigger="sequential-region",
    source="NVIDIA/Megatron-LM#290",
    statements=2,
)
plant(
    "module-hooks-bypassed",
    module_hooks_bypassed,
    trigger="backward-hook",
    source="pytorch/pytorch#117925, torch.nn.Module.forward documentation",
)
