"""How often does the tool accuse what is right? Campaigns on every correct implementation that ships with it.

    python benchmarks/false_alarms.py [--cases N] [--seed S] [--processes N] [--subject NAME ...]

The built-in subjects, with the faults that are known of torch excused, and every twin of the zoo; the cases are shared out
evenly. Ends with 1 if anything is accused, if plain autograd raises unannounced, or if 2 % of the cases say nothing.
"""

import argparse
import gc
import multiprocessing
import sys

import torch

from gradcheck_plus.campaign.campaign import Campaign
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.runner import LocalRunner
from gradcheck_plus.settings import Settings
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.zoo import ZOO

COUNTED = ("run", "judged", "vacuous", "refused", "invalid")


def correct() -> list[tuple[str, str, str, str]]:
    """Return (name, kind, target, contract) of everything that is right."""
    built_in = [(s.name, s.kind, s.subject.target, s.contract) for s in SUBJECTS.values() if not s.needs]
    twins = dict.fromkeys((e.kind, e.twin_target, e.contract) for e in ZOO.values() if e.kind != "function")
    return built_in + [(target.partition("zoo.")[2], kind, target, contract) for kind, target, contract in twins]


def checked(job):
    """Return the name, the kind, the contract and the result of one check."""
    (name, kind, target, contract), cases, seed = job
    torch.set_num_threads(1)
    gc.freeze()
    gc.set_threshold(5000)  # as a worker process does
    search = Search(
        kind=kind, settings=Settings(max_examples=cases, seed=seed, keep_going=True), contract=contract, target=target
    )
    return name, kind, contract, Campaign(search, LocalRunner(search)).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--subject", action="append", help="only this one; may be repeated")
    options = parser.parse_args()
    subjects = [subject for subject in correct() if options.subject is None or subject[0] in options.subject]
    each = -(-options.cases // len(subjects))
    jobs = [(subject, each, options.seed) for subject in subjects]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        results = pool.map(checked, jobs, chunksize=1)
    print(f"| subject | kind | contract | {' | '.join(COUNTED)} | accused |")
    print("|---|---|---|" + "---|" * (len(COUNTED) + 1))
    for name, kind, contract, result in results:
        counts = " | ".join(str(getattr(result.cases, count)) for count in COUNTED)
        print(f"| {name} | {kind} | {contract} | {counts} | {len(result.faults)} |")
    run, _, vacuous, _, invalid = (sum(getattr(r.cases, count) for *_, r in results) for count in COUNTED)
    accused = [f"{name}: {fault.message}" for name, *_, result in results for fault in result.faults]
    print(f"\n{run} cases over {len(subjects)} subjects, seed {options.seed}, torch {torch.__version__}:")
    print(f"{len(accused)} false alarms, invalid {invalid}, vacuous {vacuous / run:.2%}", *accused, sep="\n")
    return bool(accused or invalid or vacuous >= 0.02 * run)


if __name__ == "__main__":
    sys.exit(main())
