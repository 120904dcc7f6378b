"""The correct checkpoint that is one `torch.autograd.Function`, as fairscale, torchgpipe and DeepSpeed make theirs.

Each fault of the ``checkpoint_*`` files overrides a method or two. It is as right as its make allows, with containers of any
kind, outputs that are inputs or views of them, outputs without grad, and `None` where no gradient comes. What no such
checkpoint can do stands in the contract ``function-checkpoint``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import get_device_states, set_device_states

from gradcheck_plus.zoo import graphs
from gradcheck_plus.zoo.planted import Make
from gradcheck_plus.zoo.trees import Rebuild, flattened

#: Outputs that take part in a backward, each with what it receives.
Pairs = list[tuple[Tensor, Tensor]]


@dataclass(eq=False)
class Region:
    """One call, and what its recompute must know of it.

    Attributes:
        function: what is called.
        rebuild: puts tensors into the containers that the arguments came in.
        flags: which of the arguments' tensors require grad.
        generator: the state of the CPU's generator before the call.
        devices: the other devices in use, and the states of their generators.
        autocast: for each kind of device, whether autocast is on, and its dtype.
        places: which of the output's tensors come from the node that stands for the region, each once.
        notes: whatever else an implementation wants to remember.
    """

    function: Callable[..., Any]
    rebuild: Rebuild
    flags: list[bool]
    generator: Tensor
    devices: tuple[Sequence[int], list[Tensor]]
    autocast: dict[str, tuple[bool, torch.dtype]]
    places: list[int] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)


class FunctionCheckpoint:
    """Called as ``checkpoint(function, *args, **kwargs)``.

    The function runs with grad on tensors that are cut off from the caller's, which tells what requires grad and what depends
    on what; that graph is dropped. The backward runs the function again on the saved inputs and takes its gradients there.
    """

    #: Do outputs that receive nothing receive zeros?
    materialises = False

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function; gradients will come from a recompute."""
        given, rebuild = flattened((args, kwargs))
        region = self.region(function, rebuild, given)
        inner = self.cut_off(region, given)
        returned, put_back = flattened(self.call(region, inner))
        # An input that is returned is handed back as it is; one that requires grad goes through the node, on the same memory.
        outer = {id(a): b for a, b in zip(inner, given, strict=True) if not a.requires_grad}
        places: dict[int, int] = {}
        for place, tensor in enumerate(returned):
            if id(tensor) not in outer:
                places.setdefault(id(tensor), place)
        region.places = list(places.values())
        made = [returned[place] for place in region.places]
        if made:
            # What no output depends on must not seem to take part, or whatever made it would run backward for nothing.
            reached = {id(leaf) for leaf in graphs.leaves(made)}
            taken = [b if id(a) in reached else b.detach() for a, b in zip(inner, given, strict=True)]
            outputs = _Recomputed.apply(self, region, made, self.anchor(region), *taken)  # type: ignore[no-untyped-call]
            outer |= {id(a): b for a, b in zip(made, outputs, strict=True)}
        return put_back(iter([outer[id(t)] for t in returned]))

    # the forward ----------------------------------------------------------------------------------------------------

    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        """Return what the recompute of a call must know."""
        kinds = sorted({"cpu", *(t.device.type for t in given)})
        autocast = {kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds}
        flags = [t.requires_grad for t in given]
        return Region(function, rebuild, flags, torch.get_rng_state(), get_device_states(*given), autocast)

    def cut_off(self, region: Region, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return leaves on the same memory."""
        return [t.detach().requires_grad_(flag) for t, flag in zip(tensors, region.flags, strict=True)]

    def call(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        """Call the function on some inputs."""
        args, kwargs = region.rebuild(iter(inputs))
        return region.function(*args, **kwargs)

    def anchor(self, region: Region) -> Tensor:
        """Return an input that requires grad: there may be no other, though parameters do."""
        return torch.empty(0, requires_grad=True)

    def packed(self, tensor: Tensor) -> Tensor:
        """Return what is saved of an input."""
        return tensor

    def without_grad(self, outputs: Sequence[Tensor]) -> list[bool]:
        """Say which outputs do not require grad."""
        return [not output.requires_grad for output in outputs]

    # the backward ---------------------------------------------------------------------------------------------------

    def backward(self, region: Region, saved: Sequence[Tensor], received: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return the gradients of the inputs, given the saved inputs and what the outputs received."""
        inputs = self.cut_off(region, self.unpacked(region, saved))
        with torch.enable_grad(), self.noise(region), self.precision(region):
            returned, _ = flattened(self.recompute(region, inputs))
        outputs = [returned[place] for place in region.places]
        self.differentiate(region, self.pairs(outputs, received), inputs)
        return self.gradients(region, inputs)

    def unpacked(self, region: Region, saved: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the inputs of the recompute."""
        return saved

    def noise(self, region: Region) -> AbstractContextManager[None]:
        """Draw meanwhile what the forward drew, and leave the generators as they are."""
        return _noise(region)

    def precision(self, region: Region) -> AbstractContextManager[Any]:
        """Compute meanwhile under the autocast of the forward."""
        stack = ExitStack()
        for kind, (enabled, dtype) in region.autocast.items():
            stack.enter_context(torch.autocast(kind, enabled=enabled, dtype=dtype))
        return stack

    def recompute(self, region: Region, inputs: Sequence[Tensor]) -> Any:
        """Call the function once more."""
        return self.call(region, inputs)

    def pairs(self, outputs: Sequence[Tensor], received: Sequence[Tensor | None]) -> Pairs:
        """Return the outputs that a gradient comes from."""
        return [(o, g) for o, g in zip(outputs, received, strict=True) if o.requires_grad and g is not None]

    def differentiate(self, region: Region, pairs: Pairs, inputs: Sequence[Tensor]) -> None:
        """Fill the `.grad` of the inputs, and add to those of the parameters."""
        if pairs:
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])

    def gradients(self, region: Region, inputs: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradients of the inputs."""
        return [t.grad for t in inputs]


class _Recomputed(torch.autograd.Function):
    """The node that stands for a region in the caller's graph."""

    @staticmethod
    def forward(
        ctx: Any, checkpoint: FunctionCheckpoint, region: Region, made: list[Tensor], _anchor: Tensor, *given: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(checkpoint.materialises)
        ctx.checkpoint, ctx.region = checkpoint, region
        ctx.save_for_backward(*map(checkpoint.packed, given))
        outputs = tuple(t.detach() for t in made)
        ctx.mark_non_differentiable(*(o for o, without in zip(outputs, checkpoint.without_grad(made), strict=True) if without))
        return outputs

    @staticmethod
    def backward(ctx: Any, *received: Tensor | None) -> tuple[Tensor | None, ...]:
        return (None, None, None, None, *ctx.checkpoint.backward(ctx.region, ctx.saved_tensors, received))


@contextmanager
def _noise(region: Region) -> Iterator[None]:
    devices, states = region.devices
    with torch.random.fork_rng(devices=devices):
        torch.set_rng_state(region.generator)
        set_device_states(devices, states)
        yield


#: The correct one.
twin = FunctionCheckpoint()
plant = Make("checkpoint", twin, "function-checkpoint").plant
