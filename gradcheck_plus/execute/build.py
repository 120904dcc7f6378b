"""Source that runs: compiled through `linecache`, so that tracebacks show its lines."""

import functools
import hashlib
import linecache
import re
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import torch

from gradcheck_plus import support
from gradcheck_plus.case import Case, ModuleProgram
from gradcheck_plus.compat import map_tensors
from gradcheck_plus.execute.sampling import sample
from gradcheck_plus.execute.targets import load
from gradcheck_plus.source import Calls, input_lines, program_source

#: How an execution deviates from the case: not at all, in double precision, or with every value one ULP up or down.
Variant = Literal["plain", "truth", "up", "down"]

_LOW = re.compile(r"torch\.(bfloat16|float16|float32)\b")
_KEPT = 128


@functools.cache
def vocabulary(device: str, truth: bool) -> dict[str, Any]:  # noqa: FBT001
    """Return the names that printed programs use, on a device and in their own or in double precision.

    A copy of `gradcheck_plus.support` for each, since its functions read the device and the default dtype as globals.
    """
    name = f"gradcheck_plus_support_{device.replace(':', '_')}{'_float64' if truth else ''}"
    module = types.ModuleType(name)
    module.__file__ = support.__file__
    sys.modules[name] = module
    with open(support.__file__, encoding="utf-8") as file:
        exec(compile(file.read(), support.__file__, "exec"), module.__dict__)  # noqa: S102 - our own module, once a device
    space = module.__dict__
    space["DEVICE"], space["DTYPE"] = device, torch.float64 if truth else torch.float32
    for made in ("values", "integers", "one_hot"):
        space[made] = _remembered(space[made])
    return space


def _remembered(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Make each tensor once and hand out copies: a tenth of the cost of making it."""
    kept = functools.lru_cache(maxsize=4096)(make)

    @functools.wraps(make)
    def copied(*args: Any) -> torch.Tensor:
        return kept(*args).clone()

    return copied


def varied_sample(target: str, device: str, variant: Variant) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a user's sample call, its tensors in double precision or one ULP up or down as the variant asks."""

    def varied(t: torch.Tensor) -> torch.Tensor:
        if not t.is_floating_point() or variant == "plain":
            return t
        towards = torch.inf if variant == "up" else -torch.inf
        return t.double() if variant == "truth" else torch.nextafter(t.detach(), torch.full_like(t, towards))

    varied_call: tuple[tuple[Any, ...], dict[str, Any]] = map_tensors(varied, sample(target, device))
    return varied_call


def nudged(make: Callable[..., torch.Tensor], towards: float) -> Callable[..., torch.Tensor]:
    """Move every value by one unit in the last place, which no correct gradient takes much notice of.

    This is done before anything is a view of it: torch 2.13 crashes in `register_hook` on a view whose base has changed.
    """

    @functools.wraps(make)
    def moved(*args: Any) -> torch.Tensor:
        value = make(*args)
        return torch.nextafter(value, torch.full_like(value, towards)) if value.is_floating_point() else value

    return moved


class Compiled:
    """The namespace of one case's source.

    Attributes:
        text: what ran.
    """

    def __init__(self, case: Case, *, device: str, variant: Variant, calls: Calls = "subject") -> None:
        self.text = case_source(case, calls)
        if variant == "truth":
            self.text = _LOW.sub("torch.float64", self.text)
        self.file = f"<case {hashlib.sha256(self.text.encode()).hexdigest()[:12]}>"
        linecache.cache[self.file] = (len(self.text), None, self.text.splitlines(keepends=True), self.file)
        self.space = {**vocabulary(device, variant == "truth"), "__name__": "gradcheck_plus_case"}
        if variant in ("up", "down"):
            self.space["values"] = nudged(self.space["values"], torch.inf if variant == "up" else -torch.inf)
        if isinstance(case.program, ModuleProgram):
            self.space["factory"] = load(case.program.target)
            self.space["sample"] = functools.partial(varied_sample, case.program.inputs, device, variant)
        exec(compile(self.text, self.file, "exec"), self.space)  # noqa: S102 - the program is its source


def case_source(case: Case, calls: Calls = "subject") -> str:
    """Return the modules of a case, and a function for the primals of each forward."""
    functions = []
    for forward in range(case.environment.forwards):
        lines = input_lines(case, forward)
        lines = ["args, kwargs = sample()", *lines] if isinstance(case.program, ModuleProgram) else lines
        functions.append("\n".join([f"def inputs{forward}():", *(f"    {line}" for line in lines), "    return locals()", ""]))
    return "\n\n".join([program_source(case.program, calls=calls), *functions])


_cache: OrderedDict[tuple[str, str, Variant, Calls], Compiled] = OrderedDict()


def compiled(case: Case, *, device: str, variant: Variant, calls: Calls = "subject") -> Compiled:
    """Return the namespace of a case, from a small cache: every case runs at least twice."""
    key = (case.to_json(), device, variant, calls)
    if key not in _cache:
        _cache[key] = Compiled(case, device=device, variant=variant, calls=calls)
        if len(_cache) > _KEPT:
            _, oldest = _cache.popitem(last=False)
            linecache.cache.pop(oldest.file, None)
    return _cache[key]
