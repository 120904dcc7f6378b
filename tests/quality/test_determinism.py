"""A seed means one result: whenever it is run, and in whatever order its blocks are."""

from collections.abc import Callable

import msgspec
import pytest

from gradcheck_plus.results import CheckResult
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.zoo import ZOO

FAULT = ZOO["input-grad-not-cleared"]
CASES = 110  # two blocks
CHECKS = [
    pytest.param("checkpoint", SUBJECTS["torch-checkpoint"].subject.target, "checkpoint", id="match"),
    pytest.param(FAULT.kind, FAULT.target, FAULT.contract, id="fault"),
]


@pytest.mark.parametrize(("kind", "target", "contract"), CHECKS)
def test_the_same_seed_gives_the_same_result(
    kind: str, target: str, contract: str, campaign: Callable[..., CheckResult]
) -> None:
    once, again = (run(kind, target, contract, max_examples=CASES, keep_going=True) for run in (campaign, uncached(campaign)))

    assert lasting(once) == lasting(again)


@pytest.mark.parametrize(("kind", "target", "contract"), CHECKS)
def test_the_order_of_blocks_does_not_change_the_result(
    kind: str, target: str, contract: str, campaign: Callable[..., CheckResult]
) -> None:
    serial = campaign(kind, target, contract, max_examples=CASES, keep_going=True)
    shuffled = campaign(kind, target, contract, order=(1, 0), max_examples=CASES, keep_going=True)

    assert lasting(serial) == lasting(shuffled)


def test_another_seed_gives_other_cases(campaign: Callable[..., CheckResult]) -> None:
    one, other = (campaign(FAULT.kind, FAULT.target, FAULT.contract, max_examples=CASES, seed=seed) for seed in (0, 1))

    assert one.faults[0].case != other.faults[0].case or one.traits != other.traits


def uncached(campaign: Callable[..., CheckResult]) -> Callable[..., CheckResult]:
    return campaign.__wrapped__  # type: ignore[attr-defined, no-any-return]


def lasting(result: CheckResult) -> bytes:
    """Return everything that must not change, as JSON."""
    result = msgspec.structs.replace(result, volatile={})
    return msgspec.json.encode(result)
