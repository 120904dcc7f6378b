"""Two recordings side by side: what corresponds stands in one line, from the first difference on."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradcheck_plus.graph import recorded
from gradcheck_plus.graph.pairing import SideBySide, side_by_side


def compared(reference: Any, subject: Any) -> SideBySide:
    return side_by_side(*(recorded(run) for run in (reference, subject)))


class Shared(nn.Module):
    """Calls one layer three times, the last time with a hook that may change its gradient."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.factor = nn.Linear(2, 2), factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=False)
        y: torch.Tensor = self.layer(x)
        y.register_hook(lambda grad: self.factor * grad)
        return y.sin()


def shared(factor: float) -> Any:
    return lambda: Shared(factor)(torch.ones(1, 2)).sum()


def test_runs_that_agree_show_nothing() -> None:
    found = compared(shared(1.0), shared(1.0))

    assert found.divergence is None
    assert found.aligned > 0
    assert not found.operations
    assert not found.nodes


def test_all_before_the_first_difference_is_left_out() -> None:
    found = compared(shared(1.0), shared(3.0))
    first = found.nodes[0]

    assert first.name == "AddmmBackward0"
    assert [side.what for side in first.sides] == ["received", "returned 0", "returned 1", "returned 2"]
    received = first.sides[0]
    assert received.difference
    assert received.reference is not None
    assert received.subject is not None
    assert received.subject.norm == pytest.approx(3 * (received.reference.norm or 0))
    assert not any(pair.name == "SinBackward0" for pair in found.nodes)
    assert not found.operations


def test_every_node_of_both_is_shown_once() -> None:
    reference, subject = recorded(lambda: Shared(1.0)(torch.ones(1, 2)).cos().sum()), recorded(shared(3.0))
    found = side_by_side(reference, subject)
    ours, theirs = ([i for pair in found.nodes if (i := getattr(pair, side)) is not None] for side in ("reference", "subject"))

    assert ours == sorted(set(ours))
    assert theirs == sorted(set(theirs))
    assert set(range(ours[0], len(reference))) == set(ours)


def test_what_a_run_alone_has_stands_alone() -> None:
    def plain() -> Any:
        return Shared(1.0)(torch.ones(1, 2)).sum()

    def sines() -> Any:
        return Shared(3.0)(torch.ones(1, 2)).tanh().sum()

    alone = [pair for pair in compared(plain, sines).nodes if pair.reference is None]

    assert "TanhBackward0" in {pair.name for pair in alone}
    assert all(side.reference is None and not side.difference for pair in alone for side in pair.sides)


def test_a_leaf_that_is_sent_several_gradients_is_compared_in_sum() -> None:
    def once(factor: float) -> Any:
        def run() -> None:
            torch.manual_seed(0)
            layer = nn.Linear(2, 2)
            layer(torch.ones(1, 2)).sum().backward()
            (factor * layer(torch.ones(1, 2)).sum()).backward()

        return run

    leaves = [pair for pair in compared(once(1.0), once(2.0)).nodes if pair.name == "AccumulateGrad weight"]

    assert [pair.sides[0].what for pair in leaves] == ["received, sum of 2 and 2"]
    assert leaves[0].sides[0].difference == "1"
