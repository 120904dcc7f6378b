"""What the tests of the oracle share: records written by hand, and what is said of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gradcheck_plus.mismatch import Mismatch, Role
from gradcheck_plus.oracle import Evidence, Judgement, judge
from gradcheck_plus.record import Aspect, Record


@pytest.fixture(scope="session")
def record() -> Callable[..., Record]:
    """The function `recorded`: a record written by hand."""
    return recorded


def recorded(changes: Mapping[str, Any] | None = None) -> Record:
    """Return a record with something of every role and aspect; `changes` says otherwise, of leaves and of facts.

    The largest gradient is 4.
    """
    changed = dict(changes or {})
    base: dict[tuple[Role, str], Tensor | None] = {
        ("output", "outputs['a']"): torch.tensor([1.0, 2.0]),
        ("output", "count"): torch.tensor([1, 2]),
        ("primal", "x0.grad"): torch.tensor([1.0, -4.0, 0.5]),
        ("primal", "x1.grad"): None,
        ("parameter", "params['w'].grad"): torch.tensor([2.0, 3.0]),
        ("buffer", "buffers['mean']"): torch.tensor([0.5]),
        ("input", "x0"): torch.tensor([7.0]),
        ("leftover", "stage0.inputs['x0'].grad"): None,
        ("rng", "torch.get_rng_state() after forward"): torch.tensor([1, 2, 3], dtype=torch.uint8),
    }
    aspects: dict[tuple[Role, str, Aspect], Any] = {
        ("output", "outputs", "structure"): changed.get("structure", "{'a': tensor}"),
        ("output", "outputs['a']", "requires-grad"): changed.get("flag", True),
        ("output", "outputs['a']", "alias"): changed.get("alias", "nothing"),
        ("input", "x0", "version"): changed.get("version", 0),
        ("mode", "torch.is_grad_enabled() after forward", "state"): changed.get("mode", True),
        ("hook", "x0.register_hook", "firings"): changed.get("hook", 1),
        ("forward-hook", "segment0.register_forward_hook", "firings"): changed.get("forward_hook", 1),
    }
    return Record({key: changed.get(key[1], value) for key, value in base.items()}, aspects)


@pytest.fixture(scope="session")
def verdict() -> Callable[..., list[Mismatch]]:
    """The function `judged`: what the oracle says of a subject."""
    return judged


def judged(subject: Record, reference: Record | None = None, *, exact: bool = True, **more: Any) -> list[Mismatch]:
    """Judge a subject whose repetition is the same; nothing but rounding lies between the reference and its variants."""
    expected = reference or recorded()
    evidence = Evidence(expected, subject, exact, 2.0**-24, again=(expected, subject), nudged=(expected, expected))
    said = judge(replace(evidence, **more))
    assert isinstance(said, Judgement)
    return said.mismatches
