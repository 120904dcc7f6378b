"""How a case runs as a pipeline whose backwards come in two passes, as zero-bubble schedules have them.

The implementation is a pair, as in `torch.distributed.pipelining`: ``backward_input(stage_outputs_or_loss, output_grads,
input_values, weights)`` returns the gradients of the inputs and what the second pass needs, and ``backward_weight(weights,
param_groups)`` adds to the `.grad` of the parameters. Outputs and their gradients are flat lists of tensors. A case says when
the second passes run (`gradcheck_plus.case.environment.Environment.weights`). What is left in the `.grad` of a stage's inputs
is not compared: torch's keeps the gradients there.
"""

from typing import Any

import torch
from typing_extensions import override

from gradcheck_plus.execute.stage import Stage, StageDriver, StructureDiffersError, described, place
from gradcheck_plus.execute.world import World


class SplitDriver(StageDriver):
    """Runs the first passes from the last stage to the first, and the second passes when the case says."""

    def __init__(self, world: World, call: Any) -> None:
        super().__init__(world, call)
        self.backward_input, self.backward_weight = call
        world.separates = False
        self.pending: list[tuple[int, Any]] = []  # the second passes that are still to run: stage and groups
        self.left = world.case.environment.backwards

    @override
    def backward(self, number: int, repetition: int, *, retain: bool) -> None:
        super().backward(number, repetition, retain=retain)
        self.left -= 1
        environment = self.world.case.environment
        if environment.weights == "forward" or not self.left:
            for index, groups in environment.second_passes(self.pending):
                self._second_pass(index, groups)
            self.pending = []
        self._note_flags(number)

    @override
    def differentiated(self, number: int, index: int, stage: Stage, received: dict[str, Any]) -> Any:
        tensors = {path: leaf for path, leaf in stage.leaves.items() if isinstance(leaf, torch.Tensor)}
        inputs = list(stage.inputs.values())
        repeated = inputs[:1] if self.world.case.environment.repeated_input else []
        grads = [received[path] for path in tensors]
        returned = self.backward_input(list(tensors.values()), grads, [*inputs, *repeated], self._parameters(index))
        if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[0], list | tuple):
            self.world.record.facts["primal", f"{place(number, index)}.gradients", "structure"] = described(returned)
            raise StructureDiffersError
        gradients, groups = returned
        if self.world.case.environment.weights:
            self.pending.append((index, groups))
        else:
            self._second_pass(index, groups)
        return gradients[: len(inputs)] if len(gradients) == len(inputs) + len(repeated) else gradients

    @override
    def keep(self, where: str, name: str, value: torch.Tensor, grad: torch.Tensor | None) -> None:
        """Take in the gradient itself: what changes it later, before the stage that it is sent to has it, shows."""
        self.world.record.tensors["primal", f"{where}.gradients[{name!r}]"] = None if grad is None else grad.detach()

    def _parameters(self, index: int) -> Any:
        """Return the parameters of a stage in the order of the case, as `nn.Module.parameters` yields them."""
        parameters = self.world.model.get_submodule(f"segment{index}").parameters()
        return reversed(list(parameters)) if self.world.case.environment.reversed_parameters else parameters

    def _second_pass(self, index: int, groups: Any) -> None:
        self.backward_weight(self._parameters(index), groups)

    def _note_flags(self, number: int) -> None:
        """Take in which leaves still require grad."""
        facts = self.world.record.facts
        for index, stage in enumerate(self.forwards[number]):
            for name in sorted(stage.differentiated):
                facts["input", f"{place(number, index)}.inputs[{name!r}]", "requires-grad"] = stage.inputs[name].requires_grad
        for name, parameter in self.world.parameters.items():
            facts["parameter", f"params[{name!r}]", "requires-grad"] = parameter.requires_grad
