"""What an execution costs, apart from time."""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.case import Case
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.meter import Meter
from gradcheck_plus.subject import Subject
from gradcheck_plus.subjects.torch_checkpoint import non_reentrant, save_on_cpu

Write = Callable[..., Case]


def measured(case: Case, call: Callable[..., Any] | None = None) -> Meter:
    meter = Meter()
    execute(case, Subject("mine", "checkpoint", call, "strict") if call else reference("checkpoint"), meter=meter)
    return meter


def test_plain_autograd_runs_every_module_once_a_forward(write: Write) -> None:
    assert measured(write("h0 = sin(x0)", "h1 = exp(h0)")).calls == 2
    assert measured(write("h0 = sin(x0)", "h1 = exp(h0)", schedule="F0F1")).calls == 4


def test_a_checkpoint_runs_its_modules_twice(write: Write) -> None:
    assert measured(write("h0 = sin(x0)", "h1 = exp(h0)"), non_reentrant).calls == 4


def test_the_bytes_that_autograd_saves_are_counted_once(write: Write) -> None:
    """``x * x`` saves one tensor twice, of six elements of four bytes."""
    assert measured(write(["h0 = mul(x0, x0)"])).saved == 24


def test_a_checkpoint_saves_less(write: Write) -> None:
    case = write(["h0 = sin(x0)", "h1 = exp(h0)", "h2 = tanh(h1)", "h3 = mul(h2, h2)"])

    assert measured(case, non_reentrant).saved < measured(case).saved


def test_what_a_subject_saves_under_hooks_of_its_own_is_not_seen(write: Write) -> None:
    assert measured(write(["h0 = sin(x0)", "h1 = exp(h0)"]), save_on_cpu).saved == 0
