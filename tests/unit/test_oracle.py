"""The oracle is a pure function of evidence: every difference has a verdict, and identical records have none."""

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradcheck_plus.mismatch import Mismatch, MismatchKind, Role
from gradcheck_plus.oracle import Evidence, Judgement, Need, described, judge
from gradcheck_plus.record import Aspect, Raised, Record

U = 2.0**-24
ROLES: tuple[Role, ...] = get_args(Role)
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)
#: The roles whose tensors are looked at twice before they are called wrong.
REPEATED = ("output", "primal", "parameter")


def t(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def record(tensors: Mapping[str, Tensor | None] | None = None, **facts: Any) -> Record:
    """Return a record with something of every role and aspect; the tensors at some leaves changed, or facts of some aspects.

    The largest gradient is 4.
    """
    changed: dict[str, Tensor | None] = dict(tensors or {})
    base: dict[tuple[Role, str], Tensor | None] = {
        ("output", "outputs['a']"): t(1, 2),
        ("output", "count"): torch.tensor([1, 2]),
        ("primal", "x0.grad"): t(1, -4, 0.5),
        ("primal", "x1.grad"): None,
        ("parameter", "params['w'].grad"): t(2, 3),
        ("buffer", "buffers['mean']"): t(0.5),
        ("input", "x0"): t(7),
        ("leftover", "stage0.inputs['x0'].grad"): None,
        ("rng", "torch.get_rng_state() after forward"): torch.tensor([1, 2, 3], dtype=torch.uint8),
    }
    aspects: dict[tuple[Role, str, Aspect], Any] = {
        ("output", "outputs", "structure"): facts.get("structure", "{'a': tensor}"),
        ("output", "outputs['a']", "requires-grad"): facts.get("flag", True),
        ("output", "outputs['a']", "alias"): facts.get("alias", "nothing"),
        ("input", "x0", "version"): facts.get("version", 0),
        ("mode", "torch.is_grad_enabled() after forward", "state"): facts.get("mode", True),
        ("hook", "x0.register_hook", "firings"): facts.get("hook", 1),
        ("forward-hook", "segment0.register_forward_hook", "firings"): facts.get("forward_hook", 1),
    }
    return Record({key: changed.get(key[1], value) for key, value in base.items()}, aspects)


def verdict(subject: Record, reference: Record | None = None, *, exact: bool = True, **more: Any) -> list[Mismatch]:
    """Judge a subject whose repetition is the same; nothing but rounding lies between the reference and its variants."""
    expected = reference or record()
    evidence = Evidence(expected, subject, exact, U, again=(expected, subject), nudged=(expected, expected))
    said = judge(dataclasses.replace(evidence, **more))
    assert isinstance(said, Judgement)
    return said.mismatches


def test_identical_records_differ_in_nothing() -> None:
    """And nothing more need be seen."""
    said = judge(Evidence(record(), record(), exact=True, unit=U))

    assert said == Judgement([], "bitwise")
    assert judge(Evidence(Record(), Record(), exact=False, unit=U)) == Judgement([], "bitwise")


def test_nan_for_nan_is_no_difference() -> None:
    both = [record({"x0.grad": t(math.nan, 1, math.inf)}) for _ in range(2)]

    assert judge(Evidence(both[0], both[1], exact=True, unit=U)) == Judgement([])


def test_the_evidence_is_not_changed() -> None:
    first, second = record(), record({"x0.grad": t(1, -4, 9)}, structure="other")
    before = copy.deepcopy((first, second))
    verdict(second, first)

    for now, then in zip((first, second), before, strict=True):
        assert now.facts == then.facts
        assert all(a is b or torch.equal(a, b) for a, b in zip(now.tensors.values(), then.tensors.values(), strict=True))  # type: ignore[arg-type]


# every kind -------------------------------------------------------------------------------------------------------------

ONE_DIFFERENCE: dict[str, tuple[Record, tuple[str, str, str], tuple[str, str]]] = {
    "lost gradient": (record({"x0.grad": None}), ("presence", "primal", "x0.grad"), ("tensor([1, -4, 0.5])", "None")),
    "zeros for none": (record({"x1.grad": t(0, 0)}), ("presence", "primal", "x1.grad"), ("None", "tensor([0, 0])")),
    "leftover": (
        record({"stage0.inputs['x0'].grad": t(1)}),
        ("presence", "leftover", "stage0.inputs['x0'].grad"),
        ("None", "tensor([1])"),
    ),
    "dtype": (
        record({"params['w'].grad": t(2, 3, dtype=torch.bfloat16)}),
        ("dtype", "parameter", "params['w'].grad"),
        ("torch.float32", "torch.bfloat16"),
    ),
    "shape": (record({"x0.grad": t(1, -4)}), ("shape", "primal", "x0.grad"), ("(3,)", "(2,)")),
    "device": (
        record({"x0.grad": t(1, -4, 0.5).to("meta")}), ("device", "primal", "x0.grad"), ("cpu", "meta"),
    ),
    "gradient": (
        record({"x0.grad": t(1, -4, 0.75)}), ("value", "primal", "x0.grad"), ("tensor([1, -4, 0.5])", "tensor([1, -4, 0.75])"),
    ),
    "output": (record({"outputs['a']": t(1, 3)}), ("value", "output", "outputs['a']"), ("tensor([1, 2])", "tensor([1, 3])")),
    "integer output": (
        record({"count": torch.tensor([1, 3])}), ("value", "output", "count"), ("tensor([1, 2])", "tensor([1, 3])"),
    ),
    "buffer": (
        record({"buffers['mean']": t(0.75)}), ("value", "buffer", "buffers['mean']"), ("tensor([0.5])", "tensor([0.75])"),
    ),
    "changed input": (record({"x0": t(8)}), ("value", "input", "x0"), ("tensor([7])", "tensor([8])")),
    "generator": (
        record({"torch.get_rng_state() after forward": torch.tensor([1, 2, 4], dtype=torch.uint8)}),
        ("state", "rng", "torch.get_rng_state() after forward"),
        ("the reference's state", "another state"),
    ),
    "structure": (
        record(structure="(tensor)"), ("structure", "output", "outputs"), ("{'a': tensor}", "(tensor)"),
    ),
    "flag": (record(flag=False),
        ("requires-grad", "output", "outputs['a']"), ("True", "False")),
    "alias": (record(alias="x0"), ("alias", "output", "outputs['a']"), ("nothing", "x0")),
    "version": (record(version=1), ("version", "input", "x0"), ("0", "1")),
    "mode": (
        record(mode=False),
        ("state", "mode", "torch.is_grad_enabled() after forward"),
        ("True", "False"),
    ),
    "hook twice": (record(hook=2), ("firings", "hook", "x0.register_hook"), ("1", "2")),
    "hook never": (
        record(forward_hook=0),
        ("firings", "forward-hook", "segment0.register_forward_hook"),
        ("1", "0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_DIFFERENCE)
def test_one_difference_is_one_mismatch(name: str) -> None:
    """With its kind, role and leaf, and what was expected and got."""
    subject, (kind, role, leaf), (expected, got) = ONE_DIFFERENCE[name]
    [found] = verdict(subject)

    assert (found.kind, found.role, found.leaf) == (kind, role, leaf)
    assert (found.expected, found.got) == (expected, got)


def test_every_kind_of_mismatch_has_an_example_here() -> None:
    """All but those that only whoever runs a case in another process can see."""
    shown = {kind for _, (kind, _, _), _ in ONE_DIFFERENCE.values()}
    others = {"raises", "not-raised", "not-repeatable"}

    assert shown | others == set(get_args(MismatchKind)) - {"hang", "crash"}


@pytest.mark.parametrize("first", ONE_DIFFERENCE)
def test_two_differences_are_two_mismatches(first: str) -> None:
    """Neither hides the other, except that nothing more is said of records of another structure."""
    if first == "structure":
        return
    for second in ONE_DIFFERENCE:
        one, two = (ONE_DIFFERENCE[name][1] for name in (first, second))
        if second == "structure" or one[1:] == two[1:]:
            continue
        both = merged(ONE_DIFFERENCE[first][0], ONE_DIFFERENCE[second][0])
        assert {(m.kind, m.role, m.leaf) for m in verdict(both)} == {one, two}


def merged(first: Record, second: Record) -> Record:
    """Return a record with the differences of two."""
    base = record()
    pick = Record(dict(first.tensors), dict(first.facts))
    for key, value in second.tensors.items():
        if not (
            value is base.tensors[key] or (value is not None and value.device.type == "cpu" and same(value, base.tensors[key]))
        ):
            pick.tensors[key] = value
    for fact, value in second.facts.items():
        if value != base.facts[fact]:
            pick.facts[fact] = value
    return pick


def same(a: Tensor, b: Tensor | None) -> bool:
    return b is not None and a.dtype == b.dtype and torch.equal(a, b)


def test_another_structure_is_all_that_is_said() -> None:
    """What lies in it cannot be compared leaf by leaf."""
    [found] = verdict(record({"x0.grad": t(9, 9, 9), "outputs['a']": None}, structure="[tensor]"))

    assert found.kind == "structure"


# exceptions -------------------------------------------------------------------------------------------------------------


def raised(phase: Any = "backward", kind: str = "RuntimeError", message: str = "first line\nsecond") -> Record:
    return dataclasses.replace(record(), raised=Raised(phase, kind, message))


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_subject_that_raises_where_plain_autograd_does_not(phase: str) -> None:
    [found] = verdict(raised(phase, "TypeError"))

    assert (found.kind, found.role, found.leaf, found.error) == ("raises", "call", phase, "TypeError")
    assert (found.expected, found.got) == ("no exception", "TypeError: first line")


def test_a_subject_that_does_not_raise_where_plain_autograd_does() -> None:
    [found] = verdict(record(), raised("backward"))

    assert (found.kind, found.role, found.leaf) == ("not-raised", "call", "backward")
    assert (found.expected, found.got) == ("RuntimeError: first line", "no exception")


def test_both_raise() -> None:
    """Right, or loud: whatever each of them said."""
    assert verdict(raised("forward", "TypeError"), raised("backward", "RuntimeError")) == []


@pytest.mark.parametrize("message", ["", "   ", "\n\n"])
def test_an_exception_without_a_message_can_be_reported(message: str) -> None:
    assert verdict(raised(message=message))[0].got == "RuntimeError"
    assert verdict(record(), raised(message=message))[0].expected.startswith("RuntimeError")


def test_a_long_message_is_cut() -> None:
    assert len(verdict(raised(message="x" * 10_000))[0].got) < 200


def test_a_structure_that_made_the_subject_raise_is_the_fault() -> None:
    """Not the exception that followed from it."""
    subject = raised("forward", "IndexError")
    subject.facts["output", "outputs", "structure"] = "(tensor)"
    [found] = verdict(subject)

    assert (found.kind, found.role) == ("structure", "output")


def test_a_structure_that_never_came_is_no_fault_beside_the_exception() -> None:
    subject = raised("forward", "IndexError")
    del subject.facts["output", "outputs", "structure"]

    assert [m.kind for m in verdict(subject)] == ["raises"]


# what must be seen first ------------------------------------------------------------------------------------------------

WRONG = record({"x0.grad": t(1, -4, 0.75)})


def test_numbers_that_differ_are_looked_at_twice_first() -> None:
    """They may be other numbers every time."""
    assert judge(Evidence(record(), WRONG, exact=True, unit=U)) is Need.REPETITION
    assert judge(Evidence(record(), WRONG, exact=False, unit=U)) is Need.REPETITION


def test_then_where_bits_need_not_be_equal_at_the_truth() -> None:
    again = (record(), WRONG)

    assert judge(Evidence(record(), WRONG, exact=False, unit=U, again=again)) is Need.TRUTH
    assert isinstance(judge(Evidence(record(), WRONG, exact=True, unit=U, again=again)), Judgement)


def test_who_gets_what_it_asked_for_does_not_ask_again() -> None:
    """Whatever there is of it: a float64 program has no truth."""
    evidence = Evidence(record(), WRONG, exact=False, unit=U)
    asked = []
    while isinstance(said := judge(evidence), Need):
        asked.append(said)
        if said is Need.REPETITION:
            evidence.again = (record(), WRONG)
        else:
            evidence.nudged = (record(), record())

    assert asked == [Need.REPETITION, Need.TRUTH]
    assert [m.kind for m in said.mismatches] == ["value"]


@pytest.mark.parametrize(
    "name", [n for n, (_, (kind, _, _), _) in ONE_DIFFERENCE.items() if kind not in ("value", "not-repeatable")]
)
def test_what_is_no_number_needs_no_second_look(name: str) -> None:
    assert isinstance(judge(Evidence(record(), ONE_DIFFERENCE[name][0], exact=False, unit=U)), Judgement)


@pytest.mark.parametrize("role", REPEATED)
def test_other_numbers_every_time_are_a_fault_of_their_own(role: str) -> None:
    """Without figures, which would be other ones every time too."""
    leaf = {"output": "outputs['a']", "primal": "x0.grad", "parameter": "params['w'].grad"}[role]
    size = len(record().tensors[role, leaf])  # type: ignore[arg-type,index]
    first, second = (record({leaf: t(*[number] * size)}) for number in (5, 6))
    for exact in (True, False):
        [found] = verdict(first, exact=exact, again=(record(), second))
        assert (found.kind, found.role, found.leaf, found.figures) == ("not-repeatable", role, leaf, None)


@pytest.mark.parametrize("again", [None, t(1, -4), t(1, -4, 0.75, dtype=torch.float64)])
def test_a_repetition_that_is_not_even_comparable_repeats_nothing(again: Tensor | None) -> None:
    [found] = verdict(WRONG, again=(record(), record({"x0.grad": again})))

    assert found.kind == "not-repeatable"


def test_a_reference_that_does_not_repeat_itself_is_given_its_own_spread() -> None:
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
def test_a_reference_that_torch_warns_of_owes_no_equal_bits(warning: str, leaf: str) -> None:
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
def test_side_effects_are_judged_without_a_repetition(role: Role, leaf: str, other: Tensor) -> None:
    said = judge(Evidence(record(), record({leaf: other}), exact=True, unit=U))

    assert isinstance(said, Judgement)
    assert {m.role for m in said.mismatches} == {role}


# numbers ----------------------------------------------------------------------------------------------------------------


def test_where_equal_bits_are_due_one_bit_is_a_fault() -> None:
    off = torch.nextafter(t(1, -4, 0.5), t(1, 9, 0.5))
    [found] = verdict(record({"x0.grad": off}))

    assert found.kind == "value"
    assert found.figures is not None
    assert (found.figures.rule, found.figures.allowed) == ("bitwise", 0)
    assert found.figures.max_abs == 2.0**-22
    assert found.figures.max_ulp == 0.5, "of the largest element"
    assert found.figures.max_rel == 2.0**-24


def test_the_rule_that_had_the_last_word_is_named() -> None:
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
def test_a_gradient_is_within_its_budget_or_over_it(source: str) -> None:
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


def test_the_unit_is_that_of_the_coarsest_dtype_in_play() -> None:
    subject = record({"x0.grad": t(1, -4, 0.5 + 0.9 * limit(0, 2.0**-8))})

    assert verdict(subject, exact=False, unit=2.0**-8) == []
    assert len(verdict(subject, exact=False, unit=U)) == 1


def test_a_gradient_in_low_precision_has_the_unit_of_its_own_dtype() -> None:
    low = [t(1, -4, last, dtype=torch.bfloat16) for last in (0.5, 0.53125)]
    reference, subject = (record({"x0.grad": grad}) for grad in low)

    assert verdict(subject, reference, exact=False, again=(reference, subject), nudged=(reference, reference)) == []


def test_a_gradient_that_should_be_zero_may_be_as_wrong_as_the_others_are_large() -> None:
    """Not relative to its own norm, which is zero, and not unlimited either."""
    zero, near, far = (record({"x0.grad": t(*[x] * 3), "params['w'].grad": t(2000, 3000)}) for x in (0, 1e-6, 1e-3))

    assert verdict(near, zero, exact=False, again=(zero, near), nudged=(zero, zero)) == []
    assert len(verdict(far, zero, exact=False, again=(zero, far), nudged=(zero, zero))) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_within_budget(bad: float) -> None:
    for exact in (True, False):
        [found] = verdict(record({"x0.grad": t(1, -4, bad)}), exact=exact, truth=record())
        assert found.figures is not None
        assert found.figures.max_abs is None


def test_a_finite_number_is_not_right_where_plain_autograd_has_none() -> None:
    expected = record({"x0.grad": t(1, -4, math.nan)})

    for exact in (True, False):
        assert len(verdict(record(), expected, exact=exact, again=(expected, record()), nudged=(expected, expected))) == 1


def test_a_truth_of_another_shape_is_no_truth() -> None:
    """As where a branch went the other way in double precision."""
    truth = record({"x0.grad": t(1)})

    assert len(verdict(WRONG, exact=False, truth=truth)) == 1
    assert verdict(record({"x0.grad": t(1, -4, 0.5 + 2.0**-24)}), exact=False, truth=truth) == []


@pytest.mark.parametrize("name", ["integer output", "generator", "changed input"])
def test_integers_generators_and_inputs_have_no_budget(name: str) -> None:
    [found] = verdict(ONE_DIFFERENCE[name][0], exact=False)

    assert found.leaf == ONE_DIFFERENCE[name][1][2]


# no hole ----------------------------------------------------------------------------------------------------------------


def other_tensors(tensor: Tensor | None) -> Iterator[tuple[str, Tensor | None]]:
    """Yield everything that can be wrong with a tensor, each with the kind of its mismatch."""
    if tensor is None:
        yield "presence", torch.zeros(2)
        yield "presence", torch.zeros(0)
        return
    yield "presence", None
    yield "dtype", tensor.to(torch.float64 if tensor.dtype != torch.float64 else torch.float32)
    yield "shape", torch.cat([tensor, tensor, tensor[:0], tensor.new_zeros(1)])
    yield "shape", tensor[None]
    yield "device", tensor.to("meta")
    if tensor.numel():
        for i in range(tensor.numel()):
            changed = tensor.clone()
            changed.view(-1)[i] += 1
            yield "value", changed
            if tensor.is_floating_point():
                changed = tensor.clone()
                changed.view(-1)[i] = math.nan
                yield "value", changed


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Draw records of any roles, leaves and facts."""
    leaf = st.text(alphabet="abc", min_size=1, max_size=3)
    dtype = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64])
    numbers = st.lists(st.integers(-3, 3), max_size=3)
    tensor = st.none() | st.builds(lambda v, d: torch.tensor(v, dtype=d), numbers, dtype)
    tensors = draw(st.dictionaries(st.tuples(st.sampled_from(ROLES), leaf), tensor, max_size=6))
    facts = draw(
        st.dictionaries(st.tuples(st.sampled_from(ROLES), leaf, st.sampled_from(ASPECTS)), st.integers(0, 3), max_size=6)
    )
    return Record(tensors, facts)


def clone(source: Record) -> Record:
    return Record({k: None if v is None else v.clone() for k, v in source.tensors.items()}, dict(source.facts))


law = settings(max_examples=150, database=None, deadline=None, derandomize=True)


@law
@given(records(), st.booleans())
def test_equal_records_differ_in_nothing(reference: Record, exact: bool) -> None:
    assert judge(Evidence(reference, clone(reference), exact, U)) == Judgement([])


@law
@given(records(), st.data(), st.booleans())
def test_whatever_is_changed_in_a_record_exactly_that_is_reported(reference: Record, data: st.DataObject, exact: bool) -> None:
    """Any one entry, in any way that it can be wrong."""
    subject = clone(reference)
    places: list[Any] = [*reference.tensors, *reference.facts]
    if not places:
        return
    key = data.draw(st.sampled_from(places))
    if len(key) == 3:
        subject.facts[key] = 7
        expected: set[tuple[str, str, str]] = {(key[2], key[0], key[1])}
    else:
        kind, subject.tensors[key] = data.draw(st.sampled_from(list(other_tensors(reference.tensors[key]))))
        expected = {("state" if kind == "value" and key[0] == "rng" else kind, *key)}
    found = verdict(subject, reference, exact=exact, again=(reference, subject), nudged=(reference, reference))

    assert {(m.kind, m.role, m.leaf) for m in found} == expected
    assert len(found) == 1


@law
@given(records(), st.data())
def test_an_entry_that_only_one_side_has_is_reported(reference: Record, data: st.DataObject) -> None:
    """A leaf that is missing altogether is no leaf that agrees."""
    subject = clone(reference)
    places: list[Any] = [*reference.tensors, *reference.facts]
    if not places:
        return
    key = data.draw(st.sampled_from(places))
    gone = subject.facts.pop(key) if len(key) == 3 else subject.tensors.pop(key)
    for first, second in ((reference, subject), (subject, reference)):
        found = verdict(second, first, again=(first, second), nudged=(first, first))
        if gone is None:
            assert found == []
        else:
            assert [(m.role, m.leaf) for m in found] == [key[:2]]


@law
@given(records(), records())
def test_every_leaf_that_differs_is_reported_and_no_other(first: Record, second: Record) -> None:
    """Between any two records."""

    def differ(role: Role, leaf: str) -> bool:
        a, b = first.tensors.get((role, leaf)), second.tensors.get((role, leaf))
        facts = {k for k in (*first.facts, *second.facts) if k[:2] == (role, leaf)}
        numbers = (a is None) != (b is None) or (
            a is not None and b is not None and not (a.dtype == b.dtype and torch.equal(a, b))
        )
        return numbers or any(first.facts.get(k) != second.facts.get(k) for k in facts)

    found = verdict(second, first, again=(first, second), nudged=(first, first))
    places: set[Any] = {key[:2] for r in (first, second) for key in (*r.tensors, *r.facts)}
    structures = {(m.role, m.leaf) for m in found if m.kind == "structure"}

    reported = {(m.role, m.leaf) for m in found}
    assert reported == (structures or {place for place in places if differ(*place)})


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
