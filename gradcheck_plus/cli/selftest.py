"""``gradcheck-plus selftest``: does the detector work here? It hunts for every planted fault, and checks every twin."""

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from gradcheck_plus.campaign.campaign import Campaign
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.several import Job, Runners, Several
from gradcheck_plus.case import Case
from gradcheck_plus.cli.progress import bars
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.report.files import check_places, write_json, write_out
from gradcheck_plus.results import INCONCLUSIVE, Fault, Tool
from gradcheck_plus.results.selftest import PlantedFault, SelfTest, Twin
from gradcheck_plus.settings import Settings
from gradcheck_plus.zoo import ZOO, Planted

_WIDTH = 132  # of the table, where standard output is no terminal
_EVERY = 10.0
#: Checks of functions that need what a machine may not have: a GPU, a compiler. Their faults are hunted for by name only.
_ELSEWHERE = ("devices", "compile")
#: Checks of functions that can only say something beside a reference.
_REFERENCED = ("values", "nondifferentiable", "autocast")
#: Cases of a function at most: it has one sample call, and few ways to vary that.
_CALLS = 100
#: What a job leaves, and on what it was run.
Left = tuple[PlantedFault | Twin, Tool]


def selftest(options: argparse.Namespace) -> int:
    """Hunt for planted faults and check their twins; return 0 if every fault was found and every twin passed."""
    check_places(json=options.json, out=None)
    if options.processes is not None and options.processes < 1:
        raise InvalidArgument(f"`processes`={options.processes} runs nothing. Write at least 1.")
    entries, settings = _chosen(options), Settings(max_examples=options.max_examples, seed=options.seed)
    jobs: list[Job[Left]] = [
        *(functools.partial(_hunting(entry), entry, settings) for entry in entries),
        *_twins(entries, settings),
    ]
    left: dict[int, Left] = {}
    started = time.monotonic()
    try:
        with bars(shown=not options.quiet) as bar:
            several = Several(jobs, options.processes or _processors())
            for number, found in _told(several, len(jobs), bar, quiet=options.quiet):
                left[number] = found  # noqa: PERF403 - one by one, since an interrupt keeps those that are there
    except KeyboardInterrupt:
        if not left:
            raise
    report = _report(options, [left[n] for n in sorted(left)], len(jobs), time.monotonic() - started)
    code = report.judge()
    if options.json:
        write_json(report, options.json)
    if options.json != "-":
        write_out(_said(report, quiet=options.quiet))
    return code


def _chosen(options: argparse.Namespace) -> list[Planted]:
    every = [entry for entry in ZOO.values() if entry.check not in _ELSEWHERE]
    chosen = [entry for entry in [ZOO[name] for name in options.name] or every if options.kind in (None, entry.kind)]
    if not chosen:
        raise InvalidArgument(f"`kind`={options.kind!r} leaves none of the named faults. Write some of that kind.")
    return chosen


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _told(several: Several[Left], total: int, bar: Progress | None, *, quiet: bool) -> Iterator[tuple[int, Left]]:
    """Show how far it is."""
    task = bar.add_task("self test", total=total, faults="") if bar else None
    said = time.monotonic()
    for done, (number, left) in enumerate(several, 1):
        if bar is not None and task is not None:
            bar.update(task, completed=done)
        elif not quiet and time.monotonic() - said > _EVERY:
            said = time.monotonic()
            print(f"self test: {done} of {total} checks", file=sys.stderr, flush=True)  # noqa: T201 - progress
        yield number, left


# jobs -------------------------------------------------------------------------------------------------------------------


def _hunting(entry: Planted) -> Callable[[Planted, Settings, Runners], Left]:
    return _hunt_function if entry.kind == "function" else _hunt


def _hunt(entry: Planted, settings: Settings, runners: Runners) -> Left:
    """Hunt for a planted fault, and judge its twin on what was found."""
    faulty = Search(kind=entry.kind, settings=settings, contract=entry.contract, target=entry.target, planted=True)
    runner = runners.turned_to(faulty)
    result, tool = Campaign(faulty, runner).run(), runner.describe().tool
    runner = runners.turned_to(msgspec.structs.replace(faulty, target=entry.twin_target))
    said = [(fault, runner.judge(Case.from_json(fault.case)).name) for fault in result.faults]
    shown = min(said, key=lambda pair: (pair[1] == "fault", pair[0].cases_to_find), default=(None, ""))
    return _found(entry, result.cases.run, *shown), tool


def _hunt_function(entry: Planted, settings: Settings, runners: Runners) -> Left:
    """Hunt for a planted fault of a function by the check that is about it, and check its twin by the same."""
    few = msgspec.structs.replace(settings, checks=(entry.check,), max_examples=min(settings.max_examples, _CALLS))
    reference = entry.twin_target if entry.check in _REFERENCED else ""
    faulty = Search(
        kind=entry.kind,
        settings=few,
        contract=entry.contract,
        target=entry.target,
        inputs=entry.inputs_target,
        reference=reference,
        planted=True,
    )
    runner = runners.turned_to(faulty)
    result, tool = Campaign(faulty, runner).run(), runner.describe().tool
    correct = msgspec.structs.replace(faulty, target=entry.twin_target)
    twin = Campaign(correct, runners.turned_to(correct)).run().verdict
    return _found(entry, result.cases.run, next(iter(result.faults), None), twin), tool


def _found(entry: Planted, run: int, fault: Fault | None, twin: str) -> PlantedFault:
    """Return what became of a planted fault: found is what the twin does not show."""
    if fault is None:
        return PlantedFault(name=entry.name, kind=entry.kind, found=False, run=run, smallest=entry.statements)
    return PlantedFault(
        name=entry.name,
        kind=entry.kind,
        found=twin != "fault",
        run=run,
        smallest=entry.statements,
        cases_to_find=fault.cases_to_find,
        statements=fault.statements,
        trigger=fault.trigger or (),
        twin=twin,
        message=fault.message,
    )


def _twins(entries: list[Planted], settings: Settings) -> Iterator[Job[Left]]:
    """Yield the check of each twin: many faults have the same one. That of a function is checked when its fault is."""
    for kind, target, contract in dict.fromkeys((e.kind, e.twin_target, e.contract) for e in entries if e.kind != "function"):
        every = msgspec.structs.replace(settings, keep_going=True)
        yield functools.partial(_check, Search(kind=kind, settings=every, contract=contract, target=target))


def _check(search: Search, runners: Runners) -> Left:
    """Check a twin."""
    runner = runners.turned_to(search)
    result = Campaign(search, runner).run()
    twin = Twin(
        target=search.target,
        kind=search.kind,
        contract=search.contract,
        verdict=result.verdict,
        run=result.cases.run,
        judged=result.cases.judged,
        accusations=tuple(fault.message for fault in result.faults),
    )
    return twin, runner.describe().tool


# what is said -----------------------------------------------------------------------------------------------------------


def _report(options: argparse.Namespace, left: list[Left], asked: int, seconds: float) -> SelfTest:
    return SelfTest(
        tool=left[0][1],
        seed=options.seed,
        max_examples=options.max_examples,
        asked=asked,
        faults=[found for found, _ in left if isinstance(found, PlantedFault)],
        twins=[found for found, _ in left if isinstance(found, Twin)],
        volatile={"seconds": round(seconds, 1)},
    )


def _said(report: SelfTest, *, quiet: bool) -> str:
    summary = (
        f"{len(report.faults) - len(report.missed)} of {len(report.faults)} planted faults found, "
        f"{len(report.twins) - len(report.accused)} of {len(report.twins)} twins silent; seed {report.seed}, up to "
        f"{report.max_examples} cases each, torch {report.tool.torch}, {report.volatile['seconds']} s"
    )
    names = [*report.missed, *report.accused]
    wrong = f"Not as it should be: {', '.join(names)}.\n" if names else ""
    cut = "Interrupted: not all was checked.\n" if report.exit_code == INCONCLUSIVE else ""
    if quiet:
        return f"{wrong}{cut}{summary}\n"
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    with console.capture() as tables:
        console.print(_fault_table(report))
        console.print(_twin_table(report))
    return f"{tables.get()}{wrong}{cut}{summary}\n"


def _fault_table(report: SelfTest) -> Table:
    columns = ("planted fault", "kind", "found after", "statements", "least", "only when", "twin")
    table = Table(*columns, title="gradcheck-plus selftest")
    for f in report.faults:
        after = f"{f.cases_to_find} cases" if f.found else f"[red]not in {f.run}[/]"
        size = str(f.statements or "")
        table.add_row(f.name, f.kind, after, size, str(f.smallest), ", ".join(f.trigger), f.twin)
    return table


def _twin_table(report: SelfTest) -> Table:
    table = Table("twin", "kind", "contract", "verdict", "cases", "judged", "accusations")
    for t in report.twins:
        verdict = f"[{'green' if t.verdict == 'match' else 'red'}]{t.verdict}[/]"
        table.add_row(t.target, t.kind, t.contract, verdict, str(t.run), str(t.judged), "\n".join(t.accusations))
    return table
