"""What holds for every case that is drawn, under plain autograd and under implementations that are right."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, event, find, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradcheck_plus import strategies as gst
from gradcheck_plus import subjects, support
from gradcheck_plus.case import Case, Environment, Name, Program
from gradcheck_plus.case.trees import walk
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.build import case_source
from gradcheck_plus.oracle import Evidence, Judgement, judge
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.tolerance import equal, gap, largest
from gradcheck_plus.traits import TRAITS, Facts, exact, traits

#: It has no annotations: it is printed into repros, which a person reads.
plain_stage_backward: Callable[..., Any] = support.plain_stage_backward
both_kinds = pytest.mark.parametrize("kind", KINDS)


def law(examples: int) -> settings:
    """The settings of a law: the same cases in every run, so that it never fails for one and not for another."""
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
    )


def differences(first: Record, second: Record) -> list[Any]:
    """Return everything in which two records differ, to the last bit."""
    said = judge(Evidence(first, second, exact=True, unit=2.0**-24))
    if not isinstance(said, Judgement):
        said = judge(Evidence(first, second, exact=True, unit=2.0**-24, again=(first, second)))
    assert isinstance(said, Judgement)
    return [*said.mismatches, *({first.raised} ^ {second.raised})]


# drawn cases ------------------------------------------------------------------------------------------------------------


@both_kinds
def test_plain_autograd_runs_every_case(kind: Kind) -> None:
    """Unless the case declares that it may raise, which depends on what the backward needs."""

    @law(300)
    @given(case=gst.cases(kind))
    def holds(case: Case) -> None:
        record = execute(case, reference(kind))
        assert record.raised is None or "reference-raises" in traits(case), (record.raised, case_source(case))

    holds()


@both_kinds
def test_what_a_case_declares_is_what_runs(kind: Kind) -> None:
    """Shape, dtype and `requires_grad` of every output; a dtype that only the run decides is any floating one."""

    @law(200)
    @given(case=gst.cases(kind))
    def holds(case: Case) -> None:
        record, specs = execute(case, reference(kind)), Facts(case).specs
        assume(record.raised is None)
        for leaf, (segment, path) in record.places.items():
            name = dict(walk(case.program.segments[segment].output))[path]
            tensor = record.tensors["output", leaf]
            assert isinstance(name, Name)
            assert tensor is not None
            spec, dtype = specs[name.name], str(tensor.dtype).removeprefix("torch.")
            assert (tuple(tensor.shape), record.facts["output", leaf, "requires-grad"]) == (spec.shape, spec.requires_grad)
            assert dtype == spec.dtype or (spec.dtype == "float" and tensor.is_floating_point())

    holds()


@both_kinds
def test_a_case_survives_json(kind: Kind) -> None:
    @law(200)
    @given(case=gst.cases(kind))
    def holds(case: Case) -> None:
        again = Case.from_json(case.to_json())
        assert again == case
        assert traits(again) == traits(case)
        assert case_source(again) == case_source(case)

    holds()


@both_kinds
def test_most_cases_have_a_gradient_that_is_not_zero(kind: Kind) -> None:
    """A case without one says nothing."""
    vacuous = []

    @law(300)
    @given(case=gst.cases(kind))
    def look(case: Case) -> None:
        record = execute(case, reference(kind))
        quiet = any(TRAITS[name].quiet for name in traits(case))
        if record.raised is None and not quiet and record.vacuous:
            vacuous.append(case)

    look()
    assert len(vacuous) <= 9


@both_kinds
def test_the_same_case_leaves_the_same_behind_twice(kind: Kind) -> None:
    """Whatever ran in between."""

    @law(150)
    @given(case=gst.cases(kind), other=gst.cases(kind))
    def holds(case: Case, other: Case) -> None:
        first = execute(case, reference(kind))
        execute(other, reference(kind))
        assert differences(first, execute(case, reference(kind))) == []

    holds()


@both_kinds
def test_shrinks_towards_a_single_sine(kind: Kind) -> None:
    """Of one contiguous float32 leaf of shape (2, 3), in one segment, with one forward and one backward."""
    case = find(gst.cases(kind), lambda _: True, settings=settings(database=None, derandomize=True))

    assert traits(case) == frozenset()
    assert [s.operation for s in case.program.statements] == ["sin"]
    [primal] = case.primals
    assert (primal.spec.shape, primal.spec.dtype, primal.layout, primal.leaf) == ((2, 3), "float32", "contiguous", True)
    assert case.environment == Environment()
    assert len(case.cotangents) == 1


@pytest.mark.parametrize("trait", ["nested-output", "many-segments"])
def test_shrinks_towards_little_more_than_the_trait_that_is_looked_for(trait: str) -> None:
    """As in a test of the user's own."""
    config = settings(database=None, derandomize=True, max_examples=2000)
    case = find(gst.cases(max_statements=3), lambda c: trait in traits(c), settings=config)

    assert case.size <= 3, case_source(case)


# implementations that are right -----------------------------------------------------------------------------------------


@law(200)
@given(case=gst.cases())
def test_a_plain_call_is_a_checkpoint_that_changes_nothing(case: Case) -> None:
    """Bit for bit, in everything."""
    plain = execute(case, reference("checkpoint"))

    assert differences(plain, execute(case, subjects.SUBJECTS["identity"].subject)) == []
    called = subjects.checkpoint(lambda function, *args, **kwargs: function(*args, **kwargs), contract="strict")
    assert differences(plain, execute(case, called)) == []


@law(200)
@given(case=gst.cases("stage-backward"))
def test_one_backward_of_ones_own_is_a_stage_backward_that_changes_nothing(case: Case) -> None:
    """As a user writes it: with `torch.autograd.grad` for the inputs and the parameters of the stage."""

    def stage_backward(stage_output: Any, output_grads: Any, input_values: Any) -> Any:
        return list(plain_stage_backward(stage_output, output_grads, input_values))

    plain = execute(case, reference("stage-backward"))
    assert differences(plain, execute(case, subjects.stage_backward(stage_backward, contract="strict"))) == []


@law(300)
@given(case=gst.cases(without=["parameter-changed", "container-rebound", "random-activation"]))
def test_checkpointing_leaves_gradients_bitwise_equal(case: Case) -> None:
    """Wherever `exact` says so: the rule that decides between bits and a budget rests on this.

    Left out are what a recompute cannot do: see an old parameter or an old container; and torch's known fault with an
    activation that draws its slope (pytorch#193671).
    """
    assume(exact(traits(case)))
    plain = execute(case, reference("checkpoint"))
    checkpointed = execute(case, subjects.SUBJECTS["torch-checkpoint"].subject)

    assert plain.raised is None
    assert checkpointed.raised is None, (checkpointed.raised, case_source(case))
    for (role, leaf), expected in plain.tensors.items():
        if role in ("primal", "parameter"):
            got = checkpointed.tensors[role, leaf]
            assert (expected is None) == (got is None), (leaf, case_source(case))
            assert expected is None or got is None or equal(expected, got), (leaf, case_source(case))


def test_checkpointing_is_exact_in_many_cases() -> None:
    """Or the law above would be about few, and the budget would have the last word."""
    found = []

    @law(200)
    @given(case=gst.cases())
    def look(case: Case) -> None:
        found.append(exact(traits(case)))

    look()
    assert sum(found) > len(found) / 3


# one question, asked in two ways ----------------------------------------------------------------------------------------


def arrived(case: Case, record: Record, name: str, forward: int) -> Tensor | None:
    """Return the sum of what all stages of a forward sent back for a primal, under every name that it was passed by."""
    suffix = f"_{forward}" if forward else ""
    others = [name, *(p.name for p in case.primals if p.alias == name)]
    parts = [
        gradient
        for stage in range(len(case.program.segments))
        for other in others
        if (gradient := record.tensors.get(("primal", f"stage{stage}{suffix}.gradients[{other!r}]"))) is not None
    ]
    return sum(parts[1:], parts[0]) if parts else None


def same(expected: Tensor | None, got: Tensor | None, scale: float) -> bool:
    """Are two float64 gradients the same but for rounding? Where nothing arrives a stage may say zero."""
    if expected is None or got is None:
        other = got if expected is None else expected
        return other is None or not other.count_nonzero()
    return gap(expected, got) <= 1e-9 * (largest(expected) + scale)


@law(300)
@given(case=gst.cases("stage-backward", dtypes=["float64"], without=["existing-grad", "parameter-changed"]))
def test_the_backwards_of_all_stages_are_one_backward_through_the_whole_model(case: Case) -> None:
    """For the leaf primals and the parameters of a pipeline: plain autograd, taken apart by hand, is plain autograd.

    A hook on a parameter that stages share fires in the backward of each.
    """
    assume("hook-on-tied-parameter" not in traits(case))
    whole, staged = execute(case, reference("checkpoint")), execute(case, reference("stage-backward"))
    assert whole.raised is None
    assert staged.raised is None
    scale = max(map(largest, whole.gradients()), default=0.0)
    assume(scale < 1e30)  # beyond that, parts of a sum overflow, with either sign
    for (role, leaf), expected in whole.tensors.items():
        if role == "parameter":
            assert same(expected, staged.tensors[role, leaf], scale), (leaf, case_source(case))
        if role == "rng":
            assert torch.equal(expected, staged.tensors[role, leaf])  # type: ignore[arg-type]
    reused = case.environment.reuses_inputs
    for p in case.primals:
        if not p.leaf:
            continue
        forwards = range(case.environment.forwards)
        shared = any(q.share == p.name for q in case.primals)
        if reused and p.reusable and not shared:
            parts = [g for forward in forwards if (g := arrived(case, staged, p.name, forward)) is not None]
            total = sum(parts[1:], parts[0]) if parts else None
            assert same(whole.tensors["primal", f"{p.name}.grad"], total, scale), (p.name, case_source(case))
            continue
        for forward in forwards:
            expected = whole.tensors["primal", f"{p.name}_{forward}.grad" if forward else f"{p.name}.grad"]
            got = arrived(case, staged, p.name, forward)
            assert same(expected, got, scale), (p.name, forward, expected, got, case_source(case))


@law(100)
@given(case=gst.cases("stage-backward", without=["parameter-changed"]))
def test_the_forwards_of_all_stages_are_the_forward_of_the_whole_model(case: Case) -> None:
    """Bit for bit, where the stages are handed tensors that lie in memory as they did."""
    assume(not case.environment.reuses_inputs)
    whole, staged = execute(case, reference("checkpoint")), execute(case, reference("stage-backward"))

    for (role, leaf), expected in whole.tensors.items():
        if role in ("output", "buffer"):
            got = staged.tensors[role, leaf]
            assert expected is not None
            assert got is not None
            assert equal(expected, got), (leaf, case_source(case))


# events -----------------------------------------------------------------------------------------------------------------


def test_traits_can_be_seen_in_a_users_own_test() -> None:
    """As events, which ``--hypothesis-show-statistics`` prints."""
    seen: list[str] = []

    @law(20)
    @given(case=gst.cases(), number=st.integers(0, 3))
    def holds(case: Case, number: int) -> None:
        for trait in traits(case):
            event(trait)
            seen.append(trait)
        assert isinstance(case.program, Program)
        assert 0 <= number <= 3

    holds()
    assert seen
