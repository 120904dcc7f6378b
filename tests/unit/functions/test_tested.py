"""What is taken for a function and a sample call, and what is refused, with one clear error."""

import functools
from typing import Any

import pytest
import torch

import gradcheck_plus as gp
from gradcheck_plus.case import Call, Variation
from gradcheck_plus.functions import judging
from gradcheck_plus.functions.drawn import decode, encode
from gradcheck_plus.functions.tested import sample_of
from gradcheck_plus.zoo.function_faults import Square, vector


def test_a_function_is_taken_as_class_as_apply_or_as_any_callable() -> None:
    for op in (Square, Square.apply, functools.partial(Square.apply)):
        assert judging.Tested(op, None, vector).judge(Call("values")).name == "match"


def test_arguments_are_named_as_the_function_names_them() -> None:
    sample = sample_of(torch.nn.Linear(2, 3), [torch.ones(4, 2)])
    assert [a.name for a in sample.arguments] == ["input", "params['weight']", "params['bias']"]

    sample = sample_of(Square, {"x": [torch.ones(2), {"k": torch.ones(1)}]})
    assert [a.name for a in sample.arguments] == ["x[0]", "x['k']"] or [a.name for a in sample.arguments] == [
        "x[0]",
        "x[1]['k']",
    ]


def test_a_module_s_parameters_have_gradients_that_are_checked() -> None:
    class Halved(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) - self.weight.detach().sum() + self.weight.sum().detach()

    assert judging.Tested(torch.nn.Linear(2, 3), None, [torch.ones(4, 2)]).judge(Call("values")).name == "match"
    (wrong,) = judging.Tested(Halved(2, 3), None, [torch.ones(4, 2)]).judge(Call("values")).mismatches or (None,)
    assert wrong is None or wrong.leaf == "params['weight']"


@pytest.mark.parametrize(
    ("op", "inputs", "said"),
    [
        (3, vector, "`op`=3 is of type int, not a function"),
        (torch.nn.Linear, vector, "is a class, not a function"),
        (torch.sin, [], "has no floating tensor"),
        (torch.sin, [torch.ones(2, dtype=torch.int64)], "has no floating tensor"),
        (torch.sin, lambda: 1 / 0, "raises ZeroDivisionError"),
        (torch.sin, 3, "gives a value of type int"),
        (torch.sin, None, "does not say what to call it with"),
        (torch.mm, [torch.ones(2, 3), torch.ones(2, 3)], "is refused by mm: RuntimeError"),
        (lambda x: x.detach(), vector, "nothing to differentiate"),
    ],
)
def test_a_wrong_call_gives_one_clear_error(op: Any, inputs: Any, said: str) -> None:
    with pytest.raises(gp.InvalidArgument, match=said.replace("(", r"\(")) as raised:
        judging.Tested(op, None, inputs)
    assert "Write" in str(raised.value)


def test_a_reference_that_refuses_the_sample_call_is_a_wrong_call() -> None:
    with pytest.raises(gp.InvalidArgument, match="`reference`=mm refuses the sample call"):
        judging.Tested(torch.sin, torch.mm, vector)


def test_a_sample_call_without_inputs_is_square_matrices() -> None:
    assert [a.value.shape for a in sample_of(lambda x, w: x @ w, None).arguments] == [(3, 3), (3, 3)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64, torch.bool, torch.int64])
def test_a_drawn_sample_call_survives_json(dtype: torch.dtype) -> None:
    given = torch.tensor([[1, 0, 1]]).to(dtype)
    ((got, empty), rest) = decode(encode(([given, torch.ones(0, 2)], {"k": (1.5, None, "a")})))

    assert torch.equal(got, given)
    assert got.dtype == dtype
    assert empty.shape == (0, 2)
    assert rest == {"k": (1.5, None, "a")}


def test_what_no_file_can_hold_is_refused() -> None:
    with pytest.raises(gp.InvalidArgument, match="type object, which no file can hold"):
        encode([object()])


def test_a_variation_that_the_reference_refuses_is_not_a_case() -> None:
    tested = judging.Tested(
        lambda x, w: x * w.sum(), lambda x, w: x @ w @ w.T / w.T.shape[0] if x.shape[0] == 3 else 1 / 0, None
    )
    judged = tested.judge(Call("values", (Variation("size-one", 0, 0),)))

    assert judged.name == "refused"
    assert "the reference raises" in judged.reason


def test_the_same_case_gets_the_same_verdict() -> None:
    call = Call("values", (Variation("tied-values", 0, 1), Variation("transposed-result", 0, 0)))
    first, second = (judging.Tested(torch.nn.functional.gelu, None, [torch.ones(2, 3)]).judge(call) for _ in range(2))

    assert first == second
