"""What every test keeps."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def state_of_the_process() -> Iterator[None]:
    """No test leaves torch in another state than it found it in: the next one would fail for a reason that is not its own."""
    import torch

    yield
    left = torch.is_grad_enabled(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)
    assert left == (True, torch.float32, False)
