"""Running a case: everything it leaves behind is in the record, and nothing of it stays behind elsewhere."""

import contextlib
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from gradcheck_plus import support
from gradcheck_plus.case import Case, Constant, Container, Cotangent, Name, Parameter, Primal, Spec
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.build import case_source, compiled
from gradcheck_plus.oracle import Evidence, Judgement, judge
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind, Subject

#: It has no annotations: it is printed into repros, which a person reads.
values: Callable[..., Tensor] = support.values
Write = Callable[..., Case]

GRAD = Spec((2, 3), requires_grad=True)
PLAIN = reference("checkpoint")


def subject(call: Callable[..., Any], kind: Kind = "checkpoint") -> Subject:
    return Subject("mine", kind, call, "strict")


def same(first: Record, second: Record) -> bool:
    """Do two records differ in nothing?"""
    said = judge(Evidence(first, second, exact=True, unit=2.0**-24))
    return isinstance(said, Judgement) and not said.mismatches and first.raised == second.raised


def tensor(record: Record, role: Any, leaf: str) -> Tensor:
    found = record.tensors[role, leaf]
    assert found is not None
    return found


def plain(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_case_run_twice_leaves_the_same_behind(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    for case in drawn[kind][:150]:
        first, second = execute(case, reference(kind)), execute(case, reference(kind))
        assert same(first, second), case_source(case)


# the state of the process -----------------------------------------------------------------------------------------------


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


class Stop(BaseException):
    """As a user's Ctrl-C."""


@pytest.mark.parametrize("ending", [None, RuntimeError, SystemExit, Stop])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_subject_does_to_the_process_is_undone(write: Write, ending: type[BaseException] | None, kind: Kind) -> None:
    """Also when it raises."""

    def call(*args: Any) -> Any:
        disturb()
        if ending is not None:
            raise ending
        return args[0](*args[1:]) if kind == "checkpoint" else [None]

    torch.manual_seed(1)
    before = state()
    with contextlib.suppress(Stop):
        execute(write("h0 = dropout(x0)", draws_after=3), subject(call, kind))

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
def test_the_state_of_the_process_does_not_change_what_a_case_leaves_behind(write: Write, what: str, kind: Kind) -> None:
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


# exceptions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("no\nsuch thing"), AssertionError(), SystemExit(3), MemoryError("big")])
@pytest.mark.parametrize("phase", ["forward", "backward"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_is_recorded_with_its_phase(write: Write, error: BaseException, phase: str, kind: Kind) -> None:
    def fail(*_: Any) -> Any:
        raise error

    def call(*args: Any) -> Any:
        if kind == "stage-backward" or phase == "forward":
            raise error
        output = args[0](*args[1:])
        output.register_hook(fail)
        return output

    record = execute(write("h0 = sin(x0)"), subject(call, kind))

    assert record.raised is not None
    expected = "backward" if kind == "stage-backward" else phase
    assert (record.raised.phase, record.raised.type, record.raised.message) == (expected, type(error).__name__, str(error))


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit])
def test_who_interrupts_is_obeyed(write: Write, error: type[BaseException]) -> None:
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


def test_warnings_are_kept_apart(write: Write) -> None:
    """They are reported, and neither raised nor judged."""

    def call(function: Any, *args: Any) -> Any:
        warnings.warn("the first line\nand more", stacklevel=1)
        return function(*args)

    case = write("h0 = sin(x0)")
    record = execute(case, subject(call))

    assert "the first line" in record.warnings
    assert same(record, execute(case, PLAIN))


# gradients --------------------------------------------------------------------------------------------------------------


def gradient(seed: int, cotangent: int) -> Tensor:
    """Return the gradient of x0 * x0 with the values and the cotangent of these seeds."""
    return values((2, 3), cotangent) * values((2, 3), seed) * 2


SQUARE = "h0 = mul(x0, x0)"


def test_a_gradient_is_that_of_the_cotangent(write: Write) -> None:
    assert torch.equal(tensor(execute(write(SQUARE), PLAIN), "primal", "x0.grad"), gradient(1, 11))


def test_a_second_backward_over_one_graph_adds_with_another_cotangent(write: Write) -> None:
    record = execute(write(SQUARE, schedule="F00"), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11) + gradient(1, 111))


@pytest.mark.parametrize("schedule", ["F0F1", "FF01", "FF10"])
def test_a_second_forward_has_leaves_of_its_own(write: Write, schedule: str) -> None:
    """Other values, and the same cotangent: it is the first backward over that graph."""
    record = execute(write(SQUARE, schedule=schedule), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11))
    assert torch.equal(tensor(record, "primal", "x0_1.grad"), gradient(101, 11))


def test_parameters_accumulate_over_forwards(write: Write) -> None:
    record = execute(write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (2, 3), 0)], schedule="F0F1"), PLAIN)
    expected = values((2, 3), 11) * (values((2, 3), 1) + values((2, 3), 101))

    assert torch.allclose(tensor(record, "parameter", "params['segment0.p0'].grad"), expected)


def test_a_reused_input_is_one_leaf_for_both_forwards(write: Write) -> None:
    record = execute(write(SQUARE, schedule="F0F1", reuses_inputs=True), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11) + gradient(101, 11))
    assert torch.equal(tensor(record, "input", "x0"), values((2, 3), 101))
    assert ("primal", "x0_1.grad") not in record.tensors


def test_what_is_passed_twice_is_one_tensor_in_every_forward(write: Write) -> None:
    """Also where the second forward finds its inputs in the tensors of the first."""
    case = write(
        "h0 = mul(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2, alias="x0")], schedule="F0F1", reuses_inputs=True
    )
    passed: list[tuple[Tensor, Tensor]] = []

    def call(function: Any, first: Tensor, second: Tensor) -> Any:
        passed.append((first, second))
        return function(first, second)

    record = execute(case, subject(call))

    assert [first is second for first, second in passed] == [True, True]
    assert torch.equal(tensor(record, "primal", "x0.grad"), gradient(1, 11) + gradient(101, 11))


def test_what_shares_memory_does_so_in_every_forward(write: Write) -> None:
    case = write(
        "h0 = mul(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2, share="x0")], schedule="F0F1", reuses_inputs=True
    )
    shared: list[bool] = []

    def call(function: Any, first: Tensor, second: Tensor) -> Any:
        shared.append(first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr())
        return function(first, second)

    execute(case, subject(call))

    assert shared == [True, True]


def test_a_gradient_is_added_to_one_that_is_there(write: Write) -> None:
    case = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (2, 3), 0)])
    before = execute(case, PLAIN)
    after = execute(replace(case, environment=replace(case.environment, existing_grad=True)), PLAIN)

    for key, seed in ((("primal", "x0.grad"), 90), (("parameter", "params['segment0.p0'].grad"), 70)):
        assert torch.equal(tensor(after, *key), tensor(before, *key) + values((2, 3), seed))


def test_a_gradient_that_never_comes_is_none(write: Write) -> None:
    """And not left out."""
    case = write(
        "h0 = sin(x0)",
        primals=[Primal("x0", GRAD), Primal("x1", GRAD, 2)],
        parameters=[Parameter("p0", (3,), 0)],
        changes={0: {"args": (Name("x0"), Name("x1"))}},
    )
    record = execute(case, PLAIN)

    assert record.tensors["primal", "x1.grad"] is None
    assert record.tensors["parameter", "params['segment0.p0'].grad"] is None


def test_what_requires_no_grad_has_no_gradient_to_compare(write: Write) -> None:
    primals = [Primal("x0", GRAD), Primal("x1", Spec((2, 3)), 2)]
    case = write("h0 = mul(x0, x1)", primals=primals, parameters=[Parameter("p0", (3,), 0, trainable=False)])
    roles = {(role, leaf) for role, leaf in execute(case, PLAIN).tensors if role in ("primal", "parameter")}

    assert roles == {("primal", "x0.grad")}


@pytest.mark.parametrize("layout", ["view", "expanded-view", "computed"])
def test_the_gradient_of_a_non_leaf_is_read_from_its_leaf(write: Write, layout: Any) -> None:
    record = execute(write("h0 = sin(x0)", primals=[Primal("x0", GRAD, layout=layout)]), PLAIN)

    assert tensor(record, "primal", "root_x0.grad").count_nonzero() > 0
    assert ("primal", "x0.grad") not in record.tensors


def test_only_the_first_of_two_leaves_in_one_memory_receives_its_gradient(write: Write) -> None:
    primals = [Primal("x0", GRAD), Primal("x1", GRAD, 2, share="x0")]
    record = execute(write("h0 = mul(x0, x1)", primals=primals), PLAIN)

    assert torch.equal(tensor(record, "primal", "x0.grad"), values((2, 3), 11) * tensor(record, "input", "x1"))
    assert torch.equal(tensor(record, "primal", "x1.grad"), values((2, 3), 11) * tensor(record, "input", "x0"))


def test_autocast_is_around_the_forward_only(write: Write) -> None:
    seen: list[bool] = []

    def call(function: Any, *args: Any) -> Any:
        seen.append(torch.is_autocast_enabled("cpu"))
        output = function(*args)
        output.register_hook(lambda _: seen.append(torch.is_autocast_enabled("cpu")))
        return output

    record = execute(write("h0 = linear(x0)", autocast="bfloat16"), subject(call))

    assert seen == [True, False]
    assert tensor(record, "output", "outputs").dtype == torch.bfloat16


def test_a_program_in_float64_is_in_float64_throughout(write: Write) -> None:
    case = write(
        ["h0 = square_linear(x0)", "h1 = mul(h0, p0)"],
        primals=[Primal("x0", Spec((2, 3), "float64", requires_grad=True))],
        parameters=[Parameter("p0", (3,), 0)],
        dtype="float64",
    )

    assert {t.dtype for t in execute(case, PLAIN).tensors.values() if t is not None and t.is_floating_point()} == {
        torch.float64
    }


def test_a_parameter_can_be_changed_before_the_backward(write: Write) -> None:
    case = write("h0 = mul(x0, p0)", parameters=[Parameter("p0", (2, 3), 0)])
    found: list[Tensor] = []

    def call(function: Any, x: Tensor) -> Any:
        output = function(x)
        output.register_hook(lambda _: found.append(function.p0.detach().clone()))
        return output

    for changes in (False, True):
        execute(replace(case, environment=replace(case.environment, changes_parameter=changes)), subject(call))

    assert torch.equal(found[0] * 1.5, found[1])


# hooks ------------------------------------------------------------------------------------------------------------------


def firings(record: Record) -> dict[str, int]:
    return {leaf: count for (_, leaf, aspect), count in record.facts.items() if aspect == "firings"}


MODEL = {"parameters": [Parameter("p0", (2, 3), 0)]}


@pytest.mark.parametrize(
    ("hook", "leaf"),
    [
        ("input", "x0.register_hook"),
        ("parameter", "params['segment0.p0'].register_hook"),
        ("post-accumulate", "params['segment0.p0'].register_post_accumulate_grad_hook"),
        ("forward", "segment0.register_forward_hook"),
        ("backward", "segment0.register_full_backward_hook"),
    ],
)
def test_the_firings_of_a_hook_are_counted(write: Write, hook: Any, leaf: str) -> None:
    once = execute(write("h0 = mul(x0, p0)", hooks=(hook,), **MODEL), PLAIN)
    twice = execute(write("h0 = mul(x0, p0)", hooks=(hook,), schedule="F00", **MODEL), PLAIN)

    assert firings(once) == {leaf: 1}
    assert firings(twice) == {leaf: 1 if hook == "forward" else 2}


def test_hooks_of_every_sort_go_together(write: Write) -> None:
    every = ("input", "parameter", "post-accumulate", "forward", "backward")

    assert len(firings(execute(write("h0 = mul(x0, p0)", hooks=every, **MODEL), PLAIN))) == 5


def test_each_segment_has_its_own_module_hooks(write: Write) -> None:
    found = firings(execute(write("h0 = sin(x0)", "h1 = tanh(h0)", hooks=("forward", "backward")), PLAIN))

    assert found == {
        f"segment{i}.register_{what}_hook": 1 for i in range(2) for what in ("forward", "full_backward")
    }  # fmt: skip


@pytest.mark.parametrize("hook", ["parameter", "post-accumulate"])
def test_a_hook_that_changes_a_gradient_shows_if_it_is_skipped(write: Write, hook: Any) -> None:
    """It halves what it sees."""
    leaf = "params['segment0.p0'].grad"
    without = tensor(execute(write("h0 = mul(x0, p0)", **MODEL), PLAIN), "parameter", leaf)

    assert torch.equal(
        tensor(execute(write("h0 = mul(x0, p0)", hooks=(hook,), **MODEL), PLAIN), "parameter", leaf), without / 2
    )


def test_hooks_on_what_receives_nothing_do_not_raise(write: Write) -> None:
    """A full backward hook joins all outputs of a module, so a gradient of nothing at all reaches its parameters."""
    case = write(
        ["h0 = sin(x0)", "h1 = mlp(x0)"],
        cotangents=[Cotangent(0, "[0]")],
        hooks=("input", "parameter", "post-accumulate", "forward", "backward"),
    )

    assert execute(case, PLAIN).raised is None


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


# memory and numbers -----------------------------------------------------------------------------------------------------


def unwritten(function: Any, *args: Any) -> Any:
    """Add what lies in memory that was never written."""
    output = function(*args)
    return output + torch.empty_like(output) * 0.5


def test_reading_memory_that_was_never_written_shows_and_repeats(write: Write) -> None:
    case = write("h0 = sin(x0)")
    first, second = execute(case, subject(unwritten)), execute(case, subject(unwritten))

    assert tensor(first, "output", "outputs").isnan().all()
    assert same(first, second)


def test_without_poison_memory_is_handed_out_as_it_is(write: Write) -> None:
    """What an earlier case left there is not NaN, so that such a subject does not seem to repeat itself."""
    case = write("h0 = sin(x0)")
    execute(case, subject(unwritten))

    assert not tensor(execute(case, subject(unwritten), poison=False), "output", "outputs").isnan().all()


def varied(function: Any, *args: Any) -> Any:
    """Call an operation that torch cannot promise to repeat."""
    output = function(*args)
    return output + torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))


@pytest.mark.parametrize("poison", [True, False])
def test_what_may_come_out_otherwise_each_time_is_warned_of(write: Write, poison: bool) -> None:
    """Every time, and whatever memory is filled with: the oracle then asks for no equal bits."""
    case = write("h0 = sin(x0)")

    assert [execute(case, subject(varied), poison=poison).varies for _ in range(2)] == [True, True]
    assert not execute(case, PLAIN, poison=poison).varies


@pytest.mark.parametrize(("variant", "towards"), [("up", torch.inf), ("down", -torch.inf)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "offset", "expanded", "view", "expanded-view"])
def test_a_nudge_moves_every_value_by_one_ulp(write: Write, variant: Any, towards: float, dtype: str, layout: Any) -> None:
    case = write("h0 = sin(x0)", primals=[Primal("x0", Spec((2, 3), dtype, requires_grad=True), layout=layout)], dtype=dtype)
    plain, moved = (tensor(execute(case, PLAIN, variant=v), "input", "x0") for v in ("plain", variant))

    assert torch.equal(moved, torch.nextafter(plain, torch.full_like(plain, towards)))


def test_a_nudge_leaves_integers_alone(write: Write) -> None:
    case = write("h0 = index_select(x0, x1)", primals=[Primal("x0", GRAD), Primal("x1", Spec((3,), "int64"), 2)])

    assert torch.equal(tensor(execute(case, PLAIN), "input", "x1"), tensor(execute(case, PLAIN, variant="up"), "input", "x1"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_nudge_changes_gradients_by_next_to_nothing(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """It is a benign variant of the reference: whatever differs is a matter of rounding."""
    for case in drawn[kind][:60]:
        records = [execute(case, reference(kind), variant=v) for v in ("plain", "up", "down")]
        raised = [r.raised for r in records]
        assert raised == [raised[0]] * 3 or all(raised)
        keys = [{key for key, t in r.tensors.items() if t is not None} for r in records]
        assert keys[0] == keys[1] == keys[2]


def test_stages_take_one_backward_over_one_graph(write: Write) -> None:
    with pytest.raises(InvalidArgument, match=r"`schedule`='F00' runs two backwards over one graph.*kind='stage-backward'"):
        execute(write("h0 = sin(x0)", schedule="F00"), reference("stage-backward"))
