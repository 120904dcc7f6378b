"""Which operations the regions of a case dispatch: what a policy can speak of."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from gradcheck_plus.case import Case
from gradcheck_plus.compat import TorchDispatchMode
from gradcheck_plus.execute.checkpoint import CheckpointDriver
from gradcheck_plus.execute.world import World, undisturbed


def dispatched(case: Case) -> tuple[tuple[str, int], ...]:
    """Return the operations that the first forward of a case dispatches inside regions, each with its number there, from 0.

    Runs the case on the CPU under plain autograd. What raises ends the list.
    """
    seen: list[list[str]] = []

    def recording(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        seen.append([])
        with _Recording(seen[-1]):
            return function(*args, **kwargs)

    with warnings.catch_warnings(), undisturbed("cpu", poison=False):
        warnings.simplefilter("ignore")
        world = World(case, "cpu", "plain")
        world.seed()
        with contextlib.suppress(Exception):
            CheckpointDriver(world, recording).forward(0)
    return tuple(dict.fromkeys(pair for names in seen for pair in _numbered(names)))


def _numbered(names: list[str]) -> Iterator[tuple[str, int]]:
    for position, name in enumerate(names):
        yield name, names[:position].count(name)


class _Recording(TorchDispatchMode):
    """Notes the name of everything that is dispatched."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))
