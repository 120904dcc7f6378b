"""Numbers that differ: what must be seen before they are called wrong, and how far they may be off."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gradcheck_plus.mismatch import Mismatch, Role
from gradcheck_plus.oracle import Evidence, Judgement, Need, judge
from gradcheck_plus.record import Record

Recorded = Callable[..., Record]
Verdict = Callable[..., list[Mismatch]]

U = 2.0**-24
#: The roles whose tensors are looked at twice before they are called wrong.
REPEATED = ("output", "primal", "parameter")


def t(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)


# what must be seen first ------------------------------------------------------------------------------------------------


@pytest.fixture
def wrong(record: Recorded) -> Record:
    """A gradient that is another one."""
    return record({"x0.grad": t(1, -4, 0.75)})


def test_numbers_that_differ_are_looked_at_twice_first(record: Recorded, wrong: Record) -> None:
    """They may be other numbers every time."""
    assert judge(Evidence(record(), wrong, exact=True, unit=U)) is Need.REPETITION
    assert judge(Evidence(record(), wrong, exact=False, unit=U)) is Need.REPETITION


def test_then_where_bits_need_not_be_equal_at_the_truth(record: Recorded, wrong: Record) -> None:
    again = (record(), wrong)

    assert judge(Evidence(record(), wrong, exact=False, unit=U, again=again)) is Need.TRUTH
    assert isinstance(judge(Evidence(record(), wrong, exact=True, unit=U, again=again)), Judgement)


def test_who_gets_what_it_asked_for_does_not_ask_again(record: Recorded, wrong: Record) -> None:
    """Whatever there is of it: a float64 program has no truth."""
    evidence = Evidence(record(), wrong, exact=False, unit=U)
    asked = []
    while isinstance(said := judge(evidence), Need):
        asked.append(said)
        if said is Need.REPETITION:
            evidence.again = (record(), wrong)
        else:
            evidence.nudged = (record(), record())

    assert asked == [Need.REPETITION, Need.TRUTH]
    assert [m.kind for m in said.mismatches] == ["value"]


@pytest.mark.parametrize("role", REPEATED)
def test_other_numbers_every_time_are_a_fault_of_their_own(record: Recorded, verdict: Verdict, role: str) -> None:
    """Without figures, which would be other ones every time too."""
    leaf = {"output": "outputs['a']", "primal": "x0.grad", "parameter": "params['w'].grad"}[role]
    size = len(record().tensors[role, leaf])  # type: ignore[arg-type,index]
    first, second = (record({leaf: t(*[number] * size)}) for number in (5, 6))
    for exact in (True, False):
        [found] = verdict(first, exact=exact, again=(record(), second))
        assert (found.kind, found.role, found.leaf, found.figures) == ("not-repeatable", role, leaf, None)


@pytest.mark.parametrize("again", [None, t(1, -4), t(1, -4, 0.75, dtype=torch.float64)])
def test_a_repetition_that_is_not_even_comparable_repeats_nothing(
    record: Recorded, verdict: Verdict, wrong: Record, again: Tensor | None
) -> None:
    [found] = verdict(wrong, again=(record(), record({"x0.grad": again})))

    assert found.kind == "not-repeatable"


def test_a_reference_that_does_not_repeat_itself_is_given_its_own_spread(record: Recorded, verdict: Verdict) -> None:
    """Then bits say nothing, and the budget decides."""
    spread = record({"x0.grad": t(1, -4, 0.5 + 1e-3)})
    near, far = (record({"x0.grad": t(1, -4, 0.5 + error)}) for error in (4e-3, 4e-2))

    assert verdict(near, exact=True, again=(spread, near)) == []
    [found] = verdict(far, exact=True, again=(spread, far))
    assert found.kind == "value"
    assert found.figures is not None
    assert found.figures.rule == "nudged"


#: What torch says in deterministic mode of an operation that has no such implementation, and of attention on CUDA.
WARNINGS = [
    "cumsum_cuda_kernel does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, "
    "warn_only=True)'.",
    "Memory Efficient attention defaults to a non-deterministic algorithm. To explicitly enable determinism call ...",
]


@pytest.mark.parametrize("warning", WARNINGS)
@pytest.mark.parametrize("leaf", ["x0.grad", "buffers['mean']"])
def test_a_reference_that_torch_warns_of_owes_no_equal_bits(
    record: Recorded, verdict: Verdict, warning: str, leaf: str
) -> None:
    """It may have repeated itself by luck, and the subject need not."""
    plain = record()
    plain.warnings = [warning]
    size = len(plain.tensors["primal" if leaf == "x0.grad" else "buffer", leaf])  # type: ignore[arg-type]
    values = [1, -4, 0.5][:size] if size > 1 else [0.5]
    near, nearer, far = (record({leaf: t(*values[:-1], 0.5 + error)}) for error in (2**-22, 2**-23, 0.25))

    assert verdict(near, plain, exact=True, again=(plain, nearer)) == []
    assert [m.kind for m in verdict(far, plain, exact=True, again=(plain, far))] == ["value"]
    assert [m.kind for m in verdict(near, exact=True, again=(record(), near))] == ["value"]


@pytest.mark.parametrize(("role", "leaf", "other"), [
    ("buffer", "buffers['mean']", t(0.5 + 1e-3)), ("input", "x0", t(8)), ("leftover", "stage0.inputs['x0'].grad", t(1)),
    ("rng", "torch.get_rng_state() after forward", torch.tensor([9, 9, 9], dtype=torch.uint8)),
])  # fmt: skip
def test_side_effects_are_judged_without_a_repetition(record: Recorded, role: Role, leaf: str, other: Tensor) -> None:
    said = judge(Evidence(record(), record({leaf: other}), exact=True, unit=U))

    assert isinstance(said, Judgement)
    assert {m.role for m in said.mismatches} == {role}


# numbers ----------------------------------------------------------------------------------------------------------------


def test_where_equal_bits_are_due_one_bit_is_a_fault(record: Recorded, verdict: Verdict) -> None:
    off = torch.nextafter(t(1, -4, 0.5), t(1, 9, 0.5))
    [found] = verdict(record({"x0.grad": off}))

    assert found.kind == "value"
    assert found.figures is not None
    assert (found.figures.rule, found.figures.allowed) == ("bitwise", 0)
    assert found.figures.max_abs == 2.0**-22
    assert found.figures.max_ulp == 0.5, "of the largest element"
    assert found.figures.max_rel == 2.0**-24


def test_the_rule_that_had_the_last_word_is_named(record: Recorded) -> None:
    off = record({"x0.grad": torch.nextafter(t(1, -4, 0.5), t(9, 9, 9))})
    again = {"again": (record(), off), "nudged": (record(), record())}

    for truth, exact, rule in ((None, True, "bitwise"), (None, False, "nudged"), (record(), False, "budget")):
        said = judge(Evidence(record(), off, exact, U, truth=truth, **again))
        assert isinstance(said, Judgement)
        assert said.rule == rule
        assert bool(said.mismatches) == exact


def limit(error: float, unit: float = U) -> float:
    """The budget of x0.grad: its largest element is 4, and so is the largest gradient of the case."""
    return 8 * (error + unit * (4 + 1e-3 * 4))


@pytest.mark.parametrize("source", ["truth", "nudge", "repetition"])
def test_a_gradient_is_within_its_budget_or_over_it(record: Recorded, verdict: Verdict, source: str) -> None:
    """The budget is earned by the reference's own error against the truth, or by the spread of its benign variants."""
    error = 2.0**-12
    other = record({"x0.grad": t(1, -4, 0.5 - error)})
    again = other if source == "repetition" else record()
    nudged = (record(), other) if source == "nudge" else (record(), record())
    truth = other if source == "truth" else None
    for factor, over in ((0.95, False), (1.05, True)):
        target = 0.5 - error if source == "truth" else 0.5
        subject = record({"x0.grad": t(1, -4, target + factor * limit(error))})
        found = verdict(subject, exact=False, again=(again, subject), nudged=nudged, truth=truth)
        assert [m.leaf for m in found] == (["x0.grad"] if over else [])
        assert all(m.figures and m.figures.allowed == pytest.approx(limit(error)) for m in found)


def test_the_unit_is_that_of_the_coarsest_dtype_in_play(record: Recorded, verdict: Verdict) -> None:
    subject = record({"x0.grad": t(1, -4, 0.5 + 0.9 * limit(0, 2.0**-8))})

    assert verdict(subject, exact=False, unit=2.0**-8) == []
    assert len(verdict(subject, exact=False, unit=U)) == 1


def test_a_gradient_in_low_precision_has_the_unit_of_its_own_dtype(record: Recorded, verdict: Verdict) -> None:
    low = [t(1, -4, last, dtype=torch.bfloat16) for last in (0.5, 0.53125)]
    reference, subject = (record({"x0.grad": grad}) for grad in low)

    assert verdict(subject, reference, exact=False, again=(reference, subject), nudged=(reference, reference)) == []


def test_a_gradient_that_should_be_zero_may_be_as_wrong_as_the_others_are_large(record: Recorded, verdict: Verdict) -> None:
    """Not relative to its own norm, which is zero, and not unlimited either."""
    zero, near, far = (record({"x0.grad": t(*[x] * 3), "params['w'].grad": t(2000, 3000)}) for x in (0, 1e-6, 1e-3))

    assert verdict(near, zero, exact=False, again=(zero, near), nudged=(zero, zero)) == []
    assert len(verdict(far, zero, exact=False, again=(zero, far), nudged=(zero, zero))) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_within_budget(record: Recorded, verdict: Verdict, bad: float) -> None:
    for exact in (True, False):
        [found] = verdict(record({"x0.grad": t(1, -4, bad)}), exact=exact, truth=record())
        assert found.figures is not None
        assert found.figures.max_abs is None


def test_a_finite_number_is_not_right_where_plain_autograd_has_none(record: Recorded, verdict: Verdict) -> None:
    expected = record({"x0.grad": t(1, -4, math.nan)})

    for exact in (True, False):
        assert len(verdict(record(), expected, exact=exact, again=(expected, record()), nudged=(expected, expected))) == 1


def test_a_truth_of_another_shape_is_no_truth(record: Recorded, verdict: Verdict, wrong: Record) -> None:
    """As where a branch went the other way in double precision."""
    truth = record({"x0.grad": t(1)})

    assert len(verdict(wrong, exact=False, truth=truth)) == 1
    assert verdict(record({"x0.grad": t(1, -4, 0.5 + 2.0**-24)}), exact=False, truth=truth) == []
