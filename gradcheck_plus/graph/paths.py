"""Which module's forward is running, seen from outside, and how modules and parameters are named."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from gradcheck_plus.graph.walk import leaf_names


@dataclass(frozen=True)
class Entry:
    """One call of a module.

    Attributes:
        path: the module, as `Paths` names it.
        modes: what its forward runs under, in words: training or evaluation, and autocast.
        backward: the number of the backward that was running, None in a forward.
    """

    path: str
    modes: tuple[str, ...]
    backward: int | None


class Paths:
    """Names every module by its path in the outermost one that was called, and knows which of them is running.

    The first outermost module is named as `nn.Module.named_modules` names it, the root with the empty string; a further one by
    its class, with a number where that is taken.

    Args:
        names: a module, or leaves, to be named before all others.
        running: returns the number of the backward that runs.
        like: another one, whose names are taken over for the modules that are called again.
        fresh: take the ``.grad`` from every leaf as it is named, until `put_back`.

    Attributes:
        entries: the calls of modules so far.
        leaves: the parameters that have a name, as the module that they belong to has; what was named from outside goes first.
    """

    def __init__(
        self,
        names: nn.Module | Mapping[str, torch.Tensor] | None,
        running: Callable[[], int | None],
        *,
        fresh: bool,
        like: "Paths | None" = None,
    ) -> None:
        self.entries: list[Entry] = []
        self._running = running
        self._fresh = fresh
        self._before: dict[torch.Tensor, torch.Tensor | None] = {}
        self.leaves: dict[torch.Tensor, str] = leaf_names(None if isinstance(names, nn.Module) else names)
        self._modules: dict[nn.Module, str] = {}
        self._roots: set[str] = set()
        self._stack: list[nn.Module] = []
        self._like = like
        for leaf in self.leaves:
            self._set_aside(leaf)
        if isinstance(names, nn.Module):
            self.name(names)

    @property
    def here(self) -> str | None:
        """The path of the module that is running, the innermost one with a name; None outside of all."""
        return next((self._modules[module] for module in reversed(self._stack) if module in self._modules), None)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Follow every call of a module meanwhile."""
        handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @property
    def inside(self) -> bool:
        """Is a module running?"""
        return bool(self._stack)

    def _enter(self, module: nn.Module, _: Any) -> None:
        if not self._stack and module not in self._modules:
            self.name(module)
        self._stack.append(module)
        self.entries.append(Entry(self.here or "", _modes(module), self._running()))

    def _leave(self, module: nn.Module, *_: Any) -> None:
        # What is above it ended without its hook, by an exception that is no `Exception`.
        while self._stack and self._stack.pop() is not module:
            pass

    def name(self, root: nn.Module) -> None:
        """Name a module, all in it, and its parameters."""
        prefix = self._prefix(root)
        self._roots.add(prefix)
        dot = f"{prefix}." if prefix else ""
        for name, module in root.named_modules():
            self._modules.setdefault(module, f"{dot}{name}" if name else prefix)
        for leaf, name in leaf_names(root).items():
            if leaf not in self.leaves:
                own = " = ".join(dot + one for one in name.split(" = "))
                self.leaves[leaf] = self._like.leaves.get(leaf, own) if self._like else own
                self._set_aside(leaf)

    def _prefix(self, root: nn.Module) -> str:
        if self._like is not None and root in self._like._modules:
            return self._like._modules[root]
        own = type(root).__name__ if self._roots else ""
        return next(name for n in range(len(self._roots) + 1) if (name := f"{own}{n or ''}") not in self._roots)

    def _set_aside(self, leaf: torch.Tensor) -> None:
        if self._fresh:
            self._before[leaf], leaf.grad = leaf.grad, None

    def put_back(self) -> None:
        """Give every leaf the ``.grad`` that it had when it was named, if these were set aside."""
        for leaf, grad in self._before.items():
            leaf.grad = grad


def _modes(module: nn.Module) -> tuple[str, ...]:
    kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    return ("in training mode" if module.training else "in evaluation mode", *map(_autocast, kinds))


def _autocast(kind: str) -> str:
    dtype = str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
    return f"under autocast to {dtype}" if torch.is_autocast_enabled(kind) else "without autocast"
