"""Running a case as a pipeline whose backwards come in two passes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
import torch

from gradcheck_plus import support
from gradcheck_plus.case import Case, Environment
from gradcheck_plus.case.environment import Delay
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.subject import Kind, Subject
from gradcheck_plus.traits import traits

plain_backward_input: Callable[..., Any] = support.plain_backward_input
plain_backward_weight: Callable[..., Any] = support.plain_backward_weight


def pair(first: Callable[..., Any], second: Callable[..., Any] = plain_backward_weight) -> Subject:
    return Subject("mine", "split-backward", (first, second), "strict")


def passes(case: Case) -> list[str]:
    """Return the passes in the order in which they run: of a second one, the number of the first one that it belongs to."""
    ran: list[str] = []

    def first(outputs: Any, grads: Any, inputs: Any, weights: Any) -> Any:
        found, groups = plain_backward_input(outputs, grads, inputs, weights)
        ran.append("I")
        return found, [groups[0] | {"number": ran.count("I") - 1}]

    def second(weights: Any, groups: Any) -> None:
        ran.append(str(groups[0]["number"]))
        plain_backward_weight(weights, groups)

    assert execute(case, pair(first, second)).raised is None
    return ran


@pytest.mark.parametrize(
    ("weights", "order"),
    [("", "I0I1I2I3"), ("forward", "II01II23"), ("end", "IIII0123"), ("reversed", "IIII3210"), ("stages", "IIII0213")],
)
def test_a_case_says_when_second_passes_run(weights: Delay, order: str, staged: Case) -> None:
    case = msgspec.structs.replace(staged, environment=msgspec.structs.replace(staged.environment, weights=weights))

    assert "".join(passes(case)) == order


@pytest.fixture
def staged(drawn: Mapping[Kind, Sequence[Case]]) -> Case:
    """The first drawn case of two stages and two forwards with nothing else around it."""
    without = {"region-without-grad-input", "none-cotangent", "zero-cotangent", "off-input-path", "integer-input"}
    every = (c for c in drawn["split-backward"] if len(c.program.segments) == 2 and c.environment.schedule == "FF01")
    case = next(c for c in every if not without & traits(c))
    return msgspec.structs.replace(case, environment=Environment(schedule="FF01"))


def test_a_gradient_that_changes_after_it_was_returned_is_seen_as_it_is_in_the_end(staged: Case) -> None:
    sent: list[torch.Tensor] = []

    def first(*args: Any) -> Any:
        for gradient in sent:
            gradient.zero_()
        found, groups = plain_backward_input(*args)
        own = tuple(None if g is None else g.clone() for g in found)
        sent.extend(g for g in own if g is not None)
        return own, groups

    plain, record = execute(staged, reference("split-backward")), execute(staged, pair(first))

    def differs(key: Any, gradient: torch.Tensor | None) -> bool:
        expected = plain.tensors[key]
        return gradient is not None and expected is not None and not torch.equal(gradient, expected)

    assert any(differs(key, gradient) for key, gradient in record.tensors.items() if key[0] == "primal")


def test_what_is_switched_off_on_an_input_of_a_stage_is_seen(staged: Case) -> None:
    def first(outputs: Any, grads: Any, inputs: Any, weights: Any) -> Any:
        found = plain_backward_input(outputs, grads, inputs, weights)
        for value in inputs:
            if isinstance(value, torch.Tensor) and value.is_leaf and value.is_floating_point():
                value.requires_grad_(False)
        return found

    flags = {key: value for key, value in execute(staged, pair(first)).facts.items() if key[2] == "requires-grad"}

    assert {value for (role, leaf, _), value in flags.items() if role == "input" and leaf.startswith("stage")} == {False}


def test_what_is_no_pair_of_gradients_and_groups_is_said_in_the_record(staged: Case) -> None:
    record = execute(staged, pair(lambda *args: None))

    assert ("primal", "stage1.gradients", "structure") in record.facts
    assert record.facts["primal", "stage1.gradients", "structure"] == "NoneType"


def test_parameters_can_be_listed_in_reverse_and_an_input_twice(staged: Case) -> None:
    seen: list[tuple[list[Any], list[Any]]] = []

    def first(outputs: Any, grads: Any, inputs: Any, weights: Any) -> Any:
        weights = list(weights)
        seen.append((list(map(id, inputs)), [tuple(w.shape) for w in weights]))
        return plain_backward_input(outputs, grads, inputs, weights)

    e = msgspec.structs.replace(staged.environment, reversed_parameters=True, repeated_input=True)
    execute(staged, pair(first))
    execute(msgspec.structs.replace(staged, environment=e), pair(first))

    before, after = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert [weights[::-1] for _, weights in before] == [weights for _, weights in after]
    assert all(
        inputs[-1] == inputs[0] and len(inputs) == len(old) + 1 for (old, _), (inputs, _) in zip(before, after, strict=True)
    )
