"""Stage backwards in two passes, as zero-bubble schedules have them: first the gradients of the inputs, then the parameters'.

The first pass catches what arrives at the joints, the nodes where a path to a parameter leaves the paths to the inputs; the
second starts there. See Qi et al., "Zero Bubble Pipeline Parallelism" (2023), and `torch.distributed.pipelining`, which does so
too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge
from typing_extensions import override

from gradcheck_plus.zoo import graphs
from gradcheck_plus.zoo.planted import Make
from gradcheck_plus.zoo.stage_backward import Pairs, StageBackward

#: What arrived at a node, for each of its results.
Caught = dict[Node, tuple[Tensor | None, ...]]


class SplitStageBackward(StageBackward):
    """Called as ``stage_backward(stage_output, output_grads, input_values)``; returns the gradients of the inputs."""

    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        """Fill the `.grad` of the inputs, then add to those of the parameters."""
        wanted = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
        every = graphs.nodes(o for o, _ in pairs)
        shared = leading_to({graphs.node(value) for value in wanted}, every)
        caught = self.catch(pairs, wanted, joints(shared))
        starts = [(GradientEdge(n, i), g) for n, grads in caught.items() for i, g in enumerate(grads) if g is not None]
        starts += [
            (get_gradient_edge(o), torch.ones_like(o) if g is None else g) for o, g in pairs if graphs.node(o) not in shared
        ]
        parameters = [GradientEdge(n, 0) for n in every if hasattr(n, "variable") and n not in shared]
        if starts and parameters:
            handles = [n.register_prehook(clamp) for n, clamp in self.clamps(caught)]
            torch.autograd.backward([edge for edge, _ in starts], [g for _, g in starts], inputs=parameters)
            for handle in handles:
                handle.remove()

    def catch(self, pairs: Pairs, wanted: Sequence[Tensor], at: Sequence[Node]) -> Caught:
        """Run the first pass; return what arrived at the joints."""
        caught: Caught = {}

        def catching(joint: Node) -> Callable[..., None]:
            return lambda grads: caught.update({joint: grads})

        handles = [joint.register_prehook(catching(joint)) for joint in at]
        if pairs and wanted:
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs], inputs=wanted, retain_graph=True)
        for handle in handles:
            handle.remove()
        return caught

    def clamps(self, caught: Caught) -> list[tuple[Node, Callable[..., Any]]]:
        """Return hooks that let nothing into a joint but what was caught there: all of it has come from earlier joints."""

        def clamp(grads: tuple[Tensor | None, ...]) -> Callable[..., Any]:
            return lambda _: grads

        return [(joint, clamp(grads)) for joint, grads in caught.items()]


def leading_to(targets: set[Node], every: Sequence[Node]) -> set[Node]:
    """Return those of some nodes from which a path leads to a target, the targets among them."""
    found = targets & set(every)
    grown = True
    while grown:
        more = {n for n in every if n not in found and any(child in found for child, _ in n.next_functions)}
        grown = bool(more)
        found |= more
    return found


def joints(shared: set[Node]) -> list[Node]:
    """Return the nodes on paths to the inputs from which another path leaves."""
    return [n for n in shared if any(child is not None and child not in shared for child, _ in n.next_functions)]


class JointsCountedTwice(SplitStageBackward):
    """In the second pass a gradient flows on from one joint into the next, which has caught it already."""

    @override
    def clamps(self, caught: Caught) -> list[tuple[Node, Callable[..., Any]]]:
        return []


class ResultsSummed(SplitStageBackward):
    """The second pass sends the sum of what all results of a joint received to its first result."""

    @override
    def catch(self, pairs: Pairs, wanted: Sequence[Tensor], at: Sequence[Node]) -> Caught:
        summed: Caught = {}
        for joint, grads in super().catch(pairs, wanted, at).items():
            some = [g for g in grads if g is not None]
            summed[joint] = (sum(some[1:], some[0]), *[None] * (len(grads) - 1)) if some else grads
        return summed


class ParametersBesideInputsOnly(SplitStageBackward):
    """The second pass starts at joints only, and misses parameters on paths of their own."""

    @override
    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        leaves = {id(value) for value in inputs}
        super().differentiate([(o, g) for o, g in pairs if leaves & {id(leaf) for leaf in graphs.leaves([o])}], inputs)


#: The correct one, and the faults.
twin = SplitStageBackward()
joints_counted_twice = JointsCountedTwice()
results_summed = ResultsSummed()
parameters_beside_inputs_only = ParametersBesideInputsOnly()
plant = Make("stage-backward", twin, "split-backward").plant

plant("joints-counted-twice", joints_counted_twice, source="pytorch/pytorch#180952, pytorch/pytorch#181365")
plant("results-summed", results_summed, source="pytorch/pytorch#170277, pytorch/pytorch#170416")
plant(
    "parameters-beside-inputs-only", parameters_beside_inputs_only, source="a neighbour of deepspeedai/Megatron-DeepSpeed#442"
)
