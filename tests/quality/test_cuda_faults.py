"""Faults that only a GPU shows are found there, and are none on a CPU."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gradcheck_plus.results import CheckResult

HERE = Path(__file__).with_name("cuda_faults.py")
TWIN = "gradcheck_plus.zoo.function_checkpoint:twin"
#: What is wrong, and the trait without which it does not show.
FAULTS = {"generator_of_the_cpu_only": "dropout", "autocast_of_the_cpu_only": "autocast-bfloat16"}

on_cuda = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="this torch sees no CUDA device")]
devices = pytest.mark.parametrize(("device", "verdict"), [("cpu", "match"), pytest.param("cuda", "fault", marks=on_cuda)])


@devices
@pytest.mark.parametrize(("name", "trait"), FAULTS.items())
def test_it_shows_where_tensors_live_on_a_gpu(
    name: str, trait: str, device: str, verdict: str, campaign: Callable[..., CheckResult]
) -> None:
    result = campaign("checkpoint", f"{HERE}:{name}", "function-checkpoint", max_examples=100, traits=(trait,), device=device)

    assert result.verdict == verdict
    assert all(trait in (fault.trigger or ()) for fault in result.faults)


@devices
@pytest.mark.parametrize("trait", FAULTS.values())
def test_the_twin_is_right_on_every_device(trait: str, device: str, verdict: str, campaign: Callable[..., CheckResult]) -> None:
    result = campaign("checkpoint", TWIN, "function-checkpoint", max_examples=100, traits=(trait,), device=device)

    assert [fault.message for fault in result.faults] == []
    assert result.verdict == "match"
