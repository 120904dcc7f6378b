"""The pytest plugin: options that set the defaults of checks, for a whole test run.

Loading it imports neither torch nor Hypothesis: a test run that checks no gradient pays nothing.
"""

from typing import Any

import pytest

from gradcheck_plus.options import OPTIONS

_GROUP = "gradcheck-plus"
#: What was set when a test run began.
_BEFORE = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ``--gradcheck-*`` options."""
    group = parser.getgroup(_GROUP, "gradcheck-plus: defaults of its checks, for what a test does not say in its own Settings")
    group.addoption("--gradcheck-max-examples", type=int, metavar="N", help="cases that each one-call check runs")
    group.addoption("--gradcheck-seed", type=int, metavar="S", help="the seed of one-call checks")
    group.addoption("--gradcheck-time-budget", type=float, metavar="SECONDS", help="time for each one-call check")
    group.addoption("--gradcheck-device", metavar="NAME", help="cpu or cuda")
    group.addoption("--gradcheck-no-known", action="store_true", help="report the faults that are known of torch itself, too")
    group.addoption("--gradcheck-keep-going", action="store_true", help="one-call checks report every distinct fault")
    group.addoption("--gradcheck-out", metavar="DIR", help="write repros and replays of one-call checks into this folder")


def pytest_configure(config: pytest.Config) -> None:
    """Take the options over as defaults of `gradcheck_plus.Settings`."""
    values = {
        "max_examples": config.getoption("gradcheck_max_examples"),
        "seed": config.getoption("gradcheck_seed"),
        "time_budget": config.getoption("gradcheck_time_budget"),
        "device": config.getoption("gradcheck_device"),
        "known": False if config.getoption("gradcheck_no_known") else None,
        "keep_going": True if config.getoption("gradcheck_keep_going") else None,
        "out": config.getoption("gradcheck_out"),
    }
    given = {name: value for name, value in values.items() if value is not None}
    if given:
        _check(given)
    config.stash[_BEFORE] = dict(OPTIONS)
    OPTIONS.clear()
    OPTIONS.update(given)


def _check(given: dict[str, Any]) -> None:
    """Do nothing if checks can be run with these options.

    Raises:
        pytest.UsageError: they cannot, whether or not a test comes to it; the message says what can.
    """
    from gradcheck_plus.errors import InvalidArgument
    from gradcheck_plus.report.files import check_places
    from gradcheck_plus.settings import Settings

    try:
        Settings(**{name: value for name, value in given.items() if name != "out"})
        check_places(json=None, out=given.get("out"))
    except InvalidArgument as error:
        raise pytest.UsageError(f"gradcheck-plus: {error}") from error


def pytest_unconfigure(config: pytest.Config) -> None:
    """Forget them again, for whoever runs pytest in this process next, or runs it around this one."""
    OPTIONS.clear()
    before: dict[str, Any] = config.stash.get(_BEFORE, {})
    OPTIONS.update(before)


def pytest_report_header() -> str | None:
    """Say which options are set."""
    said = ", ".join(f"{name}={value}" for name, value in OPTIONS.items())
    return f"gradcheck-plus: {said}" if said else None
