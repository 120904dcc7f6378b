"""Checkpoints whose recompute runs in other surroundings than the forward, or leaves other surroundings behind."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint, Region, plant


class RngNotRestored(FunctionCheckpoint):
    """The recompute draws other noise than the forward: the generator is not put back."""

    @override
    def noise(self, region: Region) -> AbstractContextManager[None]:
        return torch.random.fork_rng(devices=[])


class RngLeftMoved(FunctionCheckpoint):
    """The generator is put back for the recompute and left there, so that what is drawn next is drawn for the second time."""

    @override
    def noise(self, region: Region) -> AbstractContextManager[None]:
        torch.set_rng_state(region.generator)
        return nullcontext()


class AutocastLost(FunctionCheckpoint):
    """The recompute runs outside the autocast that the forward ran under."""

    @override
    def precision(self, region: Region) -> AbstractContextManager[Any]:
        return nullcontext()


class AutocastDtypeAssumed(FunctionCheckpoint):
    """The recompute runs under autocast to bfloat16, whatever the dtype of the forward's was."""

    @override
    def precision(self, region: Region) -> AbstractContextManager[Any]:
        region.autocast = {kind: (enabled, torch.bfloat16) for kind, (enabled, _) in region.autocast.items()}
        return super().precision(region)


class EvalDuringRecompute(FunctionCheckpoint):
    """The module is recomputed in evaluation mode, to spare its running statistics a second update."""

    @override
    def recompute(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        modules = list(region.function.modules()) if isinstance(region.function, nn.Module) else []
        modes = [module.training for module in modules]
        for module in modules:
            module.training = False
        output = self.call(region, inputs)
        for module, training in zip(modules, modes, strict=True):
            module.training = training
        return output


class EvalLeftOn(FunctionCheckpoint):
    """The module is left in evaluation mode after the recompute, where the next forward finds it."""

    @override
    def recompute(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        output = self.call(region, inputs)
        if isinstance(region.function, nn.Module):
            region.function.eval()
        return output


class DefaultDtypeLeft(FunctionCheckpoint):
    """The dtype of the inputs becomes the default dtype for the recompute, and stays it."""

    @override
    def recompute(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        for t in inputs:
            if t.is_floating_point():
                torch.set_default_dtype(t.dtype)
        return self.call(region, inputs)


class GradModeLeftOff(FunctionCheckpoint):
    """Grad mode is switched off after the region and not on again, so that what follows leaves no graph."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(function, *args, **kwargs)
        torch.set_grad_enabled(False)
        return output


rng_not_restored = RngNotRestored()
rng_left_moved = RngLeftMoved()
autocast_lost = AutocastLost()
autocast_dtype_assumed = AutocastDtypeAssumed()
eval_during_recompute = EvalDuringRecompute()
eval_left_on = EvalLeftOn()
default_dtype_left = DefaultDtypeLeft()
grad_mode_left_off = GradModeLeftOff()

plant(
    "rng-not-restored",
    rng_not_restored,
    trigger="dropout | random | random-activation",
    source="openai/guided-diffusion#167, allenai/OLMo-core#828",
)
plant(
    "rng-left-moved",
    rng_left_moved,
    trigger="draw-after | many-segments | draw-before two-forwards",
    source="pytorch/pytorch#14253",
)
plant(
    "autocast-lost",
    autocast_lost,
    trigger="autocast-bfloat16 | autocast-float16",
    source="NVIDIA/TransformerEngine#791, NVIDIA/Megatron-LM#7538",
)
plant("autocast-dtype-assumed", autocast_dtype_assumed, trigger="autocast-float16", source="pytorch/pytorch#87979")
plant(
    "eval-during-recompute",
    eval_during_recompute,
    trigger="dropout | batch-norm | random-activation",
    source="pytorch/pytorch#96136, pytorch/pytorch#62471, facebookresearch/fairscale#709",
)
plant(
    "eval-left-on",
    eval_left_on,
    trigger="accumulation | second-backward | tied-across-segments",
    source="a neighbour of facebookresearch/fairscale#709",
)
plant(
    "default-dtype-left",
    default_dtype_left,
    trigger="float64 | bfloat16-input | low-precision",
    source="torch.set_default_dtype documentation: a global state",
)
plant("grad-mode-left-off", grad_mode_left_off, source="torch.set_grad_enabled documentation: it sets the mode when called")
