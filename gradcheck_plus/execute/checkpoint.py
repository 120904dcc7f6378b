"""How a case runs under an activation checkpoint: ``checkpoint(function, *args, **kwargs)``."""

from collections.abc import Callable
from typing import Any

import torch

from gradcheck_plus.execute.world import World
from gradcheck_plus.record import flatten
from gradcheck_plus.source import primal_names


class CheckpointDriver:
    """Calls ``Model.forward`` with the implementation, then `torch.autograd.backward` on its outputs."""

    def __init__(self, world: World, call: Callable[..., Any]) -> None:
        self.world, self.call = world, call
        self.outputs: list[list[dict[str, Any]]] = []

    def forward(self, number: int) -> None:
        """Run one forward."""
        world, segments = self.world, self.world.case.program.segments
        primals = world.primals(number)
        self.outputs.append([])
        with world.autocast():
            made = self._called(number, {name: primals[name] for name in primal_names(world.case.program)})
        storages = world.storages()
        for index, output in enumerate(made if len(segments) > 1 else (made,)):
            place = output_path(number, index, len(segments))
            self.outputs[-1].append(world.record.keep_output(place, index, output, storages))

    def _called(self, number: int, primals: dict[str, Any]) -> Any:
        """Return what the model makes of the primals of a forward."""
        return self.world.model(self._noting(number), **primals)

    def _noting(self, number: int) -> Callable[..., Any]:
        """Return the implementation, noting the structure of what it returns before anything trips over it."""
        segments = self.world.case.program.segments
        regions = iter([index for index, segment in enumerate(segments) if segment.region])

        def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            output = self.call(function, *args, **kwargs)
            place = output_path(number, next(regions), len(segments))
            self.world.record.facts["output", place, "structure"] = flatten(output)[0]
            return output

        return call

    def backward(self, number: int, repetition: int, *, retain: bool) -> None:
        """Run one backward of forward `number`."""
        outputs, cotangents = [], []
        for c in self.world.case.cotangents:
            output = self.outputs[number][c.segment].get(c.path)
            if not isinstance(output, torch.Tensor) or not output.requires_grad:
                continue
            outputs.append(output)
            cotangents.append(self.world.cotangent(c, output, repetition))
        if outputs:
            torch.autograd.backward(outputs, cotangents, retain_graph=retain)


def output_path(forward: int, segment: int, segments: int) -> str:
    """Return how code reaches the output of a segment."""
    name = f"outputs_{forward}" if forward else "outputs"
    return name if segments == 1 else f"{name}[{segment}]"
