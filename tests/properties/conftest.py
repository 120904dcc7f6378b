"""What the properties share."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors are small: more threads would only wait for each other."""
    torch.set_num_threads(1)
