"""How a case runs as a pipeline: every segment is a stage, and gradients cross by hand.

The implementation is ``stage_backward(stage_output, output_grads, input_values) -> gradients of the inputs``, as in
`torch.distributed.pipelining`. Each stage works on its own leaves, which carry the values that arrive (Note [Boundary]: the
graph must end there, or an upstream backward would run twice).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradcheck_plus import support
from gradcheck_plus.case import Constant, Container, Name, Tree
from gradcheck_plus.case.trees import names, steps, walk
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute.checkpoint import output_path
from gradcheck_plus.execute.world import World


@dataclass
class Stage:
    """One stage of one forward: what came out, by path too, the leaves that went in, and which of them had to require grad."""

    output: Any
    leaves: dict[str, Any]
    inputs: dict[str, Any]
    differentiated: frozenset[str]


class StageDriver:
    """Runs the segments one by one on detached inputs, and their backwards from the last to the first."""

    def __init__(self, world: World, call: Any) -> None:
        self.world, self.call = world, call
        self.forwards: list[list[Stage]] = []
        if any(world.case.environment.schedule.count(str(n)) > 1 for n in range(world.case.environment.forwards)):
            raise InvalidArgument(
                f"`schedule`={world.case.environment.schedule!r} runs two backwards over one graph, which no stage backward "
                f"can. Draw cases with `kind='stage-backward'`."
            )

    def forward(self, number: int) -> None:
        """Run one forward, stage by stage."""
        world, program = self.world, self.world.case.program
        values = world.primals(number)
        world.leaves.clear()
        self.forwards.append([])
        with world.autocast():
            for index, segment in enumerate(program.segments):
                if segment.draws:
                    world.space["draw"](segment.draws)
                wanted = dict.fromkeys(names(*segment.inputs))
                inputs = {name: self._boundary(index, name, values[name]) for name in wanted}
                differentiated = frozenset(n for n in wanted if isinstance(values[n], torch.Tensor) and values[n].requires_grad)
                module = world.model.get_submodule(f"segment{index}")
                args = [built(tree, inputs, world.space) for tree in segment.args]
                output = module(*args, **{key: built(tree, inputs, world.space) for key, tree in segment.kwargs})
                path_of = output_path(number, index, len(program.segments))
                leaves = world.record.keep_output(path_of, index, output, world.storages())
                if world.has("output"):
                    results = (leaf for leaf in leaves.values() if isinstance(leaf, torch.Tensor))
                    support.halved(*results)  # type: ignore[no-untyped-call]
                self.forwards[-1].append(Stage(output, leaves, inputs, differentiated))
                made = {r.name for s in segment.statements for r in s.results}
                for path, leaf in walk(segment.output):
                    if isinstance(leaf, Name) and leaf.name in made:
                        values[leaf.name] = leaves[path]

    def _boundary(self, stage: int, name: str, value: Any) -> Any:
        """Return the stage's own leaf for a value that arrives; see Note [Boundary]."""
        if not isinstance(value, torch.Tensor):
            return value
        if not self.world.case.environment.reuses_inputs:
            return value.detach().requires_grad_(value.requires_grad)
        if not self.forwards[:-1] or not self.forwards[0][stage].inputs[name].is_contiguous():
            return value.detach().clone().requires_grad_(value.requires_grad)
        with torch.no_grad():
            return self.forwards[0][stage].inputs[name].copy_(value)

    def backward(self, number: int, repetition: int, *, retain: bool) -> None:
        """Run the backwards of all stages of forward `number`, the last one first."""
        arriving: dict[str, torch.Tensor] = {}
        stages = self.forwards[number]
        for index in reversed(range(len(stages))):
            stage = stages[index]
            received = self._cotangents(index, stage, arriving, repetition)
            returned = self.differentiated(number, index, stage, received)
            self.deliver(place(number, index), stage, returned, arriving)

    def differentiated(self, number: int, index: int, stage: Stage, received: dict[str, Any]) -> Any:
        """Run the backward of one stage, whose outputs receive cotangents by path; return what it says of its inputs."""
        grads = self._shaped(self.world.case.program.segments[index].output, received)
        output, grads = (stage.output, grads) if isinstance(stage.output, tuple | list | dict) else ((stage.output,), (grads,))
        return self.call(output, grads, list(stage.inputs.values()))

    def _cotangents(self, index: int, stage: Stage, arriving: dict[str, torch.Tensor], repetition: int) -> dict[str, Any]:
        """Return what the outputs of a stage receive, by path."""
        world, segment = self.world, self.world.case.program.segments[index]
        drawn = {c.path: c for c in world.case.cotangents if c.segment == index}
        made = {r.name for s in segment.statements for r in s.results}
        received: dict[str, Any] = {}
        for path, leaf in walk(segment.output):
            output = stage.leaves[path]
            if not isinstance(output, torch.Tensor) or not output.requires_grad:
                received[path] = None
                continue
            parts = [world.cotangent(drawn[path], output, repetition)] if path in drawn else []
            if isinstance(leaf, Name) and leaf.name in made:
                parts += [arriving.pop(leaf.name)] if leaf.name in arriving else []
            # For one element `torch.autograd.backward` takes None to mean 1, so nothing can only be said by a zero.
            none = world.case.environment.none_for_zero and output.numel() != 1
            received[path] = sum(parts[1:], parts[0]) if parts else None if none else torch.zeros_like(output)
        return received

    def _shaped(self, tree: Tree, received: dict[str, Any], path: str = "") -> Any:
        """Return what an output receives, in the structure of the output."""
        if not isinstance(tree, Container):
            return received[path]
        children = [self._shaped(c, received, path + s) for s, c in zip(steps(tree), tree.children, strict=True)]
        if tree.kind != "dict":
            return container(tree.kind, children, self.world.space)
        pairs = list(zip(tree.keys, children, strict=True))
        return dict(reversed(pairs) if self.world.case.environment.reversed_keys else pairs)

    def deliver(self, where: str, stage: Stage, returned: Any, arriving: dict[str, torch.Tensor]) -> None:
        """Take in what a stage backward returned, and pass it on to where the inputs came from."""
        record = self.world.record
        if not isinstance(returned, Sequence) or len(returned) != len(stage.inputs):
            record.facts["primal", f"{where}.gradients", "structure"] = described(returned)
            raise StructureDiffersError
        record.facts["primal", f"{where}.gradients", "structure"] = f"{len(stage.inputs)} gradients"
        for (name, value), grad in zip(stage.inputs.items(), returned, strict=True):
            if name in stage.differentiated:
                self.keep(where, name, value, grad)
                if grad is not None:
                    arriving[name] = arriving[name] + grad if name in arriving else grad

    def keep(self, where: str, name: str, value: torch.Tensor, grad: torch.Tensor | None) -> None:
        """Take in the gradient of one input of a stage, and what is left in its `.grad`."""
        record = self.world.record
        record.tensors["primal", f"{where}.gradients[{name!r}]"] = None if grad is None else grad.detach().clone()
        record.tensors["leftover", f"{where}.inputs[{name!r}].grad"] = value.grad


def place(number: int, index: int) -> str:
    """Return what leaf paths call a stage in a forward."""
    return f"stage{index}" + (f"_{number}" if number else "")


class StructureDiffersError(Exception):
    """What came back has another structure than it must have; the record says which."""


def described(value: Any) -> str:
    """Return what came back in the place of gradients."""
    return f"{len(value)} gradients" if isinstance(value, Sequence) else type(value).__name__


def built(tree: Tree, values: dict[str, Any], space: dict[str, Any]) -> Any:
    """Return the value of a tree."""
    if isinstance(tree, Name):
        return values[tree.name]
    if isinstance(tree, Constant):
        return tree.value
    children = [built(child, values, space) for child in tree.children]
    return dict(zip(tree.keys, children, strict=True)) if tree.kind == "dict" else container(tree.kind, children, space)


def container(kind: str, children: list[Any], space: dict[str, Any]) -> Any:
    """Return a container that is not a dict."""
    match kind:
        case "list":
            return children
        case "tuple":
            return tuple(children)
        case "namedtuple":
            return space[f"Named{len(children)}"](*children)
        case _:
            return space[f"Data{len(children)}"](*children)
