"""The noise of a run, put back in double precision; and the float64 truth that this makes possible."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from gradcheck_plus.campaign.judging import coarsest, truth
from gradcheck_plus.case import Case, Primal, Spec
from gradcheck_plus.execute import Tape, Unreplayable, execute, reference
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind, Subject
from gradcheck_plus.tolerance import gap, largest
from gradcheck_plus.traits import traits

Write = Callable[..., Case]
PLAIN = reference("checkpoint")
WIDE = Primal("x0", Spec((4, 4, 4), requires_grad=True))
RANDOM = [
    "dropout", "functional_dropout", "dropout1d", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "rrelu", "noise",
    "normal_noise", "gate", "gumbel_softmax", "dropout_",
]  # fmt: skip


def replayed(case: Case, kind: Kind = "checkpoint") -> tuple[Record, Record]:
    """Return plain autograd as it is, and in double precision with the same noise."""
    tape = Tape()
    single = execute(case, reference(kind), tape=tape)
    return single, execute(case, reference(kind), variant="truth", tape=tape.rewind())


@pytest.mark.parametrize("operation", RANDOM)
def test_the_truth_has_the_noise_of_the_reference(write: Write, operation: str) -> None:
    """The same mask, so that it is the truth of the same function."""
    before = ["h9 = sin(x0)"] if operation.endswith("_") else []
    case = write([*before, f"h0 = {operation}({'h9' if before else 'x0'})"], primals=[WIDE], schedule="F0F1")
    single, double = replayed(case)

    for key in (("output", "outputs"), ("output", "outputs_1"), ("primal", "x0.grad"), ("primal", "x0_1.grad")):
        one, two = single.tensors[key], double.tensors[key]
        assert one is not None
        assert two is not None
        assert two.dtype == torch.float64
        assert torch.equal(one == 0, two == 0)
        assert gap(one, two) <= 1e-5 * (1 + largest(two))


def test_without_the_tape_the_noise_is_another_one(write: Write) -> None:
    """Or the law above would say nothing: float64 draws other numbers."""
    case = write("h0 = noise(x0)", primals=[WIDE])
    single, double = execute(case, PLAIN), execute(case, PLAIN, variant="truth")

    assert gap(single.tensors["output", "outputs"], double.tensors["output", "outputs"]) > 0.1  # type: ignore[arg-type]


def test_recording_changes_nothing(write: Write) -> None:
    case = write(["h0 = dropout(x0)", "h1 = noise(h0)"])
    plain, recorded = execute(case, PLAIN), execute(case, PLAIN, tape=Tape())

    for key, tensor in plain.tensors.items():
        other = recorded.tensors[key]
        assert (tensor is None) == (other is None)
        assert tensor is None or other is None or torch.equal(tensor, other)


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_close_to_the_reference(kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """In the structure of everything; and in numbers, where float32 is all that lies between them."""
    judged = 0
    for case in drawn[kind][:150]:
        found = traits(case)
        double = truth(case, Subject("mine", kind, print, "strict"), "cpu")
        if double is None:
            assert case.program.dtype == "float64" or "reference-raises" in found, case.to_json()
            continue
        single = execute(case, reference(kind))
        assert {k for k, t in single.tensors.items() if t is not None} == {
            k for k, t in double.tensors.items() if t is not None
        }
        for (role, leaf), one in single.tensors.items():
            two = double.tensors[role, leaf]
            if one is None or two is None or not one.is_floating_point():
                continue
            assert two.dtype == torch.float64, (leaf, case.to_json())
            assert one.shape == two.shape
        if coarsest(case) == "float32" and "batch-norm" not in found:
            largest_gradient = max(map(largest, double.gradients()), default=0.0)
            for one, two in zip(single.gradients(), double.gradients(), strict=True):
                assert gap(one, two) <= 1e-2 * (1e-3 + largest_gradient), case.to_json()
            judged += 1
    assert judged > 30


def test_a_program_in_float64_has_no_truth(write: Write) -> None:
    spec = Spec((2, 3), "float64", requires_grad=True)

    assert truth(write("h0 = sin(x0)", primals=[Primal("x0", spec)], dtype="float64"), PLAIN, "cpu") is None


def test_casts_inside_the_program_are_double_too(write: Write) -> None:
    case = write(["h0 = to_bfloat16(x0)", "h1 = scale(h0; c=0.5)"], autocast="bfloat16")
    double = execute(case, PLAIN, variant="truth")

    assert {t.dtype for t in double.tensors.values() if t is not None and t.is_floating_point()} == {torch.float64}


# the tape itself --------------------------------------------------------------------------------------------------------

DRAWS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.rand(3),
    lambda: torch.randn(3),
    lambda: torch.rand_like(torch.ones(3)),
    lambda: torch.bernoulli(torch.full((3,), 0.5)),
    lambda: torch.empty(3).uniform_(),
    lambda: torch.empty(3).normal_(),
    lambda: torch.empty(3).exponential_(),
    lambda: torch.randint(0, 100, (3,)),
    lambda: torch.randperm(10),
    lambda: torch.nn.functional.dropout(torch.ones(20)),
    lambda: torch.native_dropout(torch.ones(20), 0.5, True)[0],
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_tape_puts_back_what_was_drawn(draw: Callable[[], Any]) -> None:
    torch.manual_seed(1)  # with which no two draws are equal by luck
    with Tape() as tape:
        first = [draw(), draw()]
    with tape.rewind():
        second = [draw(), draw()]

    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(*first)


def test_a_tape_that_is_at_its_end_says_so() -> None:
    with Tape() as tape:
        torch.rand(3)
    with tape.rewind():
        torch.rand(3)
        with pytest.raises(Unreplayable, match="more random operations than were recorded"):
            torch.rand(3)


def test_a_run_that_cannot_be_replayed_is_not_taken_for_a_subject_that_raises(write: Write) -> None:
    tape = Tape()
    execute(write("h0 = sin(x0)"), PLAIN, tape=tape)

    with pytest.raises(Unreplayable):
        execute(write("h0 = noise(x0)"), PLAIN, tape=tape.rewind())


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_the_dropout_that_cuda_has_is_put_back_in_double_precision(p: float) -> None:
    """It returns the mask that it drew, which its backward uses."""
    x = torch.arange(1.0, 21).requires_grad_()
    y = x.detach().double().requires_grad_()
    with Tape() as tape:
        single, mask = torch.native_dropout(x, p, train=True)
    with tape.rewind():
        double, again = torch.native_dropout(y, p, train=True)
    for out in (single, double):
        out.backward(torch.ones_like(out))

    assert double.dtype == torch.float64
    assert torch.equal(mask, again)
    assert torch.allclose(single.double(), double)
    assert torch.allclose(x.grad.double(), y.grad)  # type: ignore[union-attr,arg-type]


def test_dropout_that_is_off_draws_nothing() -> None:
    with Tape() as tape:
        torch.native_dropout(torch.ones(3), 0.5, train=False)

    assert not tape.noise


#: Kernels of CUDA that draw and compute at once: of attention, and of cuDNN's recurrent layers.
FUSED = {
    "_scaled_dot_product_efficient_attention": "dropout_p",
    "_scaled_dot_product_flash_attention": "dropout_p",
    "_scaled_dot_product_cudnn_attention": "dropout_p",
    "_cudnn_rnn": "dropout",
}


@pytest.mark.parametrize(("name", "probability"), FUSED.items())
def test_a_kernel_that_draws_and_computes_at_once_ends_the_recording(name: str, probability: str) -> None:
    """Another one would run in double precision, and take the noise of something else for its own."""
    schema = getattr(torch.ops.aten, name).default._schema
    args = [0.5 if a.name == probability else None for a in schema.arguments if not a.kwarg_only]

    class Kernel:
        tags = (torch.Tag.nondeterministic_seeded,)
        _schema = schema

        def __call__(self, *args: Any, **kwargs: Any) -> str:
            return "ran"

    tape, off = Tape(), [0.0 if a == 0.5 else a for a in args]
    assert tape.__torch_dispatch__(Kernel(), (), off) == "ran"
    with pytest.raises(Unreplayable):
        tape.__torch_dispatch__(Kernel(), (), args)
