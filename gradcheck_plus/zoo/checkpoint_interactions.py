"""Checkpoints that are wrong only where two or three things meet, none of which is wrong alone."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint, Pairs, Region, plant
from gradcheck_plus.zoo.trees import Rebuild, mapped

_NOISE = ("dropout", "random", "random-activation")


class NoiseRestoredOnce(FunctionCheckpoint):
    """The state of the generator is handed over to the first recompute, and a second one draws whatever comes."""

    @override
    def noise(self, region: Region) -> AbstractContextManager[None]:
        again = region.notes.setdefault("restored", False)
        region.notes["restored"] = True
        return torch.random.fork_rng(devices=[]) if again else super().noise(region)


class NoiseOfTheLatestCall(FunctionCheckpoint):
    """The state of the generator is kept on the checkpoint: every recompute draws what the latest call drew."""

    @override
    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        region = super().region(function, rebuild, given)
        self.generator = region.generator
        return region

    @override
    def noise(self, region: Region) -> AbstractContextManager[None]:
        region.generator = self.generator
        return super().noise(region)


class AutocastLostTheSecondTime(FunctionCheckpoint):
    """The autocast of the forward is entered for the first recompute only."""

    @override
    def precision(self, region: Region) -> AbstractContextManager[Any]:
        again = region.notes.setdefault("entered", False)
        region.notes["entered"] = True
        return nullcontext() if again else super().precision(region)


class SurroundingsOfBareTensors(FunctionCheckpoint):
    """Which autocast to enter again is asked of the devices of bare arguments, so that a region that has none loses it."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.bare = any(isinstance(value, Tensor) for value in (*args, *kwargs.values()))
        return super().__call__(function, *args, **kwargs)

    @override
    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        region = super().region(function, rebuild, given)
        region.autocast = region.autocast if self.bare else {}
        return region


class FlagsShifted(FunctionCheckpoint):
    """Which inputs require grad is noted of the floating ones and read off for all: each integer shifts the rest by one."""

    @override
    def cut_off(self, region: Region, tensors: Sequence[Tensor]) -> list[Tensor]:
        noted = [flag for t, flag in zip(tensors, region.flags, strict=True) if t.is_floating_point()]
        noted += [False] * (len(tensors) - len(noted))
        return [t.detach().requires_grad_(flag and t.is_floating_point()) for t, flag in zip(tensors, noted, strict=True)]


class ScalarsTakenForNumbers(FunctionCheckpoint):
    """A tensor without dimensions is taken for a number, and gets no gradient."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        args, kwargs = mapped(lambda t: t if t.dim() else t.detach(), (args, kwargs))
        return super().__call__(function, *args, **kwargs)


class NamedtuplesBecomeTuples(FunctionCheckpoint):
    """A namedtuple that is returned comes back as a plain tuple."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return _plain(super().__call__(function, *args, **kwargs))


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree)((key, _plain(child)) for key, child in tree.items())
    if isinstance(tree, tuple | list):
        kind = tuple if hasattr(tree, "_fields") else type(tree)
        return kind([_plain(child) for child in tree])
    return tree


class NothingShiftsTheRest(FunctionCheckpoint):
    """What outputs receive is paired with them after those that receive nothing were left out, so that the rest move up."""

    @override
    def pairs(self, outputs: Sequence[Tensor], received: Sequence[Tensor | None]) -> Pairs:
        some = [g for o, g in zip(outputs, received, strict=True) if o.requires_grad and g is not None]
        return list(zip([o for o in outputs if o.requires_grad], some, strict=False))


class HooksOnceAnOutput(FunctionCheckpoint):
    """Each output has a backward of its own, so that hooks of the parameters fire for every one of them."""

    @override
    def differentiate(self, region: Region, pairs: Pairs, inputs: Sequence[Tensor]) -> None:
        for output, received in pairs:
            torch.autograd.backward([output], [received], retain_graph=True)


class NestedSavedInFloat32(FunctionCheckpoint):
    """Tensors in containers are offloaded in float32, and those of float64 come back rounded; bare ones are kept."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.bare = {id(value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor)}
        return super().__call__(function, *args, **kwargs)

    @override
    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        region = super().region(function, rebuild, given)
        region.notes["rounded"] = [id(t) not in self.bare and t.dtype == torch.float64 for t in given]
        return region

    @override
    def unpacked(self, region: Region, saved: Sequence[Tensor]) -> Sequence[Tensor]:
        rounded = region.notes["rounded"]
        return [t.float().double() if rounds else t for t, rounds in zip(saved, rounded, strict=True)]


noise_restored_once = NoiseRestoredOnce()
noise_of_the_latest_call = NoiseOfTheLatestCall()
autocast_lost_the_second_time = AutocastLostTheSecondTime()
surroundings_of_bare_tensors = SurroundingsOfBareTensors()
flags_shifted = FlagsShifted()
scalars_taken_for_numbers = ScalarsTakenForNumbers()
namedtuples_become_tuples = NamedtuplesBecomeTuples()
nothing_shifts_the_rest = NothingShiftsTheRest()
hooks_once_an_output = HooksOnceAnOutput()
nested_saved_in_float32 = NestedSavedInFloat32()

plant(
    "noise-restored-once",
    noise_restored_once,
    trigger=" | ".join(f"{noise} second-backward" for noise in _NOISE),
    source="openai/guided-diffusion#144, pytorch/pytorch#14253",
)
plant(
    "noise-of-the-latest-call",
    noise_of_the_latest_call,
    trigger=" | ".join(f"{noise} {calls}" for noise in _NOISE for calls in ("many-segments", "two-forwards")),
    source="a neighbour of pytorch/pytorch#14518",
)
plant(
    "autocast-lost-the-second-time",
    autocast_lost_the_second_time,
    trigger="autocast-bfloat16 second-backward | autocast-float16 second-backward",
    source="NVIDIA/TransformerEngine#791, openai/guided-diffusion#144",
)
plant(
    "surroundings-of-bare-tensors",
    surroundings_of_bare_tensors,
    trigger="autocast-bfloat16 nested-input | autocast-float16 nested-input",
    source="pytorch/pytorch#121212",
)
plant(
    "flags-shifted",
    flags_shifted,
    trigger="integer-input | boolean-input",
    source="a neighbour of deepspeedai/DeepSpeed#3895",
)
plant("scalars-taken-for-numbers", scalars_taken_for_numbers, trigger="scalar-value", source="ar4/deepwave#120")
plant(
    "namedtuples-become-tuples",
    namedtuples_become_tuples,
    trigger="namedtuple-output",
    source="a neighbour of facebookresearch/fairscale#1148",
)
plant(
    "nothing-shifts-the-rest",
    nothing_shifts_the_rest,
    trigger="several-outputs",
    source="a neighbour of pytorch/pytorch#58511",
)
plant(
    "hooks-once-an-output",
    hooks_once_an_output,
    trigger="several-outputs | backward-hook duplicate-output",
    source="pytorch/pytorch#81296, deepspeedai/DeepSpeed#988",
)
plant(
    "nested-saved-in-float32",
    nested_saved_in_float32,
    trigger="float64 many-segments nested-input",
    source="NVIDIA/Megatron-LM#7538, InternLM/xtuner#1979",
    statements=2,
)
