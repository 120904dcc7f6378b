"""The commands, by name."""

import argparse
from collections.abc import Callable

from gradcheck_plus.cli.check import check
from gradcheck_plus.cli.lists import show
from gradcheck_plus.cli.replaying import replay


def _demo(options: argparse.Namespace) -> int:
    from gradcheck_plus.cli.demo import demo  # with the planted faults, which import torch

    return demo(options)


def _selftest(options: argparse.Namespace) -> int:
    from gradcheck_plus.cli.selftest import selftest  # likewise

    return selftest(options)


def _trace(options: argparse.Namespace) -> int:
    from gradcheck_plus.cli.tracing import trace  # which runs its target in this process, and so imports torch

    return trace(options)


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "check": check,
    "demo": _demo,
    "list": show,
    "replay": replay,
    "selftest": _selftest,
    "trace": _trace,
}
