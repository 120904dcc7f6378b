"""Running a case: what a subject is called with, and what it returned or raised, is in the record."""

import linecache
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from gradcheck_plus import support
from gradcheck_plus.case import Case, Constant, Container, Name, Primal, Spec
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.build import case_source, compiled
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind, Subject

#: It has no annotations: it is printed into repros, which a person reads.
values: Callable[..., Tensor] = support.values
Write = Callable[..., Case]
Same = Callable[[Record, Record], bool]

GRAD = Spec((2, 3), requires_grad=True)
PLAIN = reference("checkpoint")


def subject(call: Callable[..., Any], kind: Kind = "checkpoint") -> Subject:
    return Subject("mine", kind, call, "strict")


def tensor(record: Record, role: Any, leaf: str) -> Tensor:
    found = record.tensors[role, leaf]
    assert found is not None
    return found


# how a checkpoint is called ---------------------------------------------------------------------------------------------


def test_every_region_is_called_through_the_implementation(write: Write) -> None:
    called: list[int] = []

    def call(function: Any, *args: Any) -> Any:
        called.append(len(args))
        return function(*args)

    execute(write("h0 = sin(x0)", "h1 = tanh(h0)", "h2 = relu(h1)", changes={1: {"region": False}}), subject(call))

    assert called == [1, 1]


def test_outputs_that_require_no_grad_receive_nothing(write: Write) -> None:
    """Plain autograd would refuse; a subject that lost the flag is found by the flag."""

    def detached(function: Any, *args: Any) -> Any:
        return function(*args).detach()

    record = execute(write("h0 = sin(x0)"), subject(detached))

    assert record.raised is None
    assert record.tensors["primal", "x0.grad"] is None
    assert record.facts["output", "outputs", "requires-grad"] is False


def test_an_output_of_another_structure_is_recorded_before_anything_trips_over_it(write: Write) -> None:
    record = execute(
        write(["h0 = sin(x0)", "h1 = tanh(x0)"], "h2 = mul(h0, h1)"), subject(lambda function, *args: function(*args)[:1])
    )

    assert record.facts["output", "outputs[0]", "structure"] == "(tensor)"
    assert record.raised is not None


def test_a_primal_that_nothing_is_passed_may_be_there(write: Write) -> None:
    """It may be what another one is an alias of."""
    case = write("h0 = sin(x1)", primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2, alias="x0")])
    record = execute(case, PLAIN)

    assert record.raised is None
    assert tensor(record, "primal", "x0.grad").count_nonzero() == 6


def test_stages_take_one_backward_over_one_graph(write: Write) -> None:
    with pytest.raises(InvalidArgument, match=r"`schedule`='F00' runs two backwards over one graph.*kind='stage-backward'"):
        execute(write("h0 = sin(x0)", schedule="F00"), reference("stage-backward"))


# exceptions -------------------------------------------------------------------------------------------------------------


class Cancelled(BaseException):
    """As `asyncio.CancelledError`, which is no `Exception` either."""


ERRORS = (ValueError("no\nsuch thing"), AssertionError(), SystemExit(3), MemoryError("big"), GeneratorExit(), Cancelled("late"))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("phase", ["forward", "backward"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_is_recorded_with_its_phase(write: Write, error: BaseException, phase: str, kind: Kind) -> None:
    def fail(*_: Any) -> Any:
        raise error

    def call(*args: Any) -> Any:
        if kind in ("stage-backward", "split-backward") or phase == "forward":
            raise error
        if kind == "wrapper":
            args[0].register_forward_hook(lambda _module, _args, output: output.register_hook(fail) and None)
            return args[0]
        output = args[0](*args[1:])
        output.register_hook(fail)
        return output

    passes: Any = (call, call) if kind == "split-backward" else call
    record = execute(write("h0 = sin(x0)"), subject(passes, kind))

    assert record.raised is not None
    expected = "backward" if kind in ("stage-backward", "split-backward") else phase
    assert (record.raised.phase, record.raised.type, record.raised.message) == (expected, type(error).__name__, str(error))


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.fail.Exception])
def test_who_interrupts_is_obeyed(write: Write, error: type[BaseException]) -> None:
    """And so is who fails the test around, as pytest-timeout does."""

    def call(*_: Any) -> Any:
        raise error

    with pytest.raises(error):
        execute(write("h0 = sin(x0)"), subject(call))


def test_an_exception_of_plain_autograd_is_recorded_too(write: Write) -> None:
    """That of a layer whose weight was changed, and needed."""
    record = execute(write("h0 = square_linear(x0)", changes_parameter=True), PLAIN)

    assert record.raised is not None
    assert (record.raised.phase, record.raised.type) == ("backward", "RuntimeError")


def test_what_was_there_before_an_exception_is_in_the_record(write: Write) -> None:
    """As far as it goes: outputs of forwards that were done."""

    def call(function: Any, *args: Any) -> Any:
        output = function(*args)
        output.register_hook(lambda _: 1 / 0)
        return output

    record = execute(write("h0 = sin(x0)"), subject(call))

    assert ("output", "outputs") in record.tensors
    assert record.tensors["primal", "x0.grad"] is None


def test_a_traceback_shows_the_lines_of_the_program(write: Write) -> None:
    """What ran is what a report prints."""
    case = write("h0 = sin(x0)")
    seen: list[str] = []

    def call(*_: Any) -> Any:
        seen.extend(traceback.format_stack())
        return None

    execute(case, subject(call))
    run = compiled(case, device="cpu", variant="plain")

    assert any("out0 = checkpoint(self.segment0, x0)" in line for line in seen)
    assert run.text == case_source(case)
    assert "".join(linecache.getlines(run.file)) == run.text


def test_old_programs_are_forgotten(write: Write) -> None:
    """A campaign of a million cases does not keep a million programs."""
    before = len(linecache.cache)
    for seed in range(300):
        compiled(write("h0 = sin(x0)", primals=[Primal("x0", GRAD, 1000 + seed)]), device="cpu", variant="plain")

    assert len(linecache.cache) - before <= 200


# outputs ----------------------------------------------------------------------------------------------------------------


def test_outputs_are_recorded_with_structure_and_flags(write: Write) -> None:
    tree = Container("dict", (Name("h1"), Container("tuple", (Name("h0"), Constant(3)))), ("a", "b"))
    case = write(["h0 = sin(x0) no_grad", "h1 = mul(x0, h0)"], changes={0: {"output": tree}})
    record = execute(case, PLAIN)

    assert record.facts["output", "outputs", "structure"] == "{'a': tensor, 'b': (tensor, 3)}"
    assert record.facts["output", "outputs['a']", "requires-grad"] is True
    assert record.facts["output", "outputs['b'][0]", "requires-grad"] is False
    assert torch.equal(tensor(record, "output", "outputs['b'][0]"), values((2, 3), 1).sin())


def test_outputs_of_several_segments_and_forwards_have_paths_of_their_own(write: Write) -> None:
    case = write("h0 = sin(x0)", "h1 = tanh(h0)", schedule="F0F1")
    leaves = {leaf for role, leaf in execute(case, PLAIN).tensors if role == "output"}

    assert leaves == {"outputs[0]", "outputs[1]", "outputs_1[0]", "outputs_1[1]"}


def test_an_output_that_shares_memory_names_the_input(write: Write) -> None:
    primals = [Primal("x0", GRAD), Primal("x1", GRAD, 2)]
    case = write(
        ["h0 = transpose(x1; i=0, j=1)", "h1 = mul(x0, x1)"],
        primals=primals,
        changes={0: {"output": Container("tuple", (Name("h0"), Name("h1"), Name("x0")))}},
    )
    facts = execute(case, PLAIN).facts

    assert [facts["output", f"outputs[{i}]", "alias"] for i in range(3)] == ["x1", "nothing", "x0"]


def test_an_input_that_a_subject_changes_is_in_the_record(write: Write) -> None:
    def call(function: Any, x: Tensor) -> Any:
        output = function(x)
        with torch.no_grad():
            x.add_(1)
        return output

    case = write("h0 = scale(x0; c=2.0)")
    expected, found = execute(case, PLAIN), execute(case, subject(call))

    assert torch.equal(tensor(found, "input", "x0"), tensor(expected, "input", "x0") + 1)
    assert found.facts["input", "x0", "version"] == expected.facts["input", "x0", "version"] + 1


def test_an_input_whose_flag_a_subject_switches_is_in_the_record(write: Write) -> None:
    def call(function: Any, x: Tensor, y: Tensor) -> Any:
        return function(x, y.requires_grad_())

    case = write("h0 = mul(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", Spec((2, 3)), 2)])

    assert execute(case, PLAIN).facts["input", "x1", "requires-grad"] is False
    assert execute(case, subject(call)).facts["input", "x1", "requires-grad"] is True


def test_buffers_are_recorded_as_they_are_left(write: Write) -> None:
    case = write("h0 = batch_norm(x0)", primals=[Primal("x0", Spec((2, 4, 3), requires_grad=True))])
    train, evaluation = execute(case, PLAIN), execute(replace(case, environment=replace(case.environment, train=False)), PLAIN)
    leaf = "buffers['segment0.batch_norm0.num_batches_tracked']"

    assert tensor(train, "buffer", leaf).item() == 1
    assert tensor(evaluation, "buffer", leaf).item() == 0


def test_warnings_are_kept_apart(write: Write, same: Same) -> None:
    """They are reported, and neither raised nor judged."""

    def call(function: Any, *args: Any) -> Any:
        warnings.warn("the first line\nand more", stacklevel=1)
        return function(*args)

    case = write("h0 = sin(x0)")
    record = execute(case, subject(call))

    assert "the first line" in record.warnings
    assert same(record, execute(case, PLAIN))
