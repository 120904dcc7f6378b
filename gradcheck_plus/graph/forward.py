"""What made the nodes of a graph: the operations of a forward, recorded while it runs."""

import contextlib
import linecache
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from gradcheck_plus import compat, support
from gradcheck_plus.compat import (
    TorchDispatchMode,
    calls_of_functions,
    changes_operand,
    forward_class,
    last_sequence_number,
    map_tensors,
    sequence_number,
    tensors,
)

#: Code in these places calls operations for somebody else, whose line is the one to name.
_PASSED_OVER = (
    str(Path(torch.__file__).parent),
    str(Path(__file__).parent),
    str(Path(__file__).parent.parent / "execute"),
    contextlib.__file__,
    compat.__file__,
    support.__file__,
)

#: What called this is no part of what is recorded: a graph that a reentrant checkpoint makes in the backward has no line.
_RECORDS_CALLABLES = str(Path(__file__).parent / "tracing.py")


@dataclass(frozen=True, eq=False)
class Value:
    """A copy of what went into an operation or came out; zeros of its shape if nothing was `written` to it yet."""

    tensor: torch.Tensor
    written: bool = True

    @property
    def shape(self) -> torch.Size:
        """Its shape."""
        return self.tensor.shape

    @cached_property
    def digest(self) -> tuple[torch.dtype, torch.Size, int]:
        """What is the same for values of the same bits, and for hardly any others."""
        dense = self.tensor.to_dense() if self.tensor.layout is not torch.strided else self.tensor
        return dense.dtype, dense.shape, hash(dense.contiguous().reshape(-1).view(torch.uint8).cpu().numpy().tobytes())


@dataclass(frozen=True, eq=False)
class Call:
    """One operation of a forward that made a node.

    Attributes:
        name: ``aten.mm.default``, or the qualified name of a `torch.autograd.Function`.
        source: the line outside torch that it came from, as ``path:line``.
        function: what was called.
        args, kwargs: what with. An operation that writes into its arguments has copies here, of what they were.
        outputs: the tensors that came out.
        path: the module whose forward it came from, as `Paths` names it; None outside of all, and if that was not followed.
        backward: the number of the backward that was running, in which this is recomputed; None in a forward.
        within: the Functions in whose forwards it ran, where a whole run is recorded.
        before, after: copies of the tensors that went in and came out, where a whole run is recorded.
        versions: the version counters of all these tensors when it was done.
    """

    name: str
    source: str | None
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[torch.Tensor]
    path: str | None = None
    backward: int | None = None
    within: tuple[Any, ...] = ()
    before: Sequence[Value] = ()
    after: Sequence[Value] = ()
    versions: list[int] = field(default_factory=list)

    @property
    def is_function(self) -> bool:
        """Is it a call of a `torch.autograd.Function`?"""
        return isinstance(self.function, type)

    @property
    def has_changed(self) -> bool:
        """Was anything that went in or came out changed in place since?"""
        return self.versions != self._versions()

    def settle(self) -> None:
        """Take the version counters: they are right only when the operation has left autograd."""
        self.versions[:] = self._versions()

    def _versions(self) -> list[int]:
        return [-1 if t.is_inference() else t._version for t in tensors((self.args, self.kwargs, self.outputs))]


class ForwardRecording(TorchDispatchMode):
    """The operations of the forward that runs while this is entered; made by `record_forward`.

    It holds what went into every operation and what came out of it, which is more than autograd itself saves.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch does not annotate it
        self._calls: dict[int, list[Call]] = {}
        self._last = -1
        self._unsettled: Call | None = None
        self._thread = threading.get_ident()
        self._functions = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Start, from here on and in this thread."""
        self._thread, self._last = threading.get_ident(), last_sequence_number()
        self._functions.enter_context(calls_of_functions(self._note_function, self._begin_function))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End; whatever was seen stays."""
        self._keep(None)
        super().__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]
        self._functions.close()

    def __len__(self) -> int:
        """Return how many operations that made a node were seen."""
        return len(self._calls)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation, and keep it if autograd made a node for it."""
        number, kwargs = last_sequence_number(), kwargs or {}
        self._keep(None)
        # A node is made just before its operation comes here; what comes later under the same number made none.
        fresh, self._last, writes = number > self._last, max(number, self._last), changes_operand(func)
        if not fresh and writes and self._cloned(number):
            # Between the two, autograd made a clone of what is to be overwritten, for the backward, and a node for it.
            fresh, number = True, number - 1
        fresh = fresh and torch.is_grad_enabled()
        if not self._takes(fresh=fresh):
            return func(*args, **kwargs)
        given = map_tensors(_copy, (args, kwargs)) if writes else (args, kwargs)
        before = self._copies((args, kwargs))
        outputs = func(*args, **kwargs)
        self._keep(call := self._call(str(func), func, given, before, outputs))
        if fresh:
            self._calls.setdefault(number, []).append(call)
        return outputs

    def _takes(self, *, fresh: bool) -> bool:
        """Is an operation kept, which made a node if it is `fresh`?"""
        return fresh

    def _copies(self, tree: Any) -> list[Value]:
        """Return copies of the tensors of a tree, if any are to be kept."""
        return []

    def _call(self, name: str, function: Any, given: tuple[Any, Any], before: list[Value], outputs: Any) -> Call:
        args, kwargs = given
        after = self._copies(outputs)
        return Call(name, _source(), function, tuple(args), dict(kwargs), tensors(outputs), before=before, after=after)

    def _begin_function(self, function: Any) -> None:
        """Take note that the forward of a Function begins."""

    def _note_function(self, function: Any, args: tuple[Any, ...], outputs: Any) -> None:
        """Keep a call of a Function, which runs its forward without grad mode and so without nodes."""
        if threading.get_ident() != self._thread:
            return
        made = [t for t in tensors(outputs) if forward_class(t.grad_fn) is function]
        if made:
            name = f"{function.__module__}.{function.__qualname__}"
            self._keep(call := self._call(name, function, (args, {}), self._copies(args), outputs))
            self._calls[sequence_number(made[0].grad_fn)] = [call]

    def _keep(self, call: Call | None) -> None:
        """Settle the call before this one."""
        if self._unsettled is not None:
            self._unsettled.settle()
            self._find_node(self._unsettled)
        self._unsettled = call

    def _find_node(self, call: Call) -> None:
        """Find the node of an operation whose number another one made first, as in a hook that packs what is saved."""
        for output in call.outputs:
            if not output._is_view() and output.grad_fn is not None:
                known = self._calls.setdefault(sequence_number(output.grad_fn), [])
                if call not in known:
                    known.append(call)

    def _cloned(self, number: int) -> bool:
        return [call.name for call in self._calls.get(number, ())] == ["aten.clone.default"]

    def call(self, grad_fn: Any) -> Call | None:
        """Return the operation that made a node, None if it was not seen."""
        found = self._calls.get(sequence_number(grad_fn), ())
        return next((call for call in found if _made(call, grad_fn)), None)


def record_forward() -> ForwardRecording:
    """Record, while it is entered, which operations make the nodes of a graph, and from which source line.

    With it `record_backward` names the line that each node comes from, and `Node.check` has a forward to redo. What the forward
    computes is the same bit for bit. Everything that goes into or comes out of its operations is held until the recording
    goes: use it for a few runs, and not around a whole training. Work of other threads is not seen.

    Example:
        >>> import torch
        >>> import gradcheck_plus as gp
        >>> x = torch.ones(3, requires_grad=True)
        >>> with gp.record_forward() as forward:
        ...     loss = x.exp().sum()
        >>> [node.operation for node in gp.record_backward(loss, forward=forward)]
        ['aten.sum.default', 'aten.exp.default', None]
    """
    return ForwardRecording()


def _made(call: Call, grad_fn: Any) -> bool:
    """Is the node of this operation? Some nodes have a number, but no operation of their own came with it."""
    function = forward_class(grad_fn)
    if function is not None or call.is_function:
        return call.function is function
    named: str = grad_fn.name().partition("Backward")[0].lower()
    operation = call.name.split(".")[1]
    return named == operation.removesuffix("_forward").replace("_", "").lower()


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def line_of(source: str) -> str:
    """Return the text of a line given as ``path:line``, empty where it is not known."""
    path, _, number = source.rpartition(":")
    return linecache.getline(path, int(number)).strip() if path else ""


def passed_over(frame: FrameType) -> bool:
    """Is this code that calls operations for somebody else?"""
    return frame.f_code.co_filename.startswith(_PASSED_OVER)


def _source() -> str | None:
    """Return the innermost line that is neither torch's nor ours; of a callable that is recorded, only lines within it."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_code.co_filename != _RECORDS_CALLABLES:
        if not passed_over(frame):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None
