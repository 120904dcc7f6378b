"""The defaults that a test run may set for `Settings`: options of the pytest plugin, which must not import anything heavy."""

from typing import Any

#: Fields of `gradcheck_plus.Settings` and their values in this process; ``out`` is the folder for repros and replays.
OPTIONS: dict[str, Any] = {}
