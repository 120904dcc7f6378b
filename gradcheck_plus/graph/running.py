"""A whole run, recorded: its operations, those recomputed in a backward among them, and every backward."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import torch

from gradcheck_plus.compat import tensors
from gradcheck_plus.graph.forward import Call, ForwardRecording, Value
from gradcheck_plus.graph.paths import Paths
from gradcheck_plus.graph.recording import Recording, nodes_of, rank
from gradcheck_plus.graph.watching import Watch

#: What only hands a tensor on.
_PASSING = ("aten.detach.default", "aten.alias.default", "aten.lift_fresh.default")


class RunRecording(ForwardRecording):
    """Everything that runs while this is entered, forwards and backwards; made by `record_run`.

    Args:
        names: as for `record_run`.
        outside: keep what runs outside of all modules too.
        fresh: take the ``.grad`` from every leaf as it is named, until `put_back`.
        like: another recording, which gives modules and leaves that it has seen the names that they have there.
    """

    def __init__(
        self,
        names: torch.nn.Module | Mapping[str, torch.Tensor] | None = None,
        *,
        outside: bool = True,
        fresh: bool = False,
        like: "RunRecording | None" = None,
    ) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._outside, self._watch = outside, Watch(values=True)
        self._paths: Paths = Paths(names, lambda: self._watch.running, fresh=fresh, like=like._paths if like else None)
        self._stack = contextlib.ExitStack()
        self.raised: BaseException | None = None
        self._finished: Recording | None = None
        self._paused = False
        self._within: list[Any] = []
        self._unwritten: dict[int, torch.Tensor] = {}

    def __enter__(self) -> Self:
        """Start, from here on and in this thread."""
        self._stack.enter_context(self._paths.following())
        self._stack.enter_context(self._watch.watching())
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End; whatever was seen stays, the exception that ends it too."""
        self.raised = self.raised or error
        super().__exit__(kind, error, traceback)
        self._stack.close()

    @property
    def backwards(self) -> int:
        """How many backwards ran."""
        return len(self._watch.starts)

    def ran(self, output: torch.Tensor) -> bool:
        """Did a backward run from this output?"""
        return any(seen.grad_fn is output.grad_fn for seen in self._watch.seen)

    def name(self, names: torch.nn.Module | Mapping[str, torch.Tensor]) -> None:
        """Name a module, or leaves, that did not exist when this was made."""
        if isinstance(names, torch.nn.Module):
            self._paths.name(names)
        else:
            self._paths.leaves |= {leaf: name for name, leaf in names.items()}

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Keep no operation meanwhile."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def put_back(self) -> None:
        """Give every leaf the ``.grad`` that it had when it was named, if these were taken."""
        self._paths.put_back()

    @property
    def recording(self) -> Recording:
        """What was recorded, with the ``.grad`` of every named leaf as it is now, or was when this was finished."""
        return self._finished or self._recording()

    def finish(self) -> None:
        """Keep what was recorded as it is now."""
        self._finished = self._recording()

    def _recording(self) -> Recording:
        named = self._paths.leaves
        gradients = {name: None if leaf.grad is None else leaf.grad.detach().clone() for leaf, name in named.items()}
        nodes, entries = nodes_of(self._watch, named, self), tuple(self._paths.entries)
        results = tuple(self._watch.returned)
        return Recording(nodes, rank(), tuple(self.calls), entries, results, self.raised, gradients)

    def _begin_function(self, function: Any) -> None:
        self._within.append(function)

    def _note_function(self, function: Any, args: tuple[Any, ...], outputs: Any) -> None:
        # What is above it raised, and was caught in its forward.
        while self._within and self._within.pop() is not function:
            pass
        super()._note_function(function, args, outputs)

    def _takes(self, *, fresh: bool) -> bool:
        """Take every operation of a forward and of a recomputation, but not those that a backward consists of."""
        if self._paused or not (self._outside or self._paths.inside):
            return False
        return self._watch.running is None or torch.is_grad_enabled()

    def _copies(self, tree: Any) -> list[Value]:
        with self.paused():  # a call of a Function is noted above this mode, which would see the copies made
            # Whatever happens to be in memory that was not written yet is no value.
            return [
                Value(torch.zeros_like(t), written=False) if id(t) in self._unwritten else Value(t.detach().clone())
                for t in tensors(tree)
            ]

    def _call(self, name: str, function: Any, given: Any, before: list[Value], outputs: Any) -> Call:
        unwritten = name.removeprefix("aten.").removeprefix("new_").startswith("empty")
        for output in tensors(outputs):
            self._unwritten.pop(id(output), None)
            if unwritten:
                self._unwritten[id(output)] = output
        call = super()._call(name, function, given, before, outputs)
        within = tuple(self._within)
        call = replace(call, path=self._paths.here, backward=self._watch.running, within=within)
        if name not in _PASSING and not unwritten:
            self.calls.append(call)
        return call


def record_run(*, names: torch.nn.Module | Mapping[str, torch.Tensor] | None = None) -> RunRecording:
    """Record, while it is entered, every operation and every backward: those of stages and those within a backward too.

    Of each operation the module, the line and copies of what went in and came out are kept, and of each node what it received
    and returned: for two runs that are to be compared by `first_divergence`, and not around a whole training. Operations that a
    checkpoint recomputes carry the number of the backward in which they are; work of other threads is not seen.

    Args:
        names: the module whose parameters and submodules are to be named, or leaves by name. Without it, and for what it does
            not name, the outermost modules that are called give the names.

    Example:
        >>> import torch
        >>> import gradcheck_plus as gp
        >>> from torch.utils.checkpoint import checkpoint
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
        >>> with gp.record_run() as run:
        ...     checkpoint(model, torch.ones(4, 2), use_reentrant=False).sum().backward()
        >>> [(call.path, call.backward) for call in run.calls if call.name == "aten.tanh.default"]
        [('1', None), ('1', 0)]
        >>> run.recording.gradients["0.bias"].shape
        torch.Size([3])
    """
    return RunRecording(names)
