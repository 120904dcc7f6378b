"""One case under one subject: run, gather evidence, judge, ask the contract."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from gradcheck_plus.campaign.judging import Verdict, coarsest, decide
from gradcheck_plus.case import Case, Cotangent, Environment, Name, Parameter, Primal, Spec
from gradcheck_plus.expectations import Contract, Expectation, contract
from gradcheck_plus.subject import Subject
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS, traits

Write = Callable[..., Case]
STRICT = contract("strict")
GRAD = Spec((2, 3), requires_grad=True)


def mine(call: Callable[..., Any]) -> Subject:
    return Subject("mine", "checkpoint", call, "strict")


def plain(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def doubled(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return outputs whose gradients are twice as large."""
    output = function(*args, **kwargs)
    return output * 2 - output.detach()


def refusing(*_: Any, **__: Any) -> Any:
    raise TypeError("no keyword arguments")


def excusing(**fields: Any) -> Contract:
    return Contract("mine", "", (Expectation(**{"trait": "dropout", "effect": "limit", "source": "a document", **fields}),))


def test_a_subject_that_is_right_matches(write: Write) -> None:
    case = write("h0 = dropout(x0)")
    verdict = decide(case, mine(plain), STRICT)

    assert verdict == Verdict("match", traits(case))
    assert verdict.judged == {"dropout"} | traits(case)


def test_a_trait_that_excuses_a_side_effect_is_judged_and_one_that_excuses_a_gradient_is_not(write: Write) -> None:
    """The gradients of the first case have been compared."""
    statistics = write("h0 = batch_norm(x0)")
    checkpoint = SUBJECTS["torch-checkpoint"].subject
    beside = decide(statistics, checkpoint, contract("checkpoint"))
    wrong = decide(write("h0 = dropout(x0)"), mine(doubled), excusing(kind=("value",), role=("primal",)))

    assert {m.role for m, _ in beside.excused} == {"buffer"}
    assert "batch-norm" in beside.judged
    assert {m.role for m, _ in wrong.excused} == {"primal"}
    assert "dropout" not in wrong.judged


def test_emptiness_on_purpose_is_seen_wherever_it_is_passed(write: Write) -> None:
    """To a segment that no checkpoint wraps, too."""
    empty = Primal("x0", Spec((0, 3), requires_grad=True))
    case = write("h0 = sin(x0)", "h1 = tanh(h0)", primals=[empty], changes={0: {"region": False}})

    assert not decide(case, mine(plain), STRICT).vacuous


def test_a_subject_that_is_wrong_has_faults(write: Write) -> None:
    verdict = decide(write("h0 = sin(x0)"), mine(doubled), STRICT)

    assert verdict.name == "fault"
    assert [(m.kind, m.role) for m in verdict.faults] == [("value", "primal")]
    assert verdict.rule == "bitwise"


def test_plain_autograd_may_not_raise_unannounced(write: Write) -> None:
    """Then the case says nothing of the subject, and is counted as a mistake of ours."""
    case = write("h0 = sin(x0)", cotangents=[])
    [segment] = case.program.segments
    broken = replace(case, program=replace(case.program, segments=(replace(segment, output=Name("nowhere")),)))
    verdict = decide(replace(broken, primals=(*case.primals, Primal("nowhere", GRAD, 2))), mine(refusing), STRICT)

    assert verdict.name == "invalid"
    assert verdict.reason.startswith("forward: NameError")
    assert verdict.judged == frozenset()


def test_where_plain_autograd_raises_the_subject_must_raise_too(write: Write) -> None:
    case = write("h0 = square_linear(x0)", changes_parameter=True)

    assert decide(case, mine(plain), STRICT).name == "match"
    assert decide(case, mine(refusing), STRICT).name == "match"
    [fault] = decide(case, SUBJECTS["torch-checkpoint"].subject, STRICT).faults
    assert fault.kind == "not-raised"


def test_a_subject_that_refuses_what_it_may_is_not_judged(write: Write) -> None:
    case = write("h0 = dropout(x0)")
    verdict = decide(case, mine(refusing), excusing(effect="refuses"))

    assert verdict.name == "refused"
    assert [m.kind for m, _ in verdict.excused] == ["raises"]
    assert verdict.judged == frozenset()


def test_who_does_not_refuse_must_be_right(write: Write) -> None:
    case = write("h0 = dropout(x0)")

    assert decide(case, mine(plain), excusing(effect="refuses")).name == "match"
    assert decide(case, mine(doubled), excusing(effect="refuses")).name == "fault"


def test_only_the_matching_mismatch_is_excused(write: Write) -> None:
    """Never the whole case; and of an excused trait nothing was learnt."""

    def faulty(function: Any, *args: Any) -> Any:
        torch.rand(1)
        return doubled(function, *args)

    case = write("h0 = swish(x0)")
    verdict = decide(case, mine(faulty), excusing(trait="custom-function", kind=("state",)))

    assert {m.kind for m, _ in verdict.excused} == {"state"}
    assert {m.kind for m in verdict.faults} == {"value"}
    assert "custom-function" not in decide(case, mine(faulty), excusing(trait="custom-function")).judged


def test_a_case_without_a_gradient_that_is_not_zero_is_vacuous(write: Write) -> None:
    """Unless it is so on purpose."""
    vacuous = write(["h0 = sub(x0, x0)", "h1 = mul(h0, h0)"])
    quiet = replace(vacuous, primals=(replace(vacuous.primals[0], fill="zero"),))

    assert decide(vacuous, mine(plain), STRICT).vacuous
    assert decide(vacuous, mine(plain), STRICT).judged == frozenset()
    assert not decide(quiet, mine(plain), STRICT).vacuous
    assert TRAITS["special-values"].quiet


def test_where_bits_need_not_be_equal_rounding_is_no_fault(write: Write) -> None:
    """A gradient that is summed in another order, and in float64 as well as in float32."""

    def reordered(function: Any, *args: Any) -> Any:
        output = function(*args)
        return output + (output * 3 - output.detach() * 3) * 0.1 - (output * 0.3 - output.detach() * 0.3)

    for dtype, rule in (("float32", "budget"), ("float64", "nudged")):
        case = write(
            "h0 = sin(x0)", "h1 = mul(x0, x0)", primals=[Primal("x0", Spec((2, 3), dtype, requires_grad=True))], dtype=dtype
        )
        assert "summed-across-cut" in traits(case)
        verdict = decide(case, mine(reordered), STRICT)
        assert [m for m in verdict.faults if m.role == "primal"] == []
        assert verdict.rule == rule
        assert [m.role for m in decide(case, mine(doubled), STRICT).faults] == ["primal"]


def test_a_contract_may_say_that_equal_bits_are_not_due(write: Write) -> None:
    def off(function: Any, *args: Any) -> Any:
        output = function(*args)
        return output * (1 + 2.0**-23) - output.detach() * 2.0**-23

    case = write("h0 = sin(x0)")

    assert any(m.role == "primal" for m in decide(case, mine(off), STRICT).faults)
    assert not any(m.role == "primal" for m in decide(case, mine(off), replace(STRICT, equal_bits=False)).faults)


def test_a_subject_that_does_not_repeat_itself_is_told_so(write: Write) -> None:
    count = iter(range(100))

    def drifting(function: Any, *args: Any) -> Any:
        output = function(*args)
        factor = 2.0 + next(count)
        return output * factor - output.detach() * (factor - 1)

    assert [m.kind for m in decide(write("h0 = sin(x0)"), mine(drifting), STRICT).faults] == ["not-repeatable"]


@pytest.mark.parametrize("name", ["identity", "torch-checkpoint", "torch-save-on-cpu", "torch-stage-backward"])
def test_the_built_in_subjects_keep_their_contracts(name: str, drawn: Mapping[Any, Sequence[Case]]) -> None:
    subject = SUBJECTS[name].subject
    mine = contract(subject.contract).for_subject(name, torch=torch.__version__, known=True)
    for case in drawn[subject.kind][:100]:
        assert decide(case, subject, mine).name in ("match", "refused"), case.to_json()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "float32"),
        ({"environment": Environment(autocast="bfloat16")}, "bfloat16"),
        ({"environment": Environment(autocast="float16")}, "float16"),
        ({"primals": (Primal("x0", GRAD), Primal("x1", Spec((2,), "bfloat16")))}, "bfloat16"),
        ({"primals": (Primal("x0", GRAD), Primal("x1", Spec((2,), "int64")), Primal("x2", Spec((), "python")))}, "float32"),
    ],
)
def test_the_coarsest_dtype_is_the_least_precise_one_in_play(write: Write, changes: dict[str, Any], expected: str) -> None:
    assert coarsest(replace(write("h0 = sin(x0)"), **changes)) == expected


def test_a_cast_inside_counts_too(write: Write) -> None:
    double = [Primal("x0", Spec((2, 3), "float64", requires_grad=True))]

    assert coarsest(write("h0 = to_bfloat16(x0)")) == "bfloat16"
    assert coarsest(write("h0 = sin(x0)", primals=double, dtype="float64")) == "float64"
    assert coarsest(write("h0 = to_float32(x0)", primals=double, dtype="float64")) == "float32"


def test_a_case_needs_no_cotangent_and_no_parameter(write: Write) -> None:
    case = write("h0 = sin(x0)", parameters=[Parameter("p0", (3,), 0)], cotangents=[])

    assert decide(case, mine(plain), STRICT).name == "match"
    assert decide(replace(case, cotangents=(Cotangent(0, "[7]"),)), mine(plain), STRICT).name == "match"


def test_what_a_limit_excuses_wholesale_is_not_judged(write: Write) -> None:
    """A block that trains without gradients must not be called safe, though its checkpoint documents that."""
    verdict = decide(write(["h0 = dropout(x0)"]), mine(doubled), excusing(effect="limit"))

    assert verdict.name == "refused"
    assert verdict.judged == frozenset()
