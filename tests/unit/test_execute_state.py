"""The state of the process: a run puts back what it shares with others, and the record says what a subject changed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from gradcheck_plus.case import Case, Parameter
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind, Subject

Write = Callable[..., Case]
Same = Callable[[Record, Record], bool]

PLAIN = reference("checkpoint")


def subject(call: Any, kind: Kind = "checkpoint") -> Subject:
    return Subject("mine", kind, call, "strict")


def tensor(record: Record, role: Any, leaf: str) -> Tensor:
    found = record.tensors[role, leaf]
    assert found is not None
    return found


def state() -> dict[str, Any]:
    """What a process shares with everything that runs in it."""
    return {
        "rng": torch.get_rng_state().tolist(),
        "grad": torch.is_grad_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "default dtype": torch.get_default_dtype(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "fill": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "hooks": bool(torch.nn.modules.module._global_forward_hooks),
    }  # fmt: skip


def disturb() -> None:
    """Do what an implementation may do and forget to undo."""
    torch.manual_seed(99)
    torch.set_grad_enabled(False)
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)


@pytest.mark.parametrize("ending", [None, RuntimeError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_subject_does_to_the_process_is_undone(write: Write, ending: type[BaseException] | None, kind: Kind) -> None:
    """Also when it raises."""

    def call(*args: Any) -> Any:
        disturb()
        if ending is not None:
            raise ending
        return args[0](*args[1:]) if kind == "checkpoint" else ([None], []) if kind == "split-backward" else [None]

    torch.manual_seed(1)
    before = state()
    with contextlib.suppress(KeyboardInterrupt):
        execute(write("h0 = dropout(x0)", draws_after=3), subject((call, call) if kind == "split-backward" else call, kind))

    assert state() == before


@contextlib.contextmanager
def ambient(what: str) -> Iterator[None]:
    """Run in a process in which something is not as it is by default."""
    match what:
        case "no grad":
            with torch.no_grad():
                yield
        case "autocast":
            with torch.autocast("cpu", dtype=torch.bfloat16):
                yield
        case "default dtype":
            torch.set_default_dtype(torch.float64)
            yield
            torch.set_default_dtype(torch.float32)
        case "deterministic":
            torch.use_deterministic_algorithms(True)
            yield
            torch.use_deterministic_algorithms(False)
        case "seed":
            torch.manual_seed(1234)
            yield


@pytest.mark.parametrize("what", ["no grad", "autocast", "default dtype", "deterministic", "seed"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_of_the_process_does_not_change_what_a_case_leaves_behind(
    write: Write, same: Same, what: str, kind: Kind
) -> None:
    """A user's own test may run in any."""
    case = write(["h0 = square_linear(x0)", "h1 = dropout(h0)", "h2 = mul(h1, p0)"], parameters=[Parameter("p0", (3,), 0)])
    usual = execute(case, reference(kind))
    with ambient(what):
        before = state()
        other = execute(case, reference(kind))
        after = state()

    assert usual.raised is None
    assert same(usual, other)
    assert after == before


@pytest.mark.parametrize(
    ("change", "leaf"),
    [
        (lambda: torch.set_grad_enabled(False), "torch.is_grad_enabled()"),
        (lambda: torch.set_autocast_enabled("cpu", True), "torch.is_autocast_enabled('cpu')"),
        (lambda: torch.set_default_dtype(torch.float64), "torch.get_default_dtype()"),
    ],
)
def test_a_mode_that_a_subject_leaves_switched_is_in_the_record(write: Write, change: Callable[[], Any], leaf: str) -> None:
    def call(function: Any, *args: Any) -> Any:
        output = function(*args)
        change()
        return output

    case = write("h0 = sin(x0)")
    expected, found = execute(case, PLAIN).facts, execute(case, subject(call)).facts
    different = [key for key in expected if expected[key] != found[key]]

    assert different == [("mode", f"{leaf} after forward", "state"), ("mode", f"{leaf} after backward", "state")]


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_the_generator_is_in_the_record_after_forward_and_after_backward(write: Write, when: str) -> None:
    def call(function: Any, *args: Any) -> Any:
        output = function(*args)
        if when == "forward":
            torch.rand(1)
        else:
            output.register_hook(lambda _: torch.rand(1) and None)
        return output

    case = write("h0 = sin(x0)")
    expected, found = execute(case, PLAIN).tensors, execute(case, subject(call)).tensors
    keys = [("rng", f"torch.get_rng_state() after {then}") for then in ("forward", "backward")]

    changed = [not torch.equal(expected[key], found[key]) for key in keys]  # type: ignore[arg-type,index]
    assert changed == [when == "forward", True]


def test_a_case_may_draw_before_its_backward(write: Write) -> None:
    case = write("h0 = sin(x0)")
    moved = execute(replace(case, environment=replace(case.environment, draws_after=2)), PLAIN)
    torch.manual_seed(3)
    torch.rand(2)

    assert torch.equal(tensor(moved, "rng", "torch.get_rng_state() after backward"), torch.get_rng_state())
