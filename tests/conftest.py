"""What every test keeps."""

import gc
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000)


@pytest.fixture(autouse=True)
def state_of_the_process() -> Iterator[None]:
    """No test leaves torch in another state than it found it in: the next one would fail for a reason that is not its own."""
    import torch

    yield
    left = torch.is_grad_enabled(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_deterministic_debug_mode(0)
    assert left == (True, torch.float32, False)
