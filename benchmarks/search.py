"""Does each technique of the search earn its keep? Recall and cases to find over the zoo, with each switched off in turn.

    python benchmarks/search.py [--cases N] [--seeds N] [--processes N]
    python benchmarks/search.py --pairs [--cases N] [--seeds N] [--processes N]

For every planted fault that programs show: how many cases are drawn until one shows it. Recall is the share of (fault, seed)
that were found within N cases; those that were not count as N + 1. Nothing is shrunk. With `--pairs`, nothing is run: the share
of the pairs of traits that can meet, and do in the first N cases for a checkpoint.
"""

import argparse
import contextlib
import gc
import importlib
import itertools
import multiprocessing
import statistics
from collections.abc import Iterator
from types import SimpleNamespace
from unittest.mock import patch

import torch
from hypothesis import strategies as st

from gradcheck_plus.campaign.block import generated
from gradcheck_plus.campaign.judging import decide
from gradcheck_plus.campaign.plan import Block, Search
from gradcheck_plus.campaign.runner import LocalRunner
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.settings import BLOCK, Settings
from gradcheck_plus.strategies.statements import Builder
from gradcheck_plus.subject import KINDS
from gradcheck_plus.traits import compatible, drawable, traits
from gradcheck_plus.traits.impossible import impossible
from gradcheck_plus.zoo import ZOO

# The package has functions of these names.
cases, swarms = (importlib.import_module(f"gradcheck_plus.strategies.{name}") for name in ("cases", "swarms"))


@st.composite
def everything_on(draw, allowed, *, always=()):
    """No swarms: every trait may occur in every case, each seldom."""
    return swarms.closed((*always, *swarms.order(tuple(allowed), draw(st.integers(0, 100)), 0)), frozenset(allowed)), False


@st.composite
def coins(draw, allowed, *, always=()):
    """Swarms whose size is not drawn first: each trait is in one by the toss of a coin, so that most have half of them."""
    order = swarms.order(tuple(allowed), draw(st.integers(0, 100)), 0)
    return swarms.closed((*always, *(t for t in order if draw(st.booleans()))), frozenset(allowed)), True


def any_operation(self, operand, segment):
    """Draw operations alone, not first a trait and then an operation that has it."""
    live = self.values[operand]
    fitting = [o for o in self._fitting(operand) if not o.in_place or (live.fresh and live.segment == segment)]
    return self.c.pick(fitting) if fitting else CATALOGUE["scale"]


def with_mutants(drawn, **_):
    """Let Hypothesis follow each case with near copies of it."""
    return drawn


OFF = {
    "nothing": (),
    "swarms: everything is on": ((cases, "swarms", everything_on),),
    "large swarms: at most 9 traits": ((swarms, "LARGEST", 9),),
    "large swarms: at most 24 traits": ((swarms, "LARGEST", 24),),
    "large swarms: at most 40 traits": ((swarms, "LARGEST", 40),),
    "cases with everything on": ((swarms, "_EVERYTHING", 0),),
    "the size of a swarm comes first": ((cases, "swarms", coins),),
    "a trait before the operation": ((Builder, "_operation", any_operation),),
    "no near copies": ((cases, "st", SimpleNamespace(lists=with_mutants)), (cases, "_only", lambda drawn: drawn)),
}


def drawn(kind, contract, seed, number) -> Iterator:
    """Yield so many cases, as a campaign draws them."""
    target = next(entry.twin_target for entry in ZOO.values() if entry.kind == kind)
    settings = Settings(seed=seed, max_examples=number)
    search = Search(kind=kind, settings=settings, contract=contract, target=target)
    strategy = LocalRunner(search).strategy
    for block in range(-(-number // BLOCK)):
        yield from block_of(Block(block, seed, min(BLOCK, number - block * BLOCK)), strategy)


def block_of(block, strategy) -> list:
    found = []

    def keep(case):
        found.append(case)

    generated(block, strategy, keep)
    return found


def hunted(kind, contract, seed, number) -> list[int]:
    """Return, for every planted fault of a kind and contract, how many cases it took; one more than all if it was not found."""
    left = {name: LocalRunner(searched(e)) for name, e in ZOO.items() if (e.kind, e.contract) == (kind, contract)}
    took = dict.fromkeys(left, number + 1)
    for count, case in enumerate(drawn(kind, contract, seed, number), 1):
        for name, runner in list(left.items()):
            if decide(case, runner.subject, runner.contract).name == "fault":
                took[name] = count
                del left[name]
        if not left:
            break
    return list(took.values())


def met(seed, number) -> float:
    """Return the share of the pairs of traits that meet in so many cases for a checkpoint."""
    possible = [p for p in itertools.combinations(drawable("checkpoint"), 2) if compatible(*p) and not impossible(*p)]
    found = {
        frozenset(p) for case in drawn("checkpoint", "strict", seed, number) for p in itertools.combinations(traits(case), 2)
    }
    return sum(frozenset(p) in found for p in possible) / len(possible)


def searched(entry) -> Search:
    return Search(kind=entry.kind, settings=Settings(), contract=entry.contract, target=entry.target)


def measured(job) -> tuple[str, list[float]]:
    """Return what was switched off, and how many cases each fault took, or which share of the pairs met."""
    off, seed, number, pairs = job
    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(5000)  # as a worker process does
    with contextlib.ExitStack() as stack:
        for place, name, value in OFF[off]:
            stack.enter_context(patch.object(place, name, value))
        if pairs:
            return off, [met(seed, number)]
        sorts = dict.fromkeys((e.kind, e.contract) for e in ZOO.values() if e.kind in KINDS)
        return off, [n for sort in sorts for n in hunted(*sort, seed, number)]


def row(off, numbers, options) -> str:
    """Return the line of the table for what was switched off."""
    if options.pairs:
        return f"| {off} | {statistics.mean(numbers):.1%} | {min(numbers):.1%} |"
    recall = sum(n <= options.cases for n in numbers) / len(numbers)
    p90 = statistics.quantiles(numbers, n=10)[-1]
    return f"| {off} | {recall:.1%} | {statistics.median(numbers):g} | {p90:.0f} | {statistics.mean(numbers):.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pairs", action="store_true")
    options = parser.parse_args()
    jobs = [(off, seed, options.cases, options.pairs) for off in OFF for seed in range(options.seeds)]
    found = {off: [] for off in OFF}
    planted = sum(e.kind in KINDS for e in ZOO.values())
    print(f"{planted} planted faults, {options.seeds} seeds, {options.cases} cases; torch {torch.__version__}\n")
    columns = ("pairs met", "at the worst seed") if options.pairs else ("recall", "cases to find: median", "p90", "mean")
    print("| switched off |", " | ".join(columns), "|\n|---|" + "---|" * len(columns))
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for off, numbers in pool.imap(measured, jobs):
            found[off] += numbers
            if len(found[off]) == len(numbers) * options.seeds:
                print(row(off, found[off], options), flush=True)


if __name__ == "__main__":
    main()
