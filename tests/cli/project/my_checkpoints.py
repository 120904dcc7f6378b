"""Checkpoints as a user's project has them: right ones, wrong ones, and callables that are none."""

import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint as torch_checkpoint

Function = Callable[..., Any]

calls = 0


def counted() -> int:
    """Return how many calls of a checkpoint this process has seen."""
    global calls  # noqa: PLW0603 - what a process remembers is what some of these are about
    calls += 1
    return calls


# right ------------------------------------------------------------------------------------------------------------------


def plain(function: Function, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def noisy(function: Function, *args: Any, **kwargs: Any) -> Any:
    print("half a line", end="", flush=True)  # noqa: T201 - what it is for
    os.write(1, b'{"wrong_call": "written by the subject"}\n')
    os.write(2, b"\xff\xfe not text \n")
    warnings.warn("a subject may warn", stacklevel=1)
    return function(*args, **kwargs)


def wraps_torch(function: Function, *args: Any, **kwargs: Any) -> Any:
    return torch_checkpoint(function, *args, use_reentrant=False, **kwargs)


class Instance:
    """A checkpoint may be any callable."""

    def __call__(self, function: Function, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


instance = Instance()


def changes_default_dtype(function: Function, *args: Any, **kwargs: Any) -> Any:
    torch.set_default_dtype(torch.float64)
    return function(*args, **kwargs)


# wrong ------------------------------------------------------------------------------------------------------------------


def forgets_keywords(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Cut keyword arguments off from the graph."""
    return function(*args, **{key: cut(value) for key, value in kwargs.items()})


def cut(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: cut(child) for key, child in value.items()}
    return [cut(child) for child in value] if isinstance(value, list) else value


def faulty_twice(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Refuse keyword arguments, and give wrong gradients in evaluation mode."""
    if kwargs:
        raise ValueError("no keywords, please")
    output = function(*args)
    return scaled(output) if isinstance(function, nn.Module) and not function.training else output


def scaled(values: Any) -> Any:
    return tree_map(lambda v: v * 1.5 if isinstance(v, Tensor) and v.is_floating_point() else v, values)


def scales(function: Function, *args: Any, **kwargs: Any) -> Any:
    return scaled(function(*args, **kwargs))


def raises(function: Function, *args: Any, **kwargs: Any) -> Any:
    raise ValueError("never in my life")


def raises_beyond_ascii(function: Function, *args: Any, **kwargs: Any) -> Any:
    raise ValueError("[red]caf\N{LATIN SMALL LETTER E WITH ACUTE}[/red] \udc80")


def gives_up(function: Function, *args: Any, **kwargs: Any) -> Any:
    raise GeneratorExit("which is no Exception")


class Unprintable(Exception):  # noqa: N818 - it is a sort of exception, not an error
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def raises_unprintable(function: Function, *args: Any, **kwargs: Any) -> Any:
    raise Unprintable


def returns_text(function: Function, *args: Any, **kwargs: Any) -> Any:
    return "no tensor at all"


def returns_object(function: Function, *args: Any, **kwargs: Any) -> Any:
    return object()


def draws_anew(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Be another function each time, by a generator that is not torch's."""
    factor = random.random()
    return tree_map(lambda v: v * factor if isinstance(v, Tensor) and v.is_floating_point() else v, function(*args, **kwargs))


# those that do not come back --------------------------------------------------------------------------------------------


def hangs(function: Function, *args: Any, **kwargs: Any) -> Any:
    if kwargs:
        time.sleep(1000)
    return function(*args, **kwargs)


def hangs_always(function: Function, *args: Any, **kwargs: Any) -> Any:
    time.sleep(1000)


def crashes(function: Function, *args: Any, **kwargs: Any) -> Any:
    if kwargs:
        os.kill(os.getpid(), signal.SIGSEGV)
    return function(*args, **kwargs)


def is_killed(function: Function, *args: Any, **kwargs: Any) -> Any:
    """As by the kernel, when there is no memory left."""
    if kwargs:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*args, **kwargs)


def crashes_beside_a_child(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Crash, while a child still has all files open that this process had."""
    if kwargs:
        if not os.fork():
            time.sleep(1000)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSEGV)
    return function(*args, **kwargs)


def crashes_at_the_ninth_call(function: Function, *args: Any, **kwargs: Any) -> Any:
    if counted() == 9:
        os.kill(os.getpid(), signal.SIGSEGV)
    return function(*args, **kwargs)


def exits(function: Function, *args: Any, **kwargs: Any) -> Any:
    if kwargs:
        os._exit(3)
    return function(*args, **kwargs)


def leaves(function: Function, *args: Any, **kwargs: Any) -> Any:
    sys.exit("the subject leaves")


def hangs_while_shrinking(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Be wrong, and hang too where the case is a candidate of the shrinker's."""
    if tried():
        time.sleep(1000)
    return scaled(function(*args, **kwargs))


def hangs_at_the_second_candidate(function: Function, *args: Any, **kwargs: Any) -> Any:
    if tried() == 2:
        time.sleep(1000)
    return scaled(function(*args, **kwargs))


def tried() -> int:
    """Return how many candidates the shrinker that calls has tried; 0 if it is not one that calls."""
    frame: Any = sys._getframe()
    while frame and frame.f_code.co_name != "_improves":
        frame = frame.f_back
    return frame.f_locals["self"].tried if frame else 0


def starts_children(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Hang, with a process of its own beside it."""
    if kwargs:
        child = os.fork()
        if not child:
            time.sleep(1000)
            os._exit(0)
        Path("child").write_text(str(child), encoding="utf-8")
        time.sleep(1000)
    return function(*args, **kwargs)


# those that can be watched ----------------------------------------------------------------------------------------------


def slow(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Be right, and write down who runs and how often."""
    told(counted())
    time.sleep(0.02)
    return function(*args, **kwargs)


def slow_and_faulty(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Be wrong, and slow as long as nothing is shrunk."""
    told(counted())
    time.sleep(0 if tried() else 0.02)
    return scaled(function(*args, **kwargs))


def slow_then_hangs(function: Function, *args: Any, **kwargs: Any) -> Any:
    slow(function, *args, **kwargs)
    time.sleep(1000 if calls == 10 else 0)
    return function(*args, **kwargs)


def told(number: int) -> None:
    Path("progress").write_text(f"{os.getpid()} {number}\n", encoding="utf-8")


# none at all ------------------------------------------------------------------------------------------------------------

NUMBER = 3


def takes_nothing() -> None: ...


def takes_keywords_only(*, function: Function) -> None: ...


def takes_two(stage_output: Any, output_grads: Any) -> None: ...


def wraps(module: nn.Module) -> nn.Module:
    """Return a module as it is."""
    return module


class Prefixed(nn.Module):
    """Holds another module."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def wraps_nothing(module: nn.Module) -> Any:
    """Return no module."""
    return "module"
