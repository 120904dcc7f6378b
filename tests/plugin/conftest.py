"""What the tests of the pytest plugin share: a test run of a user's, in a process of its own."""

import importlib.metadata
from collections.abc import Callable

import pytest

PLUGIN = "gradcheck_plus.pytest_plugin"

#: Runs pytest on some code with some options.
Run = Callable[..., pytest.RunResult]


def installed() -> bool:
    """Is the package installed here, so that its entry point loads the plugin?"""
    return any(entry.name == PLUGIN for entry in importlib.metadata.entry_points(group="pytest11"))


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Pytest as a user calls it; where the package is not installed, with the plugin named."""

    def ran(code: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(code)
        named = () if installed() else ("-p", PLUGIN)
        return pytester.runpytest_subprocess(*named, "-p", "no:cacheprovider", *options, timeout=120)

    return ran
