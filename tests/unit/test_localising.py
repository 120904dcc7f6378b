"""Every fault says where its case and plain autograd part first."""

import functools

import pytest

import gradcheck_plus as gp
from gradcheck_plus.campaign.about import statement_of
from gradcheck_plus.campaign.localising import first_divergence
from gradcheck_plus.case import Case
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.results import Fault, check_text
from gradcheck_plus.subjects import checkpoint, subject
from gradcheck_plus.zoo import ZOO


@functools.cache
def checked(name: str, cases: int = 300) -> gp.CheckResult:
    planted = ZOO[name]
    run = gp.check_checkpoint if planted.kind == "checkpoint" else gp.check_stage_backward
    return run(planted.faulty, contract=planted.contract, settings=gp.Settings(max_examples=cases, seed=11), name=name)


def parting(fault: Fault) -> Divergence:
    assert fault.first_divergence is not None
    return fault.first_divergence


def test_a_fault_names_the_node_that_hands_on_another_gradient_and_the_statement() -> None:
    result = checked("only-first-input")
    found = parting(result.faults[0])

    assert (found.kind, found.direction, found.node) == ("incoming-differs", "backward", "_RecomputedBackward")
    assert found.source_line in result.faults[0].program
    assert f"parts from plain autograd at `{found.source_line}`: _RecomputedBackward hands" in " ".join(
        check_text(result).split()
    )


def test_a_fault_of_the_recompute_names_the_value_that_differs_first() -> None:
    found = parting(checked("rng-not-restored").faults[0])

    assert (found.kind, found.direction) == ("recompute-differs", "forward")
    assert "the recomputed forward differs first in what" in found.message


def test_a_stage_that_scales_its_cotangents_is_told_by_the_gradient_that_its_backward_starts_from() -> None:
    found = parting(checked("scaled-by-outputs").faults[0])

    assert found.kind == "incoming-differs"
    assert found.source_line


def test_the_same_seed_tells_the_same_place() -> None:
    again = checked.__wrapped__("first-output-only")

    assert parting(checked("first-output-only").faults[0]) == parting(again.faults[0])


def test_what_no_operation_shows_is_told_by_the_statement_that_the_mismatch_is_about() -> None:
    fault = checked("only-first-input").faults[0]
    case = Case.from_json(fault.case)
    mismatch = Mismatch("value", "primal", "x0.grad", "1", "2")

    found = first_divergence(case, checkpoint(lambda function, *args, **kwargs: function(*args, **kwargs)), mismatch, "cpu")

    assert found.kind == "not-seen"
    assert "x0" in found.source_line
    assert found.message.endswith("x0.grad: expected 1, got 2")


def test_the_one_that_raises_alone_is_told_with_its_line() -> None:
    fault = checked("only-first-input").faults[0]

    def raising(function: object, *args: object, **kwargs: object) -> object:
        raise ValueError("no such thing")

    mismatch = Mismatch("raises", "call", "forward", "no exception", "ValueError", error="ValueError")
    found = first_divergence(Case.from_json(fault.case), subject("checkpoint", raising), mismatch, "cpu")

    assert (found.kind, found.node, found.direction) == ("raises", "ValueError", "forward")
    assert found.source_line == 'raise ValueError("no such thing")'


@pytest.mark.parametrize(
    "leaf", ["outputs", "params['segment0.missing'].grad", "x9.grad", "torch.get_rng_state() after forward"]
)
def test_a_leaf_that_no_line_is_about_has_none_or_one_of_the_case(leaf: str) -> None:
    fault = checked("only-first-input").faults[0]

    line = statement_of(Case.from_json(fault.case), leaf)
    assert line == "" or line in fault.program
