"""gradcheck-plus: do two ways of taking the gradients of one function leave the same things behind?

The public names, each imported when it is first used, since torch costs seconds and the command line and the pytest plugin
must start without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from gradcheck_plus.version import __version__

if TYPE_CHECKING:
    from gradcheck_plus import strategies, subjects
    from gradcheck_plus.case import Case
    from gradcheck_plus.checks import (
        assert_right_function,
        assert_same_gradients,
        check_checkpoint,
        check_function,
        check_module,
        check_split_backward,
        check_stage_backward,
        check_wrapper,
    )
    from gradcheck_plus.divergence import Divergence
    from gradcheck_plus.errors import GradcheckPlusError, GradientMismatch, Inconclusive, InvalidArgument
    from gradcheck_plus.functions.gradcheck import gradcheck
    from gradcheck_plus.graph import (
        ForwardRecording,
        Node,
        NodeCheck,
        Recording,
        RunRecording,
        first_divergence,
        record_backward,
        record_forward,
        record_run,
    )
    from gradcheck_plus.operations import Operation, Partner
    from gradcheck_plus.operations import register as register_operation
    from gradcheck_plus.results import CheckResult, Fault
    from gradcheck_plus.settings import Settings

__all__ = [
    "Case",
    "CheckResult",
    "Divergence",
    "Fault",
    "ForwardRecording",
    "GradcheckPlusError",
    "GradientMismatch",
    "Inconclusive",
    "InvalidArgument",
    "Node",
    "NodeCheck",
    "Operation",
    "Partner",
    "Recording",
    "RunRecording",
    "Settings",
    "__version__",
    "assert_right_function",
    "assert_same_gradients",
    "check_checkpoint",
    "check_function",
    "check_module",
    "check_split_backward",
    "check_stage_backward",
    "check_wrapper",
    "first_divergence",
    "gradcheck",
    "record_backward",
    "record_forward",
    "record_run",
    "register_operation",
    "strategies",
    "subjects",
]

_HOMES = {
    "Case": "gradcheck_plus.case",
    "CheckResult": "gradcheck_plus.results",
    "Divergence": "gradcheck_plus.divergence",
    "Fault": "gradcheck_plus.results",
    "ForwardRecording": "gradcheck_plus.graph",
    "GradcheckPlusError": "gradcheck_plus.errors",
    "GradientMismatch": "gradcheck_plus.errors",
    "Inconclusive": "gradcheck_plus.errors",
    "InvalidArgument": "gradcheck_plus.errors",
    "Node": "gradcheck_plus.graph",
    "NodeCheck": "gradcheck_plus.graph",
    "Operation": "gradcheck_plus.operations",
    "Partner": "gradcheck_plus.operations",
    "Recording": "gradcheck_plus.graph",
    "RunRecording": "gradcheck_plus.graph",
    "Settings": "gradcheck_plus.settings",
    "assert_right_function": "gradcheck_plus.checks",
    "assert_same_gradients": "gradcheck_plus.checks",
    "check_checkpoint": "gradcheck_plus.checks",
    "check_function": "gradcheck_plus.checks",
    "check_module": "gradcheck_plus.checks",
    "check_split_backward": "gradcheck_plus.checks",
    "check_stage_backward": "gradcheck_plus.checks",
    "check_wrapper": "gradcheck_plus.checks",
    "first_divergence": "gradcheck_plus.graph",
    "gradcheck": "gradcheck_plus.functions.gradcheck",
    "record_backward": "gradcheck_plus.graph",
    "record_forward": "gradcheck_plus.graph",
    "record_run": "gradcheck_plus.graph",
    "register_operation": "gradcheck_plus.operations:register",
}

if not TYPE_CHECKING:  # a module that answers every name would hide misspelt imports from type checkers

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        if name in ("strategies", "subjects"):
            return import_module(f"gradcheck_plus.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'gradcheck_plus' has no attribute {name!r}")
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute or name)
