"""The live things of one execution: model, primals, hooks, and the record they fill.

Note [Shared gradients]: plain autograd can leave leaves whose ``.grad`` are one memory, as of two scalars that were stacked and
summed (see docs/findings.md). What is then done in place to one, the next backward's sum among it, is done to the other: the
reference itself would be wrong, and a subject that is right would be blamed.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import nn

from gradcheck_plus import support
from gradcheck_plus.case import Case, Cotangent, ModuleProgram
from gradcheck_plus.case.environment import Hook
from gradcheck_plus.execute import device as devices
from gradcheck_plus.execute.build import Variant, compiled
from gradcheck_plus.mismatch import Role
from gradcheck_plus.record import Aspect, Record, storage
from gradcheck_plus.source import SEED, Calls, cotangent_source


class World:
    """Everything alive while one case runs under one subject.

    Attributes:
        model: the ``Model`` of the case's source, filled with the same values every time.
        leaves: the leaf primals by the name that code reaches them by, of all forwards so far.
        record: what has been seen so far.
        separates: leaves are given gradients of their own; not where an implementation adds up the gradients itself.
    """

    def __init__(self, case: Case, device: str, variant: Variant, calls: Calls = "subject") -> None:
        self.case, self.device, self.variant = case, device, variant
        self.truth = variant == "truth"
        self.record = Record()
        self.space = compiled(case, device=device, variant=variant, calls=calls).space
        self.own = isinstance(case.program, ModuleProgram)
        self.seed()  # a user's own module makes its parameters itself, and some layers draw their buffers
        self.model: nn.Module = self.space["Model"]()
        self._prepare()
        self.leaves: dict[str, torch.Tensor] = {}
        self.inputs: dict[str, torch.Tensor] = {}
        self.previous: dict[str, Any] = {}
        self.separates = True
        self._hook_parameters()
        self._hook_modules()

    def _prepare(self) -> None:
        dtype = torch.float64 if self.truth else getattr(torch, self.case.program.dtype)
        if self.own and not self.truth:
            self.model.to(self.device)
        elif (self.device, dtype) != ("cpu", torch.float32):
            self.model.to(self.device, dtype)
        self.model.train(self.case.environment.train)
        if not self.own:
            self.space["fill"](self.model)
        self.parameters = dict(self.model.named_parameters())
        self.buffers = [(n, *n.rpartition(".")[::2]) for n, _ in self.model.named_buffers()]
        self.owners = {owner: self.model.get_submodule(owner) for _, owner, _ in self.buffers}
        self.trainable = {n: p for n, p in self.parameters.items() if p.requires_grad}
        if self.case.environment.existing_grad:
            for number, (name, p) in enumerate(self.trainable.items()):
                p.grad = self.space["values"](p.shape, number + 70, p.dtype)
                self.record.before["parameter", f"params[{name!r}].grad"] = p.grad.clone()

    # hooks ---------------------------------------------------------------------------------------------------------

    def has(self, hook: Hook) -> bool:
        """Does the environment ask for this hook?"""
        return hook in self.case.environment.hooks

    def _hook_parameters(self) -> None:
        for name, p in self.trainable.items():
            if self.has("parameter"):
                p.register_hook(functools.partial(self._halved, f"params[{name!r}]"))
            if self.has("post-accumulate"):
                p.register_post_accumulate_grad_hook(functools.partial(self._accumulated, f"params[{name!r}]"))

    def _hook_modules(self) -> None:
        for name, module in self.model.named_children():
            if self.has("forward"):
                module.register_forward_hook(functools.partial(self._forwarded, name))
            if self.has("backward"):
                module.register_full_backward_hook(functools.partial(self._backwarded, name))

    def fired(self, role: Literal["hook", "forward-hook"], name: str) -> None:
        """Count one firing of a hook."""
        key: tuple[Role, str, Aspect] = (role, name, "firings")
        self.record.facts[key] = self.record.facts.get(key, 0) + 1

    def _halved(self, name: str, grad: torch.Tensor | None) -> torch.Tensor | None:
        """Halve a gradient. It is None where nothing reaches the parameter, though a backward hook's node leads there."""
        self.fired("hook", f"{name}.register_hook")
        return None if grad is None else grad * 0.5

    def _accumulated(self, name: str, parameter: torch.Tensor) -> None:
        self.fired("hook", f"{name}.register_post_accumulate_grad_hook")
        if parameter.grad is not None:
            parameter.grad = parameter.grad * 0.5  # not in place; see Note [Shared gradients]

    def _forwarded(self, name: str, *_: Any) -> None:
        self.fired("forward-hook", f"{name}.register_forward_hook")

    def _backwarded(self, name: str, *_: Any) -> None:
        self.fired("hook", f"{name}.register_full_backward_hook")

    # primals -------------------------------------------------------------------------------------------------------

    def primals(self, forward: int) -> dict[str, Any]:
        """Return the primals of one forward by name, and note their leaves."""
        made: dict[str, Any] = self.space[f"inputs{forward}"]()
        suffix = f"_{forward}" if forward else ""
        reused = self.case.reused if forward else frozenset()
        for p in self.case.primals:
            if p.name in reused:
                with torch.no_grad():
                    made[p.name] = self.previous[p.name].copy_(made[p.name])
                continue
            if p.alias:
                made[p.name] = made[p.alias]
            leaf = made.get(f"root_{p.name}", made[p.name])
            if p.tensor and not p.alias:
                self.inputs[f"{p.name}{suffix}"] = made[p.name]
                if leaf.requires_grad:
                    self._note_leaf(f"{'root_' if leaf is not made[p.name] else ''}{p.name}{suffix}", leaf, made[p.name])
        self.previous = made
        return {p.name: made[p.name] for p in self.case.primals}

    def _note_leaf(self, name: str, leaf: torch.Tensor, value: torch.Tensor) -> None:
        self.leaves[name] = leaf
        if self.case.environment.existing_grad:
            leaf.grad = self.space["values"](leaf.shape, 90, leaf.dtype)
            self.record.before["primal", f"{name}.grad"] = leaf.grad.clone()
        if self.has("input"):
            value.register_hook(lambda grad: self.fired("hook", f"{name}.register_hook"))

    def storages(self) -> dict[int, str]:
        """Return which input each storage belongs to."""
        found = {storage(t): name for name, t in reversed(self.inputs.items())}
        found.pop(0, None)
        return found

    # cotangents and state ------------------------------------------------------------------------------------------

    def cotangent(self, cotangent: Cotangent, output: torch.Tensor, repetition: int) -> torch.Tensor:
        """Return the cotangent for an output."""
        dtype = str(output.dtype).removeprefix("torch.")
        value: torch.Tensor = evaluated(cotangent_source(cotangent, tuple(output.shape), dtype, repetition), self.space)
        return value

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Return the autocast context of the forward."""
        name = self.case.environment.autocast
        kind = devices.kind(self.device)
        return torch.autocast(kind, dtype=getattr(torch, name)) if name and not self.truth else contextlib.nullcontext()

    def separate_gradients(self) -> None:
        """Give each leaf a ``.grad`` of its own; see Note [Shared gradients]."""
        if self.separates:
            support.separate((*self.trainable.values(), *self.leaves.values()))  # type: ignore[no-untyped-call]

    def change_parameter(self) -> None:
        """Change the first trainable parameter in place, as an optimiser step in the wrong place does."""
        with torch.no_grad():
            for p in list(self.trainable.values())[:1]:
                p.mul_(1.5)

    def seed(self) -> None:
        """Put every generator that the case may draw from into the same state."""
        devices.seed(self.device, SEED)

    def note_state(self, when: str) -> None:
        """Take in the generators and modes as they are now."""
        r = self.record
        for read, generator in devices.generators(self.device).items():
            r.tensors["rng", f"{read} after {when}"] = generator.get_state()
        r.facts["mode", f"torch.is_grad_enabled() after {when}", "state"] = torch.is_grad_enabled()
        for kind in sorted({"cpu", devices.kind(self.device)}):
            read = f"torch.is_autocast_enabled({kind!r})"
            r.facts["mode", f"{read} after {when}", "state"] = torch.is_autocast_enabled(kind)
        r.facts["mode", f"torch.get_default_dtype() after {when}", "state"] = str(torch.get_default_dtype())

    def finish(self) -> Record:
        """Take in gradients, buffers and inputs as the execution left them."""
        r = self.record
        for name, leaf in self.leaves.items():
            r.tensors["primal", f"{name}.grad"] = leaf.grad
        for name, p in self.trainable.items():
            r.tensors["parameter", f"params[{name!r}].grad"] = p.grad
        for name, owner, own in self.buffers:
            r.tensors["buffer", f"buffers[{name!r}]"] = getattr(self.owners[owner], own)
        for name, t in self.inputs.items():
            r.tensors["input", name] = t.detach()
            r.facts["input", name, "version"] = t._version
            r.facts["input", name, "requires-grad"] = t.requires_grad
        return r


@functools.lru_cache(maxsize=4096)
def _code(text: str) -> Any:
    return compile(text, "<cotangent>", "eval")


def evaluated(text: str, space: dict[str, Any]) -> Any:
    """Return the value of an expression in the vocabulary of a case."""
    return eval(_code(text), space)  # noqa: S307 - printed by `source`


@contextlib.contextmanager
def undisturbed(device: str, *, poison: bool, cudnn: bool = True) -> Iterator[None]:
    """Put back whatever a case changes for everybody: generators, modes, how memory is handed out.

    `poison` and `cudnn` are those of `gradcheck_plus.execute.device.repeatable`.
    """
    states = [(g, g.get_state()) for g in devices.generators(device).values()]
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    kinds = {"cpu", devices.kind(device)}
    autocast = {kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds}
    try:
        with devices.repeatable(device, poison=poison, cudnn=cudnn):
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)
            for kind in kinds:
                torch.set_autocast_enabled(kind, False)
            yield
    finally:
        torch.set_grad_enabled(grad)
        for kind, (enabled, low) in autocast.items():
            torch.set_autocast_enabled(kind, enabled)
            torch.set_autocast_dtype(kind, low)
        torch.set_default_dtype(dtype)
        for g, state in states:
            g.set_state(state)
