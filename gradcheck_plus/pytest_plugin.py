"""The pytest plugin: options that set the defaults of checks, for a whole test run.

Loading it imports neither torch nor Hypothesis: a test run that checks no gradient pays nothing.
"""

import pytest

from gradcheck_plus.options import OPTIONS

_GROUP = "gradcheck-plus"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ``--gradcheck-*`` options."""
    group = parser.getgroup(
        _GROUP, "gradcheck-plus: do checkpoints and pipeline stages leave the gradients that autograd leaves?"
    )
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
    OPTIONS.clear()
    OPTIONS.update({name: value for name, value in values.items() if value is not None})


def pytest_unconfigure() -> None:
    """Forget them again, for whoever runs pytest in this process next."""
    OPTIONS.clear()


def pytest_report_header() -> str | None:
    """Say which options are set."""
    said = ", ".join(f"{name}={value}" for name, value in OPTIONS.items())
    return f"gradcheck-plus: {said}" if said else None
