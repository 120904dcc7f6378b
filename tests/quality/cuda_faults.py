"""Checkpoints that are right on a CPU, and wrong where tensors live on a GPU."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from typing_extensions import override

from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint, Region


class GeneratorOfTheCpuOnly(FunctionCheckpoint):
    """The recompute draws other noise than the forward: of the generators, only that of the CPU is put back."""

    @override
    @contextmanager
    def noise(self, region: Region) -> Iterator[None]:
        with torch.random.fork_rng(devices=region.devices[0]):
            torch.set_rng_state(region.generator)
            yield


class AutocastOfTheCpuOnly(FunctionCheckpoint):
    """The recompute runs outside the autocast of the forward, unless that was one for the CPU."""

    @override
    def precision(self, region: Region) -> AbstractContextManager[Any]:
        region.autocast = {kind: state for kind, state in region.autocast.items() if kind == "cpu"}
        return super().precision(region)


generator_of_the_cpu_only = GeneratorOfTheCpuOnly()
autocast_of_the_cpu_only = AutocastOfTheCpuOnly()
