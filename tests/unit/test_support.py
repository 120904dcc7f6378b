"""What printed programs use: values that are the same on every machine, and correct Functions."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from gradcheck_plus import support as printed

#: It has no annotations: it is printed into repros, which a person reads.
support: Any = printed

#: Up to 64 elements, which is the most that drawn values have.
SHAPES = ((), (1,), (3,), (2, 3), (2, 2, 4), (2, 3, 2, 2), (4, 2), (8, 8), (64,))
EMPTY = ((0,), (0, 3), (2, 0))
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

some = settings(max_examples=100, database=None, deadline=None, derandomize=True)
seeds = st.integers(0, 1000)


@some
@given(st.sampled_from(SHAPES), seeds)
def test_values_are_distinct_and_never_zero(shape: tuple[int, ...], seed: int) -> None:
    """Nor large: a gradient that is lost, doubled or handed to another leaf then shows."""
    found = support.values(shape, seed).flatten().tolist()

    assert len(set(found)) == len(found) == math.prod(shape)
    assert all(0 < abs(value) < 2 for value in found)


@some
@given(st.sampled_from((*SHAPES, *EMPTY)), seeds)
def test_values_are_what_pure_python_computes(shape: tuple[int, ...], seed: int) -> None:
    """Integer arithmetic and one division by a power of two: no processor rounds any of it."""
    expected = [((i * (2 * i + 2 * seed + 29) + 17 * seed) % 64 * 2 - 63) / 32 for i in range(math.prod(shape))]
    found = support.values(shape, seed)

    assert found.flatten().tolist() == expected
    assert tuple(found.shape) == shape


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_exact_in_every_floating_dtype(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """And so are those that primals with other fills are made of."""
    for seed in range(20):
        full, low = support.values(shape, seed, torch.float64), support.values(shape, seed, dtype)
        assert low.dtype == dtype
        assert torch.equal(low.double(), full)
        assert torch.equal((low * 64).double(), full * 64)
        assert torch.equal((low / 1024).double(), full / 1024)


def test_another_seed_gives_other_values() -> None:
    """A seed is given to each primal, parameter, cotangent, forward and backward of a case."""
    made = [tuple(support.values((2, 3), seed).flatten().tolist()) for seed in range(32)]

    assert len(set(made)) == len(made)


def test_values_are_new_memory_each_time() -> None:
    first, second = support.values((2, 3), 1), support.values((2, 3), 1)
    first.zero_()

    assert second.count_nonzero() == 6


@some
@given(st.sampled_from(SHAPES), seeds)
def test_integers_are_small_and_not_negative(shape: tuple[int, ...], seed: int) -> None:
    """As indices must be."""
    found = support.integers(shape, seed)

    assert found.dtype == torch.int64
    assert bool(((found >= 0) & (found < 6)).all())
    assert torch.equal(support.integers(shape, seed, torch.bool), found != 0)


def test_integers_have_zeros_and_repeats() -> None:
    """An index twice is a gradient that is summed."""
    assert all(len(set(support.integers((8,), seed).tolist())) < 8 for seed in range(64))
    assert any(0 in support.integers((3,), seed) for seed in range(64))


@some
@given(st.sampled_from((*SHAPES, *EMPTY)), seeds)
def test_one_hot_is_one_in_one_place(shape: tuple[int, ...], seed: int) -> None:
    found = support.one_hot(shape, seed)

    assert sorted(set(found.flatten().tolist())) in ([], [1.0], [0.0, 1.0])
    assert float(found.sum()) == (1 if found.numel() else 0)


@pytest.mark.parametrize("make", [support.values, support.one_hot])
def test_the_dtype_is_float32_unless_another_is_asked_for(make: Any) -> None:
    """Whatever torch's default dtype is."""
    torch.set_default_dtype(torch.float64)
    try:
        assert make((2,), 1).dtype == torch.float32
        assert make((2,), 1, torch.float16).dtype == torch.float16
    finally:
        torch.set_default_dtype(torch.float32)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3).bfloat16())


def test_fill_gives_every_parameter_the_same_values_every_time() -> None:
    first, second = model(), model()
    support.fill(first)
    support.fill(second)

    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.count_nonzero() == one.numel()
    assert len({tuple(p.flatten().tolist()) for p in first.parameters()}) == len(list(first.parameters()))


def test_fill_keeps_dtypes_buffers_and_the_generator() -> None:
    module = model()
    before, state = {n: b.clone() for n, b in module.named_buffers()}, torch.get_rng_state()
    support.fill(module)

    assert {p.dtype for p in module.parameters()} == {torch.float32, torch.bfloat16}
    assert all(p.requires_grad and p.grad is None for p in module.parameters())
    assert all(torch.equal(b, before[n]) for n, b in module.named_buffers())
    assert torch.equal(torch.get_rng_state(), state)


def test_draw_moves_the_generator_as_that_many_numbers_do() -> None:
    torch.manual_seed(5)
    support.draw(3)
    moved = torch.get_rng_state()
    torch.manual_seed(5)
    torch.rand(3)

    assert torch.equal(moved, torch.get_rng_state())


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(support.Swish.apply, id="Swish"),
        pytest.param(lambda x: support.PowerPair.apply(x, x.cos()), id="PowerPair"),
        pytest.param(lambda x: support.PowerPair.apply(x.cos(), x)[1], id="PowerPair: second"),
        pytest.param(lambda x: support.ExpAndIndex.apply(x)[0], id="ExpAndIndex"),
    ],
)
def test_the_functions_are_correct(function: Any) -> None:
    """As torch's own gradcheck sees it."""
    x = support.values((2, 3), 1, torch.float64).requires_grad_()

    assert torch.autograd.gradcheck(function, (x,))


def test_the_index_of_the_largest_element_is_not_differentiable() -> None:
    _, index = support.ExpAndIndex.apply(support.values((2, 3), 1).requires_grad_())

    assert (index.dtype, index.requires_grad) == (torch.int64, False)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_containers_hold_what_they_are_given(count: int) -> None:
    named, data = getattr(support, f"Named{count}")(*range(count)), getattr(support, f"Data{count}")(*range(count))

    assert [getattr(named, field) for field in named._fields] == list(range(count))
    assert [getattr(data, field) for field in named._fields] == list(range(count))


# plain autograd in the place of a stage backward ------------------------------------------------------------------------


def stage() -> tuple[Tensor, Tensor, Tensor]:
    """Two inputs and an output of a stage: x * w + sin(x)."""
    x, w = (support.values((2, 3), seed).requires_grad_() for seed in (1, 2))
    return x, w, x * w + x.sin()


def test_a_plain_stage_backward_returns_the_gradients_of_its_inputs_and_clears_them() -> None:
    x, w, output = stage()
    cotangent = support.values((2, 3), 11)
    expected = torch.autograd.grad(output, (x, w), cotangent, retain_graph=True)
    found = support.plain_stage_backward((output,), (cotangent,), [x, 3, w, support.integers((3,), 1)])

    assert [None if g is None else g.tolist() for g in found] == [expected[0].tolist(), None, expected[1].tolist(), None]
    assert x.grad is None
    assert w.grad is None


@pytest.mark.parametrize("nested", list(itertools.product(("tuple", "list", "dict"), repeat=2)), ids="-".join)
def test_a_plain_stage_backward_finds_tensors_in_nested_outputs(nested: tuple[str, str]) -> None:
    """Whatever the order of the keys of a dict."""

    def hold(kind: str, first: Any, second: Any, *, flip: bool = False) -> Any:
        if kind == "dict":
            return {"b": second, "a": first} if flip else {"a": first, "b": second}
        return (first, second) if kind == "tuple" else [first, second]

    outer, inner = nested
    x, w, output = stage()
    cotangents = [support.values((2, 3), seed) for seed in (11, 12)]
    other = w.exp()
    expected = torch.autograd.grad((output, other), (x, w), cotangents, retain_graph=True)
    outputs = hold(outer, None, hold(inner, output, other))
    grads = hold(outer, None, hold(inner, *cotangents, flip=True), flip=True)
    found = support.plain_stage_backward(outputs, grads, [x, w])

    assert all(torch.equal(g, e) for g, e in zip(found, expected, strict=True))


def test_what_receives_nothing_sends_nothing_back() -> None:
    """`None` for an output is no gradient, also where the output has but one element."""
    x = support.values((), 1).requires_grad_()
    [found] = support.plain_stage_backward((x * 3,), (None,), [x])

    assert found is None


@pytest.mark.parametrize("nothing", [None, "zero"])
def test_a_total_is_the_sum_of_what_arrives(nothing: Any) -> None:
    one, two = torch.ones(2), torch.full((2,), 2.0)

    assert support.total([None, None], nothing) is nothing
    assert support.total([None, one], nothing) is one
    assert support.total([one, None, two], nothing).tolist() == [3, 3]
