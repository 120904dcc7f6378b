"""One node of a recorded backward."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Literal

import torch

from gradcheck_plus.compat import forward_class, hooks_of_leaf, saved_tensors, sequence_number
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.graph import checking, replaying
from gradcheck_plus.graph.forward import Call
from gradcheck_plus.graph.structs import Gradients, NodeCheck, RecordedNode

Values = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Node:
    """One node of a backward: what it received and returned, and what it is.

    Attributes:
        index: its place in backward order.
        grad_fn: torch's node.
        received: the gradients that came, one for each differentiable output of its forward, after the hooks on that output.
        returned: the gradients that went on, one for each input, after the node's own hooks; None where no gradient is due.
        received_values, returned_values: the same as tensors, if they were asked for.
        leads_to: for each gradient that it returns, the index of the node that receives it.
        leaf: of a node that adds to the ``.grad`` of a leaf, the name of the leaf, if one was given.
        call: what made it, if the forward was recorded.
        materialises: does its Function see zeros in the place of None? None where that is not known.
        outputs: what the backward started from. Up to torch 2.11 a node of a Function does not keep itself alive.
        backward: the number of the backward that it ran in: 0 for the outermost, and one more for each that started later.
        parent: the index of the node in whose backward its own was started, as a reentrant checkpoint does; None outside.
    """

    index: int
    grad_fn: Any
    received: Gradients
    returned: Gradients
    received_values: Values | None
    returned_values: Values | None
    leads_to: tuple[int | None, ...]
    leaf: str | None
    call: Call | None
    materialises: bool | None
    outputs: Sequence[torch.Tensor]
    backward: int
    parent: int | None

    def __repr__(self) -> str:
        return f"<Node {self.index}: {self.name}>"

    @property
    def name(self) -> str:
        """The name that torch gives it."""
        name: str = self.grad_fn.name()
        return name.rpartition("::")[2]

    @property
    def kind(self) -> Literal["torch", "function", "leaf"]:
        """Is it torch's own, that of a `torch.autograd.Function`, or one that adds to the ``.grad`` of a leaf?"""
        if forward_class(self.grad_fn) is not None:
            return "function"
        return "leaf" if hasattr(self.grad_fn, "variable") else "torch"

    @property
    def operation(self) -> str | None:
        """What made it: the operation if the forward was recorded, else what the node itself tells; None for a leaf."""
        if self.call is not None:
            return self.call.name
        function = forward_class(self.grad_fn)
        if function is not None:
            return f"{function.__module__}.{function.__qualname__}"
        return None if self.kind == "leaf" else self.name.partition("Backward")[0]

    @property
    def made(self) -> int:
        """Its place among the nodes that its thread made, in the order of the forward."""
        return sequence_number(self.grad_fn)

    @property
    def path(self) -> str | None:
        """The module whose forward made it, as `named_modules` names it; None outside of all, and if that was not seen."""
        return self.call.path if self.call is not None else None

    @property
    def source(self) -> str | None:
        """The line that made it, as ``path:line``.

        Known if the forward was recorded, or ran in torch's anomaly mode; None if neither.
        """
        if self.call is not None:
            return self.call.source
        stack = self.grad_fn.metadata.get("traceback_", [])
        lines = [entry for entry in stack if f"{torch.__path__[0]}/" not in entry]
        return _place(lines[-1]) if lines else None

    @property
    def hooks(self) -> tuple[str, ...]:
        """The hooks of a leaf, in the order in which they run. torch does not list those of other nodes."""
        leaf = getattr(self.grad_fn, "variable", None)
        return tuple(getattr(h, "__qualname__", type(h).__name__) for h in hooks_of_leaf(leaf)) if leaf is not None else ()

    @property
    def saved(self) -> dict[str, str]:
        """What it saved for its backward, in words.

        Nothing is unpacked: where a hook stands before a saved tensor, as in a checkpoint or under `save_on_cpu`, this says so
        and no more, since reading it would run the hook, and with it perhaps a recomputation.
        """
        names = [name.removeprefix("_saved_") for name in dir(type(self.grad_fn)) if name.startswith("_saved_")]
        found = {name: _saved(self.grad_fn, name) for name in names}
        if self.kind == "function":
            found["tensors"] = _saved(self.grad_fn, "tensors")
            found |= {f"ctx.{name}": _described(value) for name, value in vars(self.grad_fn).items()}
        return found

    def replay(self, grad_outputs: Sequence[torch.Tensor | None] | None = None, *, accumulate: bool = False) -> Values:
        """Run this node again, alone, and return the gradients that it returns.

        No hook fires, and no ``.grad`` changes unless `accumulate` is set. For the gradients that it received, the result is
        bit for bit what it returned, unless a hook on the node changed that.

        Args:
            grad_outputs: what it receives: one gradient for each differentiable output of its forward, None for none. The
                default is what it received, if the recording has `values`.
            accumulate: let a node that adds to the ``.grad`` of its leaf do so; it returns nothing.

        Raises:
            InvalidArgument: the gradients do not fit, what the node saved was freed, or it would accumulate.

        Example:
            >>> import torch
            >>> import gradcheck_plus as gp
            >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
            >>> square = gp.record_backward((x * x).sum(), retain_graph=True).nodes[1]
            >>> square.replay([torch.tensor([1.0, 10.0])])
            (tensor([ 1., 20.]), tensor([ 1., 20.]))
        """
        if self.kind == "leaf" and not accumulate:
            raise InvalidArgument(
                f"`accumulate`=False, and all that {self.name} does is to add to the `.grad` of {self.leaf or 'its leaf'}. Pass"
                " `accumulate=True` if that is what you want."
            )
        given = self.received_values if grad_outputs is None else grad_outputs
        if given is None:
            raise InvalidArgument(
                "`grad_outputs`=None stands for what the node received, which was not kept. Give the gradients, or record the"
                " backward with `values=True`."
            )
        return replaying.replay(self.grad_fn, given, materialises=self.materialises)

    def check(self) -> NodeCheck:
        """Is what this node computes the derivative of its forward? Both are run again in float64, from the same inputs.

        See `Recording.check`, which does it for every node.
        """
        return checking.check(self)

    def data(self) -> RecordedNode:
        """Return this node as data."""
        return RecordedNode(**{name: getattr(self, name) for name in RecordedNode.__struct_fields__})


def _saved(grad_fn: Any, name: str) -> str:
    """Describe what a node saved under a name, without running an unpack hook."""
    try:
        if not hasattr(type(grad_fn), f"_raw_saved_{name}"):
            return _described(getattr(grad_fn, f"_saved_{name}"))
        seen = saved_tensors(grad_fn, name)
    except RuntimeError:
        return "freed"
    return "not read: it may have to be unpacked" if seen is None else ", ".join(starmap(_shown, seen))


def _shown(tensor: torch.Tensor | None, packed: bool) -> str:  # noqa: FBT001 - a pair, as it comes
    if packed:
        return "not read: an unpack hook stands before it"
    return "nothing, or freed" if tensor is None else _described(tensor)


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    plain = isinstance(value, bool | int | float | complex | str | None)
    return repr(value) if plain or (isinstance(value, tuple | list) and len(value) < 9) else type(value).__name__


def _place(entry: str) -> str:
    """Return ``path:line`` for an entry of a formatted traceback."""
    _, path, rest = entry.split('"', 2)
    return f"{path}:{rest.split()[2].rstrip(',')}"
