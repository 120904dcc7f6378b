"""Settings refuse what cannot be run."""

from typing import Any

import pytest

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.settings import BLOCK, Settings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_examples": 0}, "`max_examples`=0 runs nothing. Write at least 1."),
        ({"max_examples": -5}, "`max_examples`=-5"),
        ({"profile": "slow"}, "`profile`='slow' is not known. Write one of quick, default, thorough."),
        ({"time_budget": 0.0}, "`time_budget`=0.0 leaves no time. Write a positive number of seconds."),
        ({"time_budget": float("nan")}, "`time_budget`=nan"),
        ({"case_timeout": -1.0}, "`case_timeout`=-1.0 ends every case. Write a positive number of seconds."),
        ({"device": "tpu"}, "`device`='tpu' is not supported. Write cpu, cuda or cuda:<index>."),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Settings(**changes)

    assert said in str(caught.value)


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1"])
def test_devices_that_torch_knows_are_taken(device: str) -> None:
    assert Settings(device=device).device == device


@pytest.mark.parametrize("number", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 7])
def test_blocks_have_all_the_cases(number: int) -> None:
    """Each but the last is full."""
    blocks = Settings(max_examples=number).blocks

    assert sum(blocks) == number
    assert set(blocks[:-1]) <= {BLOCK}
    assert 0 < blocks[-1] <= BLOCK
