"""The named checks, one a file. To add one, add a file with a `CHECK`, and its page in ``docs/checks/``."""

import importlib
import pkgutil

from gradcheck_plus.functions.checks.check import CHECKS, Check, Refused, Scene

__all__ = ["CHECKS", "Check", "Refused", "Scene"]

for _module in pkgutil.iter_modules(__path__):
    _entry = getattr(importlib.import_module(f"{__name__}.{_module.name}"), "CHECK", None)
    if _entry is not None:
        CHECKS.add(_entry)
