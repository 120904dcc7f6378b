"""A case runs where it is told to, and what a device keeps of its own is put back."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from gradcheck_plus.campaign.judging import truth
from gradcheck_plus.case import Case, Primal, Spec
from gradcheck_plus.execute import device, execute, reference
from gradcheck_plus.operations.device import WORKSPACE, suits_cudnn
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind, Subject

Write = Callable[..., Case]
PLAIN = reference("checkpoint")
CUBE = Primal("x0", Spec((2, 2, 3), requires_grad=True))

on_cuda = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="this torch sees no CUDA device")]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=on_cuda)])
def where(request: pytest.FixtureRequest) -> str:
    """A kind of device."""
    name: str = request.param
    return name


def subject(call: Callable[..., Any]) -> Subject:
    return Subject("mine", "checkpoint", call, "strict")


def same(first: Record, second: Record) -> bool:
    """Are two records equal in every bit?"""
    pairs = [(t, second.tensors[key]) for key, t in first.tensors.items()]
    return first.facts == second.facts and all(a is b if a is None or b is None else torch.equal(a, b) for a, b in pairs)


# where things live ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_of_a_case_lives_on_its_device(where: str, kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """But for the states of generators, which are kept on the CPU."""
    for case in drawn[kind][:40]:
        record = execute(case, reference(kind), device=where)
        kinds = {t.device.type for (role, _), t in record.tensors.items() if t is not None and role != "rng"}

        assert kinds <= {where}


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_leaves_the_same_behind_whenever_it_is_run(where: str, kind: Kind, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    """Unless torch warned that it may not."""
    for case in drawn[kind][:40]:
        first, second = (execute(case, reference(kind), device=where) for _ in range(2))

        assert first.varies or same(first, second)


# generators -------------------------------------------------------------------------------------------------------------


def test_generators_are_put_back(where: str, write: Write) -> None:
    before = {read: g.get_state() for read, g in device.generators(where).items()}
    execute(write("h0 = dropout(x0)", draws_after=3), PLAIN, device=where)

    assert all(torch.equal(g.get_state(), before[read]) for read, g in device.generators(where).items())


def test_noise_comes_from_the_generator_of_the_device_and_the_record_has_its_state(where: str, write: Write) -> None:
    quiet, noisy = (execute(write(f"h0 = {name}(x0)"), PLAIN, device=where) for name in ("sin", "dropout"))
    states = {leaf: (t, noisy.tensors[role, leaf]) for (role, leaf), t in quiet.tensors.items() if role == "rng"}
    moved = [leaf for leaf, (a, b) in states.items() if a is not None and b is not None and not torch.equal(a, b)]

    read = "torch.get_rng_state()" if where == "cpu" else "torch.cuda.get_rng_state('cuda')"
    assert moved == [f"{read} after forward", f"{read} after backward"]


def test_every_generator_is_seeded(where: str) -> None:
    with torch.random.fork_rng():
        device.seed(where, 5)
        first = [g.get_state() for g in device.generators(where).values()]
        torch.rand(3, device=where)
        device.seed(where, 5)

        assert all(map(torch.equal, first, [g.get_state() for g in device.generators(where).values()]))


def test_the_truth_has_the_noise_of_the_reference(where: str, write: Write) -> None:
    """CUDA draws the mask of dropout in one kernel with the product."""
    case = write("h0 = dropout(x0)", primals=[CUBE])
    single, double = execute(case, PLAIN, device=where), truth(case, PLAIN, where)

    assert double is not None
    one, two = single.tensors["primal", "x0.grad"], double.tensors["primal", "x0.grad"]
    assert one is not None
    assert two is not None
    assert torch.equal(one.double(), two)


# modes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_is_that_of_the_device(where: str, dtype: str, write: Write) -> None:
    seen: list[Any] = []

    def call(function: Any, *args: Any) -> Any:
        seen.append((torch.is_autocast_enabled(where), torch.get_autocast_dtype(where)))
        return function(*args)

    before = torch.is_autocast_enabled(where), torch.get_autocast_dtype(where)
    record = execute(write("h0 = linear(x0)", autocast=dtype), subject(call), device=where)

    assert seen == [(True, getattr(torch, dtype))]
    assert record.tensors["output", "outputs"].dtype == getattr(torch, dtype)  # type: ignore[union-attr]
    assert (torch.is_autocast_enabled(where), torch.get_autocast_dtype(where)) == before


def test_memory_that_was_never_written_shows(where: str, write: Write) -> None:
    def unwritten(function: Any, *args: Any) -> Any:
        output = function(*args)
        return output + torch.empty_like(output) * 0.5

    record = execute(write("h0 = sin(x0)"), subject(unwritten), device=where)

    assert record.tensors["output", "outputs"].isnan().all()  # type: ignore[union-attr]


def settings_of_cuda() -> dict[str, Any]:
    """What `device.repeatable` changes for everybody."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return {
        "legacy": (matmul.allow_tf32, cudnn.allow_tf32),
        "precision": (matmul.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision),  # type: ignore[attr-defined]
        "cudnn": (cudnn.enabled, cudnn.benchmark),
        "deterministic": (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        "fill": torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        "warns": torch.is_warn_always_enabled(),
        "workspace": os.environ.get(WORKSPACE[0]),
    }


@pytest.mark.filterwarnings("ignore:Please use the new API settings to control TF32")
@pytest.mark.parametrize("cudnn", [True, False])
def test_cuda_computes_in_one_precision_and_one_order(cudnn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a torch without CUDA can be told too."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    before = settings_of_cuda()
    found: dict[str, Any] = {}

    def interrupted() -> None:
        with device.repeatable("cuda", poison=True, cudnn=cudnn):
            found.update(settings_of_cuda())
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()

    assert found == {
        "legacy": (False, False),
        "precision": ("ieee", "ieee", "ieee"),
        "cudnn": (cudnn, False),
        "deterministic": (True, True),
        "fill": True,
        "warns": True,
        "workspace": before["workspace"] or WORKSPACE[1],
    }
    assert settings_of_cuda() == before


def test_a_cpu_is_spared_the_settings_of_cuda() -> None:
    before = settings_of_cuda()
    with device.repeatable("cpu", poison=True):
        found = settings_of_cuda()

    assert [name for name, value in found.items() if value != before[name]] == ["deterministic"]


@pytest.mark.parametrize(
    ("line", "train", "suits"), [("h0 = gru(x0)", True, True), ("h0 = gru(x0)", False, False), ("h0 = sin(x0)", False, True)]
)
def test_recurrent_layers_in_eval_mode_do_without_cudnn(write: Write, line: str, train: bool, suits: bool) -> None:
    assert suits_cudnn(write(line, primals=[CUBE], train=train)) == suits


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_recurrent_layers_have_a_backward_on_every_device(where: str, name: str, train: bool, write: Write) -> None:
    assert execute(write(f"h0 = {name}(x0)", primals=[CUBE], train=train), PLAIN, device=where).raised is None


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this torch sees no CUDA device")
@pytest.mark.parametrize("line", ["adaptive_avg_pool1d(x0)", "interpolate(x0; mode='linear')"])
def test_operations_that_add_atomically_are_warned_of(line: str, write: Write) -> None:
    wide = Primal("x0", Spec((2, 2, 4), requires_grad=True))

    assert [execute(write(f"h0 = {line}", primals=[wide]), PLAIN, device="cuda").varies for _ in range(2)] == [True, True]
