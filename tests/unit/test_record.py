"""What a run left behind, as things that can be compared one by one."""

import collections
import dataclasses
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcheck_plus import support
from gradcheck_plus.record import Record, flatten, storage


class Pair(NamedTuple):
    left: Any
    right: Any


class Other(NamedTuple):
    left: Any
    right: Any


class Rows(list[Any]):
    """A list by another name."""


@dataclasses.dataclass
class Box:
    content: Any


class Opaque:
    """Neither a container nor a plain value."""


T = torch.ones(2)


@pytest.mark.parametrize(
    ("value", "structure"),
    [
        (T, "tensor"),
        (None, "None"),
        (3, "3"),
        ("it's", '"it\'s"'),
        (True, "True"),
        ((), "()"),
        ([], "[]"),
        ({}, "{}"),
        ((T,), "(tensor)"),
        ([T, (T, None)], "[tensor, (tensor, None)]"),
        ({"b": T, "a": [1]}, "{'a': [1], 'b': tensor}"),
        (Pair(T, 0.5), "Pair(left=tensor, right=0.5)"),
        (Box({"a": T}), "Box(content={'a': tensor})"),
        (Rows([T]), "Rows(tensor)"),
        (Opaque(), "Opaque"),
        (torch.float32, "dtype"),
    ],
)
def test_the_structure_is_text(value: Any, structure: str) -> None:
    assert flatten(value)[0] == structure


DIFFERENT: list[Any] = [
    T, None, 1, 1.0, True, "1", (), (T,), [T], {"a": T}, {"b": T}, {1: T}, {"1": T}, Pair(T, T), Other(T, T), (T, T), [T, T],
    Box(T), Box([T]), Rows([T]), (T, None), (None, T), ((T,),), [(T,)], support.Named1(T), support.Data1(T), Opaque(),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(DIFFERENT)))
def test_values_that_differ_in_more_than_numbers_have_different_structures(number: int) -> None:
    """1 is not True and a tuple is no list: a subject that returns the other one is told."""
    structure = flatten(DIFFERENT[number])[0]

    assert [other for other in DIFFERENT if flatten(other)[0] == structure] == [DIFFERENT[number]]


def values() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from([None, 1, 0.5, "text"]) | st.builds(torch.zeros, st.sampled_from([(), (2,)]))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3),
            st.builds(Pair, inner, inner),
            st.builds(Box, inner),
        ),
        max_leaves=8,
    )


some = settings(max_examples=150, database=None, deadline=None, derandomize=True)


@some
@given(values())
def test_the_path_of_a_leaf_is_code_that_reaches_it(value: Any) -> None:
    for path, leaf in flatten(value, "value")[1]:
        assert eval(path, {"value": value}) is leaf


@some
@given(values())
def test_no_tensor_is_passed_over(value: Any) -> None:
    """However deep it lies."""

    def count(part: Any) -> int:
        if isinstance(part, dict):
            return sum(map(count, part.values()))
        if isinstance(part, list | tuple):
            return sum(map(count, part))
        return count(part.content) if isinstance(part, Box) else isinstance(part, torch.Tensor)

    structure, leaves = flatten(value)
    assert sum(isinstance(leaf, torch.Tensor) for _, leaf in leaves) == count(value)
    assert structure.replace("'text'", "").count("tensor") == count(value)


@some
@given(st.dictionaries(st.text(max_size=3), st.none() | st.integers(), max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_a_dict_is_no_part_of_it(value: dict[str, Any], random: Any) -> None:
    shuffled = list(value.items())
    random.shuffle(shuffled)

    assert flatten(dict(shuffled)) == flatten(value)


def test_dicts_of_every_sort_are_dicts() -> None:
    assert flatten(collections.OrderedDict(b=T, a=T))[0] == flatten({"a": T, "b": T})[0]


def test_keys_of_several_types_do_not_stop_the_comparison() -> None:
    assert flatten({1: T, "a": T, None: T, (1, 2): T})[0].count("tensor") == 4


# records ----------------------------------------------------------------------------------------------------------------


def test_an_output_is_kept_as_it_is_now() -> None:
    """What changes in place afterwards does not change the record."""
    record, output = Record(), torch.ones(2, requires_grad=True) * 1
    leaves = record.keep_output("outputs", 0, {"a": (output, None)}, {})
    output.data.zero_()

    assert leaves == {"['a'][0]": output, "['a'][1]": None}
    kept = record.tensors["output", "outputs['a'][0]"]
    assert kept is not None
    assert (kept.tolist(), kept.requires_grad) == ([1, 1], False)
    assert record.facts["output", "outputs", "structure"] == "{'a': (tensor, None)}"
    assert record.facts["output", "outputs['a'][0]", "requires-grad"] is True
    assert record.places == {"outputs['a'][0]": (0, "['a'][0]")}


def test_an_output_that_lies_in_the_memory_of_an_input_names_it() -> None:
    record, one, two = Record(), torch.ones(2, 3), torch.ones(2, 3)
    inputs = {storage(one): "x0", storage(two): "x1"}
    record.keep_output("outputs", 0, [one, two[0], two.T, one * 1, one[:0]], inputs)

    aliases = [record.facts["output", f"outputs[{i}]", "alias"] for i in range(5)]
    assert aliases == ["x0", "x1", "x1", "nothing", "x0"]


def test_a_record_is_vacuous_without_a_gradient_that_is_not_zero() -> None:
    assert Record().vacuous
    assert Record({("primal", "x0.grad"): None, ("parameter", "p.grad"): torch.zeros(2)}).vacuous
    assert Record({("output", "outputs"): torch.ones(2), ("buffer", "b"): torch.ones(2)}).vacuous
    assert not Record({("primal", "x0.grad"): torch.zeros(2), ("parameter", "p.grad"): torch.tensor([0, 1.0])}).vacuous
    assert not Record({("primal", "x0.grad"): torch.tensor([float("nan")])}).vacuous


def test_the_gradients_of_a_record_are_those_of_primals_and_parameters() -> None:
    one, two = torch.ones(1), torch.ones(2)
    record = Record({
        ("output", "outputs"): torch.ones(3), ("primal", "x0.grad"): one, ("primal", "x1.grad"): None, ("parameter", "p"): two,
    })  # fmt: skip

    assert [g is t for g, t in zip(record.gradients(), (one, two), strict=True)] == [True, True]


def test_a_gradient_that_was_there_before_did_not_come() -> None:
    """Or a case in which no backward ran would count as judged."""
    grad = torch.ones(2)
    untouched, added = (
        Record(tensors={("primal", "x0.grad"): g}, before={("primal", "x0.grad"): grad}) for g in (grad, grad * 2)
    )

    assert untouched.vacuous
    assert not added.vacuous
