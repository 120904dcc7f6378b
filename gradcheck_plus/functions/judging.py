"""One case of a function: called, checked and judged."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from gradcheck_plus.case import Call
from gradcheck_plus.errors import InvalidArgument, first_line
from gradcheck_plus.execute.world import undisturbed
from gradcheck_plus.functions.checks import CHECKS, Refused, Scene
from gradcheck_plus.functions.checks.check import natural
from gradcheck_plus.functions.drawn import decode
from gradcheck_plus.functions.point import Point, plain_point
from gradcheck_plus.functions.support import floats
from gradcheck_plus.functions.tested import Sample, callable_of, name_of, sample_of
from gradcheck_plus.functions.variations import offered, phrases, varied
from gradcheck_plus.mismatch import Mismatch

#: What no clear refusal is, but a mistake that comes to light.
_CRASHES = (AttributeError, KeyError, NameError, ZeroDivisionError, UnicodeError)
_REFUSALS = (TypeError, ValueError, NotImplementedError)
#: Variations that a function may have no room for, though its reference has.
_DEMANDING = frozenset({"other-size", "size-one", "low-precision-inputs", "complex-inputs", "float32-inputs", "under-autocast"})
#: What a function may have no room for at all, which it says loudly in its backward.
_NARROW = frozenset({"low-precision-inputs", "float32-inputs", "under-autocast"})
_SEED = 0


@dataclass
class Judged:
    """What is said of one case: ``match``, ``refused`` or ``fault``, with what is wrong, or why it is not a case."""

    name: str
    mismatches: tuple[Mismatch, ...] = ()
    kinks: int = 0
    vacuous: bool = False
    reason: str = ""


@dataclass
class Tested:
    """A function, its reference and its sample call.

    Attributes:
        given: the function as the user named it.
        reference_given: the reference likewise, or None.
        inputs: the sample call, or what makes it.

    Raises:
        InvalidArgument: one of them cannot be called, the sample call is refused, or nothing there can be differentiated.
    """

    given: Any
    reference_given: Any = None
    inputs: Any = None
    device: str = "cpu"
    memory: dict[int, Sample] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Call the function once as the user would."""
        self.name = name_of(self.given)
        call = callable_of(self.given)
        reference = None if self.reference_given is None else callable_of(self.reference_given, "reference")
        self.inplace, self.double = False, True
        sample = self.sample(0)
        with alone():
            before = torch.get_rng_state()
            self._settle(sample, call)
            self.draws = not torch.equal(before, torch.get_rng_state())
        self.op = _seeded(call) if self.draws else call
        self.reference = _seeded(reference) if reference and self.draws else reference
        if reference:
            self._try(plain_point(sample, double=self.double, inplace=self.inplace), reference, "reference")

    def sample(self, seed: int) -> Sample:
        """Return the sample call, made with some random numbers."""
        if seed not in self.memory:
            self.memory[seed] = sample_of(self.given, self.inputs, seed)
        return self.memory[seed]

    def _settle(self, sample: Sample, call: Callable[..., Any]) -> None:
        """Find out whether it takes float64, and whether it writes into its arguments."""
        errors = []
        for inplace in (False, True):
            for double in (True, False):
                try:
                    outputs = self._called(plain_point(sample, double=double, inplace=inplace), call)
                except Exception as error:
                    errors.append((double, error))
                    continue
                if double and any(t.dtype not in (torch.float64, torch.complex128) for t in outputs if t.requires_grad):
                    continue
                self.double, self.inplace = double, inplace
                if not any(t.requires_grad for t in outputs):
                    raise InvalidArgument(
                        f"`op`={self.name}: no output of the sample call requires grad, so there is nothing to differentiate. "
                        f"Write a function of floating tensors that are not detached inside."
                    )
                return
        refusal = next(e for double, e in errors if not double)
        raise InvalidArgument(
            f"`inputs` is refused by {self.name}: {type(refusal).__name__}: {first_line(refusal)}. Write a sample call "
            f"that it takes."
        ) from refusal

    def _try(self, point: Point, call: Callable[..., Any], what: str) -> None:
        with alone():
            try:
                self._called(point, call)
            except Exception as error:
                raise InvalidArgument(
                    f"`{what}`={name_of(self.reference_given)} refuses the sample call: "
                    f"{type(error).__name__}: {first_line(error)}. "
                    f"Write one that takes what {self.name} takes."
                ) from error

    @staticmethod
    def _called(point: Point, call: Callable[..., Any]) -> list[torch.Tensor]:
        found: list[torch.Tensor] = floats(point.call(call, *point.leaves()))
        return found

    @cached_property
    def offered(self) -> tuple[str, ...]:
        """The variations that can be made of its sample call."""
        names = offered(plain_point(self.sample(0), double=self.double))
        # What is not finite is multiplied by zero in plain autograd too; only a reference can say where it should not matter.
        narrow = set(_NARROW) | {"beyond-float16", "non-finite-values"} if self.reference is None else set()
        return tuple(n for n in names if n not in narrow | {"complex-inputs"})  # which only the check of that name has

    def scene(self, call: Call) -> Scene:
        """Return what a check is made of."""
        sample = self._drawn(call) if call.sample else self.sample
        point = varied(call, sample, double=self.double, inplace=self.inplace)
        return Scene(call, point, self.op, self.given, self.reference, phrases(call, sample(0)), self.device)

    def _drawn(self, call: Call) -> Callable[[int], Sample]:
        return lambda _: sample_of(self.given, decode(call.sample))

    def judge(self, call: Call) -> Judged:
        """Judge one case."""
        with alone():
            scene = self.scene(call)
            try:
                found = self._found(scene)
            except Refused as refused:
                return Judged("refused", reason=str(refused))
            except Exception as error:
                found = _raised(scene, error)
                if not found:
                    return Judged("refused", reason=f"{type(error).__name__}: {first_line(error)}")
            return Judged("fault" if found else "match", found, scene.kinks, not found and not scene.judged)

    def _found(self, scene: Scene) -> tuple[Mismatch, ...]:
        check = CHECKS[scene.call.check]
        if check.forces and check.forces not in scene.call.names:
            raise Refused("the check is about another call")
        self._forwards(scene)
        return tuple(check.run(scene))

    def _forwards(self, scene: Scene) -> None:
        """Call both: what the reference refuses is not a case, nor, where there is none, what the function refuses."""
        point = scene.point
        if self.reference is not None:
            try:
                point.call(self.reference, *point.leaves())
            except Exception as error:
                raise Refused(f"the reference raises {type(error).__name__}") from error
        try:
            result = point.call(self.op, *point.leaves())
        except Exception as error:
            if self.reference is None or _clear(error, scene):
                raise Refused(f"the function raises {type(error).__name__} in its forward") from error
            raise
        if "result-changed-in-place" in scene.call.names and any(map(_overlaps, floats(result))):
            raise Refused("elements of its result share memory")


def _clear(error: Exception, scene: Scene) -> bool:
    """Is an exception in a forward a refusal, and not a mistake that comes to light?"""
    return isinstance(error, _REFUSALS) or (bool(scene.call.names & _DEMANDING) and not isinstance(error, _CRASHES))


@contextmanager
def alone() -> Iterator[None]:
    """Let nothing of a case reach the next one."""
    with undisturbed("cpu", poison=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(_SEED)
        yield


def _seeded(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that draws the same every time."""

    def same(*args: Any, **kwargs: Any) -> Any:
        torch.manual_seed(_SEED)
        return call(*args, **kwargs)

    return same


def _raised(scene: Scene, error: Exception) -> tuple[Mismatch, ...]:
    """Return what an exception says of a function that was called where it should not raise."""
    text = first_line(error)
    missing = isinstance(error, NotImplementedError)
    narrow = scene.call.names & _NARROW and re.search("dtype|scalar type|not supported for|Half|BFloat16", text)
    broadcast = scene.point.alone and "invalid gradient at index" in text  # which the engine itself refuses
    if broadcast or ((natural(text, scene.call.names) or missing) and scene.reference is None) or narrow:
        return ()
    said = f"it raises {type(error).__name__}{scene.where}: {text}"
    return (
        scene.fault(
            "raises", "call", said, expected="an answer", got=f"{type(error).__name__}: {text}", error=type(error).__name__
        ),
    )


def _overlaps(t: torch.Tensor) -> bool:
    return t.numel() * t.element_size() > t.untyped_storage().nbytes()
