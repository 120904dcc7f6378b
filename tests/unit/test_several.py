"""Several jobs at once: each is done once, and nothing goes on when the iteration has ended."""

import threading
import time
from functools import partial

import pytest

from gradcheck_plus.campaign.several import Job, Runners, Several


def double(number: int, _: Runners) -> int:
    return 2 * number


@pytest.mark.parametrize("processes", [1, 3, 9])
def test_every_job_is_done_once(processes: int) -> None:
    assert dict(Several([partial(double, n) for n in range(7)], processes)) == {n: 2 * n for n in range(7)}


def test_what_a_job_raises_is_raised_where_results_are_taken() -> None:
    def wrong(_: Runners) -> int:
        raise LookupError("wrong")

    jobs: list[Job[int]] = [wrong, *[partial(double, 1)] * 3]
    with pytest.raises(LookupError, match="wrong"):
        list(Several(jobs, 2))


def test_whoever_stops_early_ends_what_runs() -> None:
    """A job is told through its runner, which asks whether to stop."""
    ended = threading.Event()

    def long(runners: Runners) -> int:
        while not runners.stop():
            time.sleep(0.01)
        ended.set()
        return 1

    jobs: list[Job[int]] = [partial(double, 1), long, *[partial(double, 2)] * 5]
    for number, result in Several(jobs, 2):
        assert (number, result) == (0, 2)
        break
    else:
        pytest.fail("there was no result")

    assert ended.wait(10)
