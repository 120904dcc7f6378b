"""Stage backwards in two passes, as zero-bubble schedules have them: first the gradients of the inputs, then the parameters'.

The first pass catches what arrives at the joints, the nodes where a path to a parameter leaves the paths to the inputs; the
second starts there. See Qi et al., "Zero Bubble Pipeline Parallelism" (2023), and `torch.distributed.pipelining`, which does so
too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge
from typing_extensions import override

from gradcheck_plus import support
from gradcheck_plus.zoo import graphs
from gradcheck_plus.zoo.planted import Make

#: What arrived at a node, for each of its results.
Caught = dict[Node, tuple[Tensor | None, ...]]
#: Outputs, each with its cotangent.
Pairs = list[tuple[Tensor, Tensor | None]]
Taken = list[Tensor | None]


@dataclass
class Group:
    """What one second pass needs: what was caught, the outputs that no joint lies above, and the nodes of the parameters."""

    caught: Caught
    beside: Pairs
    parameters: list[Node]


class SplitBackward:
    """The pair of ``backward_input(outputs, grads, inputs, weights)`` and ``backward_weight(weights, groups)``."""

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        """Yield the two passes."""
        yield self.backward_input
        yield self.backward_weight

    def backward_input(
        self, outputs: Sequence[Tensor], grads: Sequence[Tensor | None], inputs: Sequence[Any], weights: Iterable[Tensor]
    ) -> tuple[tuple[Tensor | None, ...], list[Group]]:
        """Return the gradients of the inputs, and what the second pass needs."""
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad and (g is not None or o.numel() == 1)]
        wanted = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
        every = graphs.nodes(o for o, _ in pairs)
        shared = leading_to({graphs.node(value) for value in wanted}, every)
        taken, caught = self.first_pass(pairs, wanted, joints(shared))
        listed = [graphs.node(w) for w in weights if w.requires_grad]
        beside = self.beside([(o, g) for o, g in pairs if graphs.node(o) not in shared], wanted)
        found = iter(taken)
        gradients: Taken = [next(found) if isinstance(v, Tensor) and v.requires_grad else None for v in inputs]
        gradients = self.returned(inputs, gradients)
        self.release(outputs)
        return tuple(gradients), self.groups(Group(caught, beside, [n for n in listed if n in set(every)]))

    def first_pass(self, pairs: Pairs, wanted: Sequence[Tensor], at: Sequence[Node]) -> tuple[Taken, Caught]:
        """Return the gradients of the inputs, and what arrived at the joints."""
        caught: Caught = {}

        def catching(joint: Node) -> Callable[..., None]:
            return lambda grads: caught.update({joint: grads})

        handles = [joint.register_prehook(catching(joint)) for joint in at]
        taken: Taken = [None] * len(wanted)
        if pairs and wanted:
            outputs, grads = [o for o, _ in pairs], [g for _, g in pairs]
            taken = list(torch.autograd.grad(outputs, wanted, grads, retain_graph=True, allow_unused=True))
        for handle in handles:
            handle.remove()
        return taken, caught

    def beside(self, pairs: Pairs, wanted: Sequence[Tensor]) -> Pairs:
        """Return the outputs that no path to an input leads from, of which the second pass starts at each."""
        return pairs

    def returned(self, inputs: Sequence[Any], gradients: Taken) -> Taken:
        """Return what the first pass says of its inputs."""
        return gradients

    def release(self, outputs: Sequence[Tensor]) -> None:
        """Let the outputs go: nothing is left to do."""

    def groups(self, whole: Group) -> list[Group]:
        """Return what second passes are made of; one of them can do everything."""
        return [whole]

    def backward_weight(self, weights: Iterable[Tensor], param_groups: Sequence[Group]) -> None:
        """Add to the `.grad` of the parameters."""
        weights = list(weights)
        for group in param_groups:
            received = ((n, i, g) for n, grads in group.caught.items() for i, g in enumerate(grads))
            starts = [(GradientEdge(n, i), g) for n, i, g in received if g is not None]
            starts += [(get_gradient_edge(o), torch.ones_like(o) if g is None else g) for o, g in group.beside]
            if starts and group.parameters:
                handles = [n.register_prehook(clamp) for n, clamp in self.clamps(group.caught)]
                self.second_pass([edge for edge, _ in starts], [g for _, g in starts], group.parameters)
                for handle in handles:
                    handle.remove()
        support.separate(weights)  # type: ignore[no-untyped-call]

    def second_pass(self, edges: list[GradientEdge], grads: list[Tensor], parameters: list[Node]) -> None:
        """Run one second pass."""
        torch.autograd.backward(edges, grads, inputs=[GradientEdge(n, 0) for n in parameters], retain_graph=True)

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


class JointsCountedTwice(SplitBackward):
    """In the second pass a gradient flows on from one joint into the next, which has caught it already."""

    @override
    def clamps(self, caught: Caught) -> list[tuple[Node, Callable[..., Any]]]:
        return []


class LoneJointsNotClamped(SplitBackward):
    """Where there is one joint the second pass starts before the tensor hooks of its result, which ran in the first one."""

    @override
    def clamps(self, caught: Caught) -> list[tuple[Node, Callable[..., Any]]]:
        return super().clamps(caught) if len(caught) > 1 else []


class ResultsSummed(SplitBackward):
    """The second pass sends the sum of what all results of a joint received to its first result."""

    @override
    def first_pass(self, pairs: Pairs, wanted: Sequence[Tensor], at: Sequence[Node]) -> tuple[Taken, Caught]:
        taken, caught = super().first_pass(pairs, wanted, at)
        summed: Caught = {}
        for joint, grads in caught.items():
            some = [g for g in grads if g is not None]
            summed[joint] = (sum(some[1:], some[0]), *[None] * (len(grads) - 1)) if some else grads
        return taken, summed


class ParametersBesideInputsLost(SplitBackward):
    """The second pass starts at joints only, and misses parameters on paths of their own."""

    @override
    def beside(self, pairs: Pairs, wanted: Sequence[Tensor]) -> Pairs:
        return []


class FrozenInputsLoseParameters(SplitBackward):
    """Where no input requires grad there is no joint, and nothing else is thought of."""

    @override
    def beside(self, pairs: Pairs, wanted: Sequence[Tensor]) -> Pairs:
        return pairs if wanted else []


class OneGroupKept(SplitBackward):
    """What the second pass needs is kept in one place, where the next first pass overwrites it."""

    kept: list[Group]

    @override
    def groups(self, whole: Group) -> list[Group]:
        self.kept = [whole]
        return self.kept

    @override
    def backward_weight(self, weights: Iterable[Tensor], param_groups: Sequence[Group]) -> None:
        super().backward_weight(weights, self.kept)


class MeetingGroupsCountedTwice(SplitBackward):
    """A parameter with joints in two groups joins both, and the parameters of the first come along into the second."""

    @override
    def groups(self, whole: Group) -> list[Group]:
        placed: dict[Node, Group] = {}
        for parameter in whole.parameters:
            met_by = {n: g for n, g in whole.caught.items() if leading_to({parameter}, below(n, whole.caught))}
            own = Group(met_by, [], [parameter])
            for joint in own.caught:
                if joint not in placed:
                    placed[joint] = own
                    continue
                met = placed[joint]
                met.parameters = list(dict.fromkeys([*met.parameters, *own.parameters]))
                met.caught |= own.caught
                own = met
        groups = list({id(group): group for group in placed.values()}.values())
        return [*groups, Group({}, whole.beside, whole.parameters)]


def below(joint: Node, caught: Caught) -> list[Node]:
    """Return a joint and what its gradient reaches without passing another one."""
    todo, seen = [joint], dict.fromkeys([joint])
    while todo:
        for child, _ in todo.pop().next_functions:
            if child is not None and child not in seen and child not in caught:
                seen[child] = None
                todo.append(child)
    return list(seen)


class GradientsAssigned(SplitBackward):
    """The second pass puts its gradients in the place of those that are there."""

    @override
    def backward_weight(self, weights: Iterable[Tensor], param_groups: Sequence[Group]) -> None:
        listed = list(weights)
        before = [w.grad for w in listed]
        for w in listed:
            w.grad = None
        super().backward_weight(listed, param_groups)
        for w, old in zip(listed, before, strict=True):
            w.grad = old if w.grad is None else w.grad


class ReturnedAndAddedTo(SplitBackward):
    """What is returned stays the `.grad` of the input, to which the next first pass adds in place."""

    @override
    def returned(self, inputs: Sequence[Any], gradients: Taken) -> Taken:
        for value, gradient in zip(inputs, gradients, strict=True):
            if gradient is not None and value.grad is None:
                value.grad = gradient
            elif gradient is not None:
                value.grad += gradient
        return gradients


class ReturnedInputsFrozen(SplitBackward):
    """Outputs are detached in place, to free the graph: an input that is returned does not require grad any more."""

    @override
    def release(self, outputs: Sequence[Tensor]) -> None:
        for output in outputs:
            if output.is_leaf:
                output.detach_()


class AddedWithoutHooks(SplitBackward):
    """Gradients of parameters are added by hand, and hooks that run after autograd has added them never do."""

    @override
    def second_pass(self, edges: list[GradientEdge], grads: list[Tensor], parameters: list[Node]) -> None:
        places = [GradientEdge(n, 0) for n in parameters]
        found = torch.autograd.grad(edges, places, grads, retain_graph=True, allow_unused=True)
        for node, gradient in zip(parameters, found, strict=True):
            if gradient is not None:
                self.add(getattr(node, "variable", None), gradient)

    def add(self, weight: Any, gradient: Tensor) -> None:
        """Add a gradient to the `.grad` of a parameter."""
        weight.grad = gradient.clone() if weight.grad is None else weight.grad + gradient


class GradientsShared(AddedWithoutHooks):
    """Gradients are put into `.grad` as they come, and added to in place: what several leaves receive is one tensor."""

    @override
    def add(self, weight: Any, gradient: Tensor) -> None:
        if weight.grad is None:
            weight.grad = gradient
        else:
            weight.grad += gradient


#: The correct one, and the faults.
twin = SplitBackward()
joints_counted_twice = JointsCountedTwice()
lone_joints_not_clamped = LoneJointsNotClamped()
results_summed = ResultsSummed()
parameters_beside_inputs_lost = ParametersBesideInputsLost()
frozen_inputs_lose_parameters = FrozenInputsLoseParameters()
one_group_kept = OneGroupKept()
meeting_groups_counted_twice = MeetingGroupsCountedTwice()
gradients_assigned = GradientsAssigned()
returned_and_added_to = ReturnedAndAddedTo()
returned_inputs_frozen = ReturnedInputsFrozen()
added_without_hooks = AddedWithoutHooks()
gradients_shared = GradientsShared()
plant = Make("split-backward", twin, "split-backward").plant
_TORCH = "torch.distributed.pipelining source: _backward.py"

plant("joints-counted-twice", joints_counted_twice, source="pytorch/pytorch#180952, pytorch/pytorch#181365")
plant("lone-joints-not-clamped", lone_joints_not_clamped, trigger="output-hook", source=_TORCH)
plant("results-summed", results_summed, source="pytorch/pytorch#170277, pytorch/pytorch#170416")
plant(
    "parameters-beside-inputs-lost",
    parameters_beside_inputs_lost,
    trigger="off-input-path",
    source="a neighbour of deepspeedai/Megatron-DeepSpeed#442",
)
plant("frozen-inputs-lose-parameters", frozen_inputs_lose_parameters, trigger="region-without-grad-input", source=_TORCH)
plant("one-group-kept", one_group_kept, trigger="delayed-weights", source="a neighbour of NVIDIA/TransformerEngine#3437")
plant("meeting-groups-counted-twice", meeting_groups_counted_twice, trigger="tied-parameter|nested-module", source=_TORCH)
plant(
    "gradients-assigned",
    gradients_assigned,
    trigger="accumulation|existing-grad|tied-across-segments",
    source="NVIDIA/TransformerEngine#3437",
)
plant("returned-and-added-to", returned_and_added_to, trigger="reused-input|repeated-input", source=_TORCH)
plant("returned-inputs-frozen", returned_inputs_frozen, trigger="passthrough-output|view-output", source=_TORCH)
plant("added-without-hooks", added_without_hooks, trigger="post-accumulate-hook", source=_TORCH)
plant("gradients-shared", gradients_shared, source=_TORCH)
