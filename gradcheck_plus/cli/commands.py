"""The commands, by name."""

import argparse
from collections.abc import Callable

from gradcheck_plus.cli.check import check
from gradcheck_plus.cli.demo import demo
from gradcheck_plus.cli.lists import show
from gradcheck_plus.cli.replaying import replay

COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {"check": check, "demo": demo, "list": show, "replay": replay}
