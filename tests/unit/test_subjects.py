"""Subjects: what a callable is taken for, and what a wrong one is told."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from gradcheck_plus import subjects
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute.targets import load
from gradcheck_plus.expectations import built_in
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.subjects import SUBJECTS, primary, subject


def mine(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def backward(stage_output: Any, output_grads: Any, input_values: Any) -> Any:
    return [None for _ in input_values]


class Called:
    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_built_in_subject_can_be_imported_by_its_target(name: str) -> None:
    """As a repro does."""
    entry = SUBJECTS[name]

    assert load(entry.subject.target) is entry.call
    assert entry.contract in built_in()
    assert entry.doc
    assert entry.subject.name == name
    assert entry.subject.builds_on == (entry.on or name)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_built_in_subject_is_recognised(name: str) -> None:
    """However it was handed over, it keeps its name and its contract. One that is not here says what is missing."""
    entry = SUBJECTS[name]
    if entry.missing:
        with pytest.raises(InvalidArgument, match=rf"`subject`='{name}': {entry.needs} is not installed; `pip install"):
            subject(entry.kind, entry.call)
        return

    assert subject(entry.kind, entry.call) == entry.subject
    assert subject(entry.kind, entry.call, name="other", contract="strict").builds_on == (entry.on or name)
    assert subject(entry.kind, entry.call, name="other", contract="strict").contract == "strict"


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_torchs_own_subject_to_compare_with(kind: Kind) -> None:
    assert primary(kind).kind == kind
    assert primary(kind).name.startswith("torch-")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (mine, "mine"),
        (functools.partial(mine, flag=1), "mine"),
        (functools.partial(functools.partial(mine)), "mine"),
        (Called(), "Called"),
        (lambda function, *args, **kwargs: function(*args, **kwargs), "<lambda>"),
    ],
)
def test_a_subject_is_named_as_it_names_itself(call: Callable[..., Any], name: str) -> None:
    made = subjects.checkpoint(call)

    assert (made.name, made.kind, made.contract, made.call) == (name, "checkpoint", "checkpoint", call)
    assert subjects.checkpoint(call, name="better").name == "better"


def test_a_stage_backward_has_the_contract_of_its_kind() -> None:
    assert subjects.stage_backward(backward).contract == "stage-backward"
    assert subjects.stage_backward(backward, contract="strict").contract == "strict"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (functools.partial(torch_checkpoint, use_reentrant=False), "torch-checkpoint"),
        (functools.partial(torch_checkpoint, use_reentrant=True), "torch-checkpoint-reentrant"),
        (functools.partial(torch_checkpoint, use_reentrant=False, preserve_rng_state=False), "torch-checkpoint"),
    ],
)
def test_torchs_own_checkpoint_is_recognised_by_its_arguments(call: Callable[..., Any], name: str) -> None:
    made = subjects.checkpoint(call)

    assert (made.name, made.contract, made.builds_on) == (name, SUBJECTS[name].contract, name)
    assert made.call is call


@pytest.mark.parametrize(("reentrant", "name"), [(False, "torch-checkpoint"), (True, "torch-checkpoint-reentrant")])
def test_what_calls_torchs_checkpoint_shares_its_known_faults(reentrant: bool, name: str) -> None:
    """It is still the user's own, under the user's name."""

    def wrapper(function: Any, *args: Any, **kwargs: Any) -> Any:
        return torch_checkpoint(function, *args, use_reentrant=reentrant, **kwargs)

    made = subjects.checkpoint(wrapper)

    assert (made.name, made.contract, made.builds_on) == ("wrapper", "checkpoint", name)
    assert subjects.checkpoint(mine).builds_on == ""
    assert subject("checkpoint", wrapper, probe=False).builds_on == ""


def test_looking_at_a_subject_changes_nothing() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    subjects.checkpoint(mine)

    assert torch.equal(before, torch.get_rng_state())


def test_a_subject_that_raises_says_so_in_a_case_and_not_before() -> None:
    def broken(function: Any, *args: Any) -> Any:
        raise RuntimeError("no")

    assert subjects.checkpoint(broken).builds_on == ""


@pytest.mark.parametrize(
    ("kind", "call", "said"),
    [
        ("checkpoint", 3, r"`call`=3 is of type int, not callable\. Write a callable \(function, \*args, \*\*kwargs\)\."),
        ("checkpoint", lambda: None, r"cannot be called as \(function, \*args, \*\*kwargs\): too many positional arguments"),
        ("checkpoint", lambda function, x, *, key: None, "missing a required argument: 'key'"),
        ("stage-backward", lambda output, grads: None, r"as \(stage_output, output_grads, input_values\): too many"),
        ("stage-backward", "text", "is of type str, not callable"),
        (
            "split-backward",
            abs,
            r"is of type builtin_function_or_method, not a pair\. Write two callables \(stage_outputs_or_loss",
        ),
        ("split-backward", (lambda outputs: None, print), r"cannot be called as \(stage_outputs_or_loss.*too many"),
    ],
)
def test_what_cannot_be_called_so_is_told_how(kind: Kind, call: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        subject(kind, call)


def test_a_target_is_named_in_the_error() -> None:
    with pytest.raises(InvalidArgument, match=r"`target`='package\.module:thing' is of type NoneType, not callable"):
        subject("checkpoint", None, target="package.module:thing")


def test_a_callable_without_a_signature_is_tried_as_it_is() -> None:
    assert subject("checkpoint", max, probe=False).name == "max"


def test_trying_a_subject_changes_nothing_for_anybody() -> None:
    """It is called once, to see whether it calls torch's checkpoint."""

    def careless(function: Any, *args: Any) -> Any:
        torch.manual_seed(7)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return function(*args)

    before = torch.get_rng_state()
    subjects.checkpoint(careless)

    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(torch.get_rng_state(), before)
