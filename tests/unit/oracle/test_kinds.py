"""The oracle is a pure function of evidence: every difference has a verdict, and identical records have none."""

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from gradcheck_plus.mismatch import Mismatch, MismatchKind
from gradcheck_plus.oracle import Evidence, Judgement, described, judge
from gradcheck_plus.record import Raised, Record

Recorded = Callable[..., Record]
Verdict = Callable[..., list[Mismatch]]

U = 2.0**-24


def t(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def test_identical_records_differ_in_nothing(record: Recorded) -> None:
    """And nothing more need be seen."""
    said = judge(Evidence(record(), record(), exact=True, unit=U))

    assert said == Judgement([], "bitwise")
    assert judge(Evidence(Record(), Record(), exact=False, unit=U)) == Judgement([], "bitwise")


def test_nan_for_nan_is_no_difference(record: Recorded) -> None:
    both = [record({"x0.grad": t(math.nan, 1, math.inf)}) for _ in range(2)]

    assert judge(Evidence(both[0], both[1], exact=True, unit=U)) == Judgement([])


def test_the_evidence_is_not_changed(record: Recorded, verdict: Verdict) -> None:
    first, second = record(), record({"x0.grad": t(1, -4, 9), "structure": "other"})
    before = copy.deepcopy((first, second))
    verdict(second, first)

    for now, then in zip((first, second), before, strict=True):
        assert now.facts == then.facts
        assert all(a is b or torch.equal(a, b) for a, b in zip(now.tensors.values(), then.tensors.values(), strict=True))  # type: ignore[arg-type]


# every kind -------------------------------------------------------------------------------------------------------------

#: What is changed in a record; the kind, role and leaf of the mismatch; what was expected and got.
ONE_DIFFERENCE: dict[str, tuple[dict[str, Any], tuple[str, str, str], tuple[str, str]]] = {
    "lost gradient": ({"x0.grad": None}, ("presence", "primal", "x0.grad"), ("tensor([1, -4, 0.5])", "None")),
    "zeros for none": ({"x1.grad": t(0, 0)}, ("presence", "primal", "x1.grad"), ("None", "tensor([0, 0])")),
    "leftover": (
        {"stage0.inputs['x0'].grad": t(1)},
        ("presence", "leftover", "stage0.inputs['x0'].grad"),
        ("None", "tensor([1])"),
    ),
    "dtype": (
        {"params['w'].grad": t(2, 3, dtype=torch.bfloat16)},
        ("dtype", "parameter", "params['w'].grad"),
        ("torch.float32", "torch.bfloat16"),
    ),
    "shape": ({"x0.grad": t(1, -4)}, ("shape", "primal", "x0.grad"), ("(3,)", "(2,)")),
    "device": (
        {"x0.grad": t(1, -4, 0.5).to("meta")}, ("device", "primal", "x0.grad"), ("cpu", "meta"),
    ),
    "gradient": (
        {"x0.grad": t(1, -4, 0.75)}, ("value", "primal", "x0.grad"), ("tensor([1, -4, 0.5])", "tensor([1, -4, 0.75])"),
    ),
    "output": ({"outputs['a']": t(1, 3)}, ("value", "output", "outputs['a']"), ("tensor([1, 2])", "tensor([1, 3])")),
    "integer output": (
        {"count": torch.tensor([1, 3])}, ("value", "output", "count"), ("tensor([1, 2])", "tensor([1, 3])"),
    ),
    "buffer": (
        {"buffers['mean']": t(0.75)}, ("value", "buffer", "buffers['mean']"), ("tensor([0.5])", "tensor([0.75])"),
    ),
    "changed input": ({"x0": t(8)}, ("value", "input", "x0"), ("tensor([7])", "tensor([8])")),
    "generator": (
        {"torch.get_rng_state() after forward": torch.tensor([1, 2, 4], dtype=torch.uint8)},
        ("state", "rng", "torch.get_rng_state() after forward"),
        ("the reference's state", "another state"),
    ),
    "structure": (
        {"structure": "(tensor)"}, ("structure", "output", "outputs"), ("{'a': tensor}", "(tensor)"),
    ),
    "flag": ({"flag": False},
        ("requires-grad", "output", "outputs['a']"), ("True", "False")),
    "alias": ({"alias": "x0"}, ("alias", "output", "outputs['a']"), ("nothing", "x0")),
    "version": ({"version": 1}, ("version", "input", "x0"), ("0", "1")),
    "mode": (
        {"mode": False},
        ("state", "mode", "torch.is_grad_enabled() after forward"),
        ("True", "False"),
    ),
    "hook twice": ({"hook": 2}, ("firings", "hook", "x0.register_hook"), ("1", "2")),
    "hook never": (
        {"forward_hook": 0},
        ("firings", "forward-hook", "segment0.register_forward_hook"),
        ("1", "0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_DIFFERENCE)
def test_one_difference_is_one_mismatch(record: Recorded, verdict: Verdict, name: str) -> None:
    """With its kind, role and leaf, and what was expected and got."""
    changes, (kind, role, leaf), (expected, got) = ONE_DIFFERENCE[name]
    [found] = verdict(record(changes))

    assert (found.kind, found.role, found.leaf) == (kind, role, leaf)
    assert (found.expected, found.got) == (expected, got)


def test_every_kind_of_mismatch_has_an_example_here() -> None:
    """All but those that only whoever runs a case in another process can see."""
    shown = {kind for _, (kind, _, _), _ in ONE_DIFFERENCE.values()}
    others = {"raises", "not-raised", "not-repeatable"}

    assert shown | others == set(get_args(MismatchKind)) - {"hang", "crash"}


@pytest.mark.parametrize("first", ONE_DIFFERENCE)
def test_two_differences_are_two_mismatches(record: Recorded, verdict: Verdict, first: str) -> None:
    """Neither hides the other, except that nothing more is said of records of another structure."""
    if first == "structure":
        return
    for second in ONE_DIFFERENCE:
        one, two = (ONE_DIFFERENCE[name][1] for name in (first, second))
        if second == "structure" or one[1:] == two[1:]:
            continue
        both = record(ONE_DIFFERENCE[first][0] | ONE_DIFFERENCE[second][0])
        assert {(m.kind, m.role, m.leaf) for m in verdict(both)} == {one, two}


def test_another_structure_is_all_that_is_said(record: Recorded, verdict: Verdict) -> None:
    """What lies in it cannot be compared leaf by leaf."""
    [found] = verdict(record({"x0.grad": t(9, 9, 9), "outputs['a']": None, "structure": "[tensor]"}))

    assert found.kind == "structure"


@pytest.mark.parametrize(
    "name", [n for n, (_, (kind, _, _), _) in ONE_DIFFERENCE.items() if kind not in ("value", "not-repeatable")]
)
def test_what_is_no_number_needs_no_second_look(record: Recorded, name: str) -> None:
    assert isinstance(judge(Evidence(record(), record(ONE_DIFFERENCE[name][0]), exact=False, unit=U)), Judgement)


@pytest.mark.parametrize("name", ["integer output", "generator", "changed input"])
def test_integers_generators_and_inputs_have_no_budget(record: Recorded, verdict: Verdict, name: str) -> None:
    [found] = verdict(record(ONE_DIFFERENCE[name][0]), exact=False)

    assert found.leaf == ONE_DIFFERENCE[name][1][2]


# exceptions -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def raised(record: Recorded) -> Recorded:
    def make(phase: Any = "backward", kind: str = "RuntimeError", message: str = "first line\nsecond") -> Record:
        return dataclasses.replace(record(), raised=Raised(phase, kind, message))

    return make


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_subject_that_raises_where_plain_autograd_does_not(verdict: Verdict, raised: Recorded, phase: str) -> None:
    [found] = verdict(raised(phase, "TypeError"))

    assert (found.kind, found.role, found.leaf, found.error) == ("raises", "call", phase, "TypeError")
    assert (found.expected, found.got) == ("no exception", "TypeError: first line")


def test_a_subject_that_does_not_raise_where_plain_autograd_does(record: Recorded, verdict: Verdict, raised: Recorded) -> None:
    [found] = verdict(record(), raised("backward"))

    assert (found.kind, found.role, found.leaf) == ("not-raised", "call", "backward")
    assert (found.expected, found.got) == ("RuntimeError: first line", "no exception")


def test_both_raise(verdict: Verdict, raised: Recorded) -> None:
    """Right, or loud: whatever each of them said."""
    assert verdict(raised("forward", "TypeError"), raised("backward", "RuntimeError")) == []


@pytest.mark.parametrize("message", ["", "   ", "\n\n"])
def test_an_exception_without_a_message_can_be_reported(
    record: Recorded, verdict: Verdict, raised: Recorded, message: str
) -> None:
    assert verdict(raised(message=message))[0].got == "RuntimeError"
    assert verdict(record(), raised(message=message))[0].expected.startswith("RuntimeError")


def test_a_long_message_is_cut(verdict: Verdict, raised: Recorded) -> None:
    assert len(verdict(raised(message="x" * 10_000))[0].got) < 200


def test_a_structure_that_made_the_subject_raise_is_the_fault(verdict: Verdict, raised: Recorded) -> None:
    """Not the exception that followed from it."""
    subject = raised("forward", "IndexError")
    subject.facts["output", "outputs", "structure"] = "(tensor)"
    [found] = verdict(subject)

    assert (found.kind, found.role) == ("structure", "output")


def test_a_structure_that_never_came_is_no_fault_beside_the_exception(verdict: Verdict, raised: Recorded) -> None:
    subject = raised("forward", "IndexError")
    del subject.facts["output", "outputs", "structure"]

    assert [m.kind for m in verdict(subject)] == ["raises"]


# words ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (None, "None"),
        (t(1, 0.25), "tensor([1, 0.25])"),
        (torch.tensor([[1], [2]]), "tensor([1, 2])"),
        (torch.tensor(True), "tensor([1])"),
        (torch.zeros(0), "tensor([])"),
        (torch.arange(8.0).reshape(2, 4), "tensor(2, 4) [0, 1, 2, 3, 4, ...]"),
        (t(math.nan, math.inf), "tensor([nan, inf])"),
        (torch.ones(2, dtype=torch.bfloat16, requires_grad=True), "tensor([1, 1])"),
    ],
)
def test_a_tensor_is_described_in_a_few_words(tensor: Tensor | None, said: str) -> None:
    assert described(tensor) == said
