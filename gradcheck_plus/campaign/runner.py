"""Runners: where the cases of one check are run. This one runs them here; `campaign.worker` runs one elsewhere."""

import platform
from collections.abc import Iterator
from functools import cached_property

import hypothesis
import torch
from hypothesis.strategies import SearchStrategy

from gradcheck_plus import __version__
from gradcheck_plus.campaign.block import case_of, run_block
from gradcheck_plus.campaign.explaining import also_fails, explain
from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict, decide
from gradcheck_plus.campaign.plan import Block, Described, Explained, Failure, Inspected, Key, Outcome, Search
from gradcheck_plus.case import Case
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.targets import load
from gradcheck_plus.expectations import Contract, contract
from gradcheck_plus.record import Record
from gradcheck_plus.results import Tool
from gradcheck_plus.strategies import cases
from gradcheck_plus.subject import Subject
from gradcheck_plus.subjects import subject


class LocalRunner:
    """Runs a check in this process.

    Args:
        search: what to search.
        live: the subject, where it is not to be loaded from the search's target.
        inflight: the path of the in-flight file, if one is wanted.
        skip: the numbers of shrinking candidates that must not be run.

    Raises:
        InvalidArgument: the target, contract, traits or device cannot be used; the message says what can.
    """

    def __init__(self, search: Search, live: Subject | None = None, inflight: str | None = None) -> None:
        self.skip: frozenset[int] = frozenset()
        self.search, self.settings = search, search.settings
        self.subject = live or subject(search.kind, load(search.target), target=search.target)
        self.inflight = Inflight(inflight)
        check_device(self.settings.device)
        self.base = contract(search.contract or self.subject.contract)
        names = (self.subject.name, self.subject.builds_on)
        self.contract = self.base.for_subject(*names, torch=torch.__version__, known=self.settings.known)
        self.without = frozenset(self.settings.without)
        self.strategy = strategy(search, self.contract.pointless)

    def describe(self) -> Described:
        """Say what is run."""
        s = self.subject
        return Described(tool(self.settings.device), s.name, s.target, self.base.name, s.builds_on)

    def decide(self, case: Case) -> Verdict:
        """Judge one case."""
        return decide(case, self.subject, self.contract, device=self.settings.device)

    def block(self, block: Block) -> Outcome:
        """Run one block."""
        with single_thread():
            return run_block(block, self.strategy, self.decide, self.inflight, self.without)

    def case_of(self, block: Block, number: int) -> Case:
        """Return a case of a block without running it."""
        return case_of(block, self.strategy, number)

    def explain(self, failure: Failure, key: Key, seconds: float | None) -> Explained | None:
        """Shrink and explain a failure; None if it does not fail any more."""
        with single_thread():
            return explain(failure, key, self.decide, self.inflight, skip=self.skip, seconds=seconds)

    def inspect(self, case: Case) -> Inspected:
        """Return what a report needs to know of a case beyond what it says itself."""
        with single_thread():
            self.inflight.write("inspect", 0, 0)
            plain = execute(case, reference(self.search.kind), device=self.settings.device)
            failing = also_fails(case, self.search.kind, self._generic, self.settings.device)
            return Inspected(tuple(differentiable_outputs(plain)), failing)

    @cached_property
    def _generic(self) -> Contract:
        """What any subject of this contract is excused."""
        return self.base.for_subject(torch=torch.__version__, known=False)


def strategy(search: Search, pointless: frozenset[str]) -> SearchStrategy[Case]:
    """Return the strategy that draws the cases of a search; `pointless` are traits whose cases would teach nothing."""
    s = search.settings
    traits = None if s.traits is None else [t for t in s.traits if t not in pointless]
    without = {*s.without, *pointless}
    return cases(
        search.kind,
        traits=traits,
        without=without,
        operations=s.operations,
        dtypes=s.dtypes,
        max_statements=s.max_statements,
    )


def differentiable_outputs(record: Record) -> Iterator[tuple[int, str, tuple[int, ...], str]]:
    """Yield (segment, path, shape, dtype) of every output that requires grad."""
    for leaf, (segment, path) in record.places.items():
        tensor = record.tensors["output", leaf]
        if tensor is not None and record.facts["output", leaf, "requires-grad"]:
            yield segment, path, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


class single_thread:  # noqa: N801 - a context manager, named as what it makes
    """Use one thread meanwhile: cases are small, and more threads only wait for each other."""

    def __enter__(self) -> None:
        """Remember how many there were."""
        self.before = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        """Use as many again."""
        torch.set_num_threads(self.before)


def check_device(device: str) -> None:
    """Do nothing if cases can be run on this device.

    Raises:
        InvalidArgument: there is no such device here.
    """
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidArgument(f"`device`={device!r}: this torch ({torch.__version__}) sees no CUDA device. Write `cpu`.")


def tool(device: str) -> Tool:
    """Return the versions of what runs here."""
    return Tool(__version__, torch.__version__, hypothesis.__version__, platform.python_version(), device)
