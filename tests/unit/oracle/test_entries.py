"""Any entry of a record that differs is reported, and no other: the oracle has no hole."""

import math
from collections.abc import Callable, Iterator
from typing import Any, get_args

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradcheck_plus.mismatch import Mismatch, Role
from gradcheck_plus.oracle import Evidence, Judgement, judge
from gradcheck_plus.record import Aspect, Record

Verdict = Callable[..., list[Mismatch]]

U = 2.0**-24
ROLES: tuple[Role, ...] = get_args(Role)
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


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
def test_whatever_is_changed_in_a_record_exactly_that_is_reported(
    verdict: Verdict, reference: Record, data: st.DataObject, exact: bool
) -> None:
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
def test_an_entry_that_only_one_side_has_is_reported(verdict: Verdict, reference: Record, data: st.DataObject) -> None:
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
def test_every_leaf_that_differs_is_reported_and_no_other(verdict: Verdict, first: Record, second: Record) -> None:
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
