"""``gradcheck-plus check``."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from gradcheck_plus.campaign.campaign import Campaign
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.remote import RemoteRunner
from gradcheck_plus.cli.progress import Reporter, bars
from gradcheck_plus.errors import InvalidArgument, unknown
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.report.files import check_places, save, write_json, write_out
from gradcheck_plus.results import INCONCLUSIVE, MATCH, CheckResult, Report, Tool, check_text, exit_code, headline
from gradcheck_plus.settings import DTYPES, PROFILES, Settings
from gradcheck_plus.subject import PAIR
from gradcheck_plus.subjects import MODULE_SUBJECTS, SUBJECTS, contract_of
from gradcheck_plus.traits import TRAITS

_OUT = "gradcheck-plus-out"
#: Seconds that mean no limit: JSON, which the worker is asked in, has no infinity.
NO_LIMIT = 1e9


def check(options: argparse.Namespace) -> int:
    """Run the checks that the options ask for, report them, and return the exit code."""
    searches = list(_searches(options))
    out = options.out or _OUT
    check_places(json=options.json, out=out)
    done: list[Done] = []
    with bars(shown=not options.quiet) as bar:
        for search in searches:
            done.append(run(search, bar, quiet=options.quiet))
            if done[-1].result.faults:
                save(done[-1].result, search.kind, search.target, Path(out))
            if done[-1].interrupted:
                break
    results = [d.result for d in done]
    code = exit_code(results)
    if code == MATCH and len(done) < len(searches):
        code = INCONCLUSIVE
    if options.json:
        write_json(Report(exit_code=code, tool=done[0].tool, checks=results), options.json)
    if options.json != "-":
        write_out("".join(_said(result, options) + "\n" for result in results))
    return code


@dataclass(frozen=True)
class Done:
    """What came of one check, what it ran on, and whether it was interrupted."""

    result: CheckResult
    tool: Tool
    interrupted: bool


def run(search: Search, bar: Progress | None, name: str = "", *, quiet: bool = False) -> Done:
    """Run one check in a process of its own, under a name in the progress display."""
    reporter = Reporter(name or search.module or search.target, search.settings.max_examples, bar, quiet=quiet)
    with RemoteRunner(search, reporter.tick) as runner:
        campaign = Campaign(search, runner, reporter.progress)
        result = campaign.run()
        reporter.end()
        return Done(result, runner.describe().tool, campaign.interrupted)


def _said(result: CheckResult, options: argparse.Namespace) -> str:
    return headline(result) if options.quiet else check_text(result, verbose=options.verbose)


def _searches(options: argparse.Namespace) -> Iterator[Search]:
    """Yield one search for every check; whatever can be refused without torch is refused here."""
    _check_names(options)
    for device in _devices(options.device):
        settings = Settings(
            max_examples=PROFILES[options.profile].max_examples if options.max_examples is None else options.max_examples,
            profile=options.profile,
            seed=options.seed,
            time_budget=options.time_budget,
            device=device,
            dtypes=tuple(options.dtype or DTYPES),
            traits=None if options.trait is None else tuple(options.trait),
            without=tuple(options.no_trait),
            operations=None if options.operation is None else tuple(options.operation),
            known=not options.no_known,
            keep_going=options.keep_going,
            case_timeout=min(options.case_timeout, NO_LIMIT),
            checks=tuple(checks) if (checks := getattr(options, "check", None)) else None,
            without_checks=tuple(getattr(options, "no_check", ())),
        )
        if options.kind == "function":
            yield Search(
                kind="function",
                settings=settings,
                contract=options.contract,
                target=options.target,
                inputs=options.inputs,
                reference=options.reference,
            )
            continue
        if options.kind != "module":
            target = PAIR.join(filter(None, (options.target, getattr(options, "second", None))))
            yield Search(kind=options.kind, settings=settings, contract=options.contract, target=target)
            continue
        for name in options.subject or MODULE_SUBJECTS:
            yield Search(
                kind="checkpoint",
                settings=settings,
                contract=options.contract,
                target=SUBJECTS[name].subject.target,
                module=options.target,
                inputs=options.inputs,
            )


def _check_names(options: argparse.Namespace) -> None:
    if options.contract:
        contract_of(options.contract)
    for name in (*(options.trait or ()), *options.no_trait):
        if name not in TRAITS:
            raise unknown("trait", name, TRAITS)
    for name in options.operation or ():
        if name not in CATALOGUE:
            raise unknown("operation", name, CATALOGUE)
    for name in options.dtype or ():
        if name not in DTYPES:
            raise InvalidArgument(f"`dtype`={name!r} is not drawn. Write one of {', '.join(DTYPES)}.")
    for name in getattr(options, "subject", None) or ():
        if name in SUBJECTS and SUBJECTS[name].kind != "checkpoint":
            raise InvalidArgument(f"`subject`={name!r} is no checkpoint. Write some of {', '.join(MODULE_SUBJECTS)}.")


def _devices(device: str) -> list[str]:
    if device != "all":
        return [device]
    import torch

    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
