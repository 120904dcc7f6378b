"""Runners: where the cases of one check are run. This one runs them here; `campaign.worker` runs one elsewhere."""

import platform
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

import hypothesis
import torch
from hypothesis.strategies import SearchStrategy

from gradcheck_plus.campaign.block import case_of, run_block
from gradcheck_plus.campaign.explaining import also_fails, explain, known_of_torch
from gradcheck_plus.campaign.inflight import Inflight
from gradcheck_plus.campaign.judging import Verdict, costs, decide
from gradcheck_plus.campaign.localising import first_divergence
from gradcheck_plus.campaign.plan import Block, Described, Explained, Failure, Inspected, Key, Outcome, Search
from gradcheck_plus.case import Case, Cotangent, Environment, Name
from gradcheck_plus.case.trees import walk
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.sampling import Sampled, sampled
from gradcheck_plus.execute.targets import load
from gradcheck_plus.expectations import Contract
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.record import Record
from gradcheck_plus.results import Costs, Tool
from gradcheck_plus.strategies.cases import aimed_cases, allowed_traits
from gradcheck_plus.strategies.modules import TRAITS as MODULE_TRAITS
from gradcheck_plus.strategies.modules import module_cases
from gradcheck_plus.strategies.plans import planned_cases
from gradcheck_plus.subject import Subject
from gradcheck_plus.subjects import contract_of, subject
from gradcheck_plus.version import __version__


class LocalRunner:
    """Runs a check in this process.

    Args:
        search: what to search.
        live: the subject, where it is not to be loaded from the search's target.
        inflight: the path of the in-flight file, if one is wanted.
        probe: the subject may be called once, to see what it is built on.

    Raises:
        InvalidArgument: the target, contract, traits or device cannot be used; the message says what can.
    """

    def __init__(self, search: Search, live: Subject | None = None, inflight: str | None = None, *, probe: bool = True) -> None:
        self.search, self.settings = search, search.settings
        self.inflight = Inflight(inflight)
        self.inflight.write("load", 0, 0)
        for target in filter(None, (search.module, search.inputs)):
            load(target)
        call = live.call if live else load(search.target)
        self.inflight.write("probe", 0, 0)
        self.subject = live or subject(search.kind, call, target=search.target, probe=probe)
        self.inflight.write("sample", 0, 0)
        check_device(self.settings.device)
        self.base = contract_of(search.contract or self.subject.contract)
        names = (self.subject.name, self.subject.builds_on)
        self.contract = self.base.for_subject(*names, torch=str(torch.__version__), known=self.settings.known)
        self.without = frozenset(self.settings.without)
        self.aimed = aimed(search, self.contract.pointless)
        self.strategy = strategy(search, self.aimed, self.subject)
        self.remembered = lru_cache(maxsize=4096)(self.decide)  # shrinking comes to the same small cases from many sides

    def describe(self) -> Described:
        """Say what is run."""
        s = self.subject
        return Described(tool(self.settings.device), s.name, s.target, self.base.name, s.builds_on, self.aimed, s.planned)

    def decide(self, case: Case) -> Verdict:
        """Judge one case."""
        return decide(case, self.subject, self.contract, device=self.settings.device)

    def measure(self, case: Case) -> Costs:
        """Measure what one case costs."""
        return costs(case, self.subject, device=self.settings.device)

    def block(self, block: Block) -> Outcome:
        """Run one block."""
        with single_thread():
            return run_block(block, self.strategy, self.decide, self.measure, self.inflight, self.without)

    def case_of(self, block: Block, number: int) -> Case:
        """Return a case of a block without running it."""
        return case_of(block, self.strategy, number)

    def explain(
        self, failure: Failure, key: Key, seconds: float | None, *, hold: str = "", skip: frozenset[int] = frozenset()
    ) -> Explained | None:
        """Shrink and explain a failure, leaving out some candidates; None if it does not fail any more."""
        with single_thread():
            return explain(failure, key, self.remembered, self.inflight, skip=skip, hold=hold, seconds=seconds)

    def inspect(self, case: Case, mismatch: Mismatch) -> Inspected:
        """Return what a report needs to know of a case beyond what it says itself."""
        with single_thread():
            self.inflight.write("inspect", 0, 0)
            plain = execute(case, reference(self.search.kind), device=self.settings.device)
            failing = also_fails(case, self.search.kind, self._generic, self.settings.device)
            others = tuple(name for name in failing if name != self.subject.name)
            known: tuple[tuple[str, str, str, str], ...] = ()
            if self.settings.known and not self.search.planted and self.search.kind != "split-backward":  # see `_foundation`
                known = known_of_torch(case, self.search.kind, str(torch.__version__), self.settings.device)
            divergence = first_divergence(case, self.subject, mismatch, self.settings.device)
            return Inspected(tuple(differentiable_outputs(plain)), others, known, divergence)

    @cached_property
    def _generic(self) -> Contract:
        """What any subject of this contract is excused."""
        return self.base.for_subject(torch=str(torch.__version__), known=False)


def aimed(search: Search, pointless: frozenset[str]) -> tuple[str, ...]:
    """Return the traits that the cases of a search aim at; cases with those that are pointless would teach nothing.

    Raises:
        InvalidArgument: a trait that was asked for cannot be aimed at, or is pointless under the contract.
    """
    s = search.settings
    for name in s.traits or ():
        if name in pointless:
            raise InvalidArgument(
                f"`trait`={name!r}: the contract excuses whatever a subject does with it. Write another contract."
            )
    allowed = allowed_traits(search.kind, s.traits, {*s.without, *pointless}, s.dtypes)
    return tuple(t for t in allowed if not search.module or t in MODULE_TRAITS)


def strategy(search: Search, traits: tuple[str, ...], made: Subject) -> SearchStrategy[Case]:
    """Return the strategy that draws the cases of a search for a subject, aiming at some traits."""
    s = search.settings
    if search.module:
        found = sampled(search.module, search.inputs, s.device)
        fitting = {t for t in traits if runs_with(found, t, s.device)}
        # Not as the traits to aim at: those must be able to meet in one case, and these need not.
        left_out = [t for t in MODULE_TRAITS if t not in fitting]
        cases = module_cases(found.program, found.primals, without=left_out, dtypes=s.dtypes)
        return planned_cases(cases, made.planned) if made.planned else cases
    always = tuple(t for t in made.aims if t in traits) if s.traits is None else traits
    return aimed_cases(search.kind, traits, always, s.operations, s.dtypes, s.max_statements, made.planned)


def runs_with(found: Sampled, trait: str, device: str) -> bool:
    """Does a user's module run under plain autograd with a trait? What it does not support is not drawn."""
    changes = _SURROUNDINGS.get(trait)
    if changes is None:
        return True
    case = Case(found.program, found.primals, _cotangents(found), Environment(**changes))
    return execute(case, reference("checkpoint"), device=device).raised is None


def _cotangents(found: Sampled) -> tuple[Cotangent, ...]:
    names = {r.name for r in found.program.results if r.spec.requires_grad}
    return tuple(
        Cotangent(0, path) for path, leaf in walk(found.program.output) if isinstance(leaf, Name) and leaf.name in names
    )


_SURROUNDINGS: dict[str, dict[str, Any]] = {
    "eval": {"train": False},
    "autocast-bfloat16": {"autocast": "bfloat16"},
    "autocast-float16": {"autocast": "float16"},
    "second-backward": {"schedule": "F00"},
    "accumulation": {"schedule": "F0F1"},
    "two-forwards": {"schedule": "FF10"},
}


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
    index = device.partition(":")[2]
    if index and int(index) >= (there := torch.cuda.device_count()):
        raise InvalidArgument(f"`device`={device!r}: there are {there} CUDA devices. Write one up to `cuda:{there - 1}`.")


def tool(device: str) -> Tool:
    """Return the versions of what runs here."""
    return Tool(__version__, str(torch.__version__), hypothesis.__version__, platform.python_version(), device)
