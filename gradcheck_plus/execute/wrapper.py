"""How a case runs with wrapped modules: ``wrap(module) -> module``.

Regions, and modules inside them where the case's plan names some, are replaced by what wrapping them returns: the inner ones
first, as who goes through a model does it. Then the model is called as if nothing had happened, and must look so too: the same
names, the same parameters, the same modes.
"""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.execute.checkpoint import CheckpointDriver
from gradcheck_plus.execute.world import World


class WrapperDriver(CheckpointDriver):
    """Wraps before the first forward, then calls the model directly."""

    def __init__(self, world: World, call: Callable[..., Any]) -> None:
        super().__init__(world, call)
        self.modules = dict(world.model.named_modules())

    def forward(self, number: int) -> None:
        """Run one forward; wrap before the first."""
        if not number:
            self._wrap()
        super().forward(number)
        self._look()

    def backward(self, number: int, repetition: int, *, retain: bool) -> None:
        """Run one backward of forward `number`."""
        super().backward(number, repetition, retain=retain)
        self._look()

    def _called(self, number: int, primals: dict[str, Any]) -> Any:
        return self.world.model(**primals)

    def _wrap(self) -> None:
        """Wrap what the plan names, in train mode; the mode of the case is set afterwards, and must reach what is inside."""
        world = self.world
        world.model.train()
        for path in world.case.wrapped:
            parent, _, name = path.rpartition(".")
            owner = world.model.get_submodule(parent)
            setattr(owner, name, self.call(getattr(owner, name)))
        if not world.case.environment.train:
            world.model.eval()

    def _look(self) -> None:
        """Note what the model says of its parts now."""
        facts, model, parameters = self.world.record.facts, self.world.model, self.world.parameters
        facts["module", "list(model.state_dict())", "state"] = list(model.state_dict())
        there = {id(p) for p in model.parameters()}
        held = [name for name, p in parameters.items() if id(p) in there]
        facts["module", "[n for n, p in params.items() if any(p is q for q in model.parameters())]", "state"] = held
        flags = [p.requires_grad for p in parameters.values()]
        facts["module", "[p.requires_grad for p in params.values()]", "state"] = flags
        modes = [name for name, module in self.modules.items() if module.training]
        facts["module", "[n for n, m in modules.items() if m.training]", "state"] = modes
