"""What the command line takes."""

import argparse

from gradcheck_plus.settings import PROFILES
from gradcheck_plus.subject import KINDS
from gradcheck_plus.version import __version__

_TARGET = "package.module:attribute or path/to/file.py:attribute"
_CODES = (
    "Exit codes: 0 nothing wrong, 1 a fault, 2 the call is wrong (the message says what to write instead), 3 inconclusive, "
    "4 the tool itself failed."
)
_TRACE_CODES = (
    "Exit codes: 0 shown, and the runs agree; 1 with --against, they part; 2 the call is wrong (the message says what to write "
    "instead), or TARGET raises; 3 interrupted, or --against has nothing in common with it; 4 the tool itself failed."
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="gradcheck-plus",
        description="Does a checkpoint or a pipeline stage leave the gradients that plain autograd leaves?",
        epilog=_CODES,
    )
    top.add_argument("--version", action="version", version=f"gradcheck-plus {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _check(commands.add_parser("check", help="search for a case on which an implementation and plain autograd part"))
    _replay(commands.add_parser("replay", help="run cases that were found again", epilog=_CODES))
    _trace(commands.add_parser("trace", help="show every node of a backward, or where two runs part", epilog=_TRACE_CODES))
    _list(commands.add_parser("list", help="show the operations, traits, subjects or contracts"))
    _selftest(
        commands.add_parser(
            "selftest",
            help="does the detector work here? hunts for every planted fault, and checks its twin",
            epilog=_CODES,
        )
    )
    _demo(commands.add_parser("demo", help="check torch's own subjects, a planted fault and its twin, in under two minutes"))
    return top


def _check(check: argparse.ArgumentParser) -> None:
    kinds = check.add_subparsers(dest="kind", required=True, metavar="KIND")
    checkpoint = kinds.add_parser(
        "checkpoint", help="an activation checkpoint: checkpoint(function, *args, **kwargs)", epilog=_CODES
    )
    checkpoint.add_argument("target", metavar="TARGET", help=f"the checkpoint: {_TARGET}")
    wrapper = kinds.add_parser("wrapper", help="what wraps modules: wrap(module) -> module", epilog=_CODES)
    wrapper.add_argument("target", metavar="TARGET", help=f"the wrapper: {_TARGET}")
    stage = kinds.add_parser(
        "stage-backward",
        help="a pipeline stage's backward: stage_backward(stage_output, output_grads, input_values) -> gradients",
        epilog=_CODES,
    )
    stage.add_argument("target", metavar="TARGET", help=f"the stage backward: {_TARGET}")
    split = kinds.add_parser(
        "split-backward", help="a pipeline stage's backward in two passes: of the inputs, then of the parameters", epilog=_CODES
    )
    split.add_argument("target", metavar="TARGET", help=f"the pass that returns the gradients of the inputs: {_TARGET}")
    split.add_argument("second", metavar="TARGET", nargs="?", help="the pass of the parameters; none if TARGET is a pair")
    module = kinds.add_parser(
        "module", help="a module of your own: is it safe to checkpoint? under every built-in checkpoint", epilog=_CODES
    )
    module.add_argument("target", metavar="TARGET", help=f"a callable that makes the module: {_TARGET}")
    module.add_argument(
        "--inputs", required=True, metavar="TARGET", help="a sample call, or what makes one: args, kwargs, or the pair of both"
    )
    module.add_argument("--subject", action="append", metavar="NAME", help="only this built-in checkpoint; may be repeated")
    function = kinds.add_parser(
        "function",
        help="a function with a backward of its own: a torch.autograd.Function, its apply, a custom op, any callable",
        epilog=_CODES,
    )
    function.add_argument("target", metavar="TARGET", help=f"the function: {_TARGET}")
    function.add_argument(
        "--reference", default="", metavar="TARGET", help="a function whose gradients are right (default: differences)"
    )
    function.add_argument(
        "--inputs",
        default="",
        metavar="TARGET",
        help="a sample call, or what makes one: args, kwargs, or the pair of both; or a Hypothesis strategy of these",
    )
    function.add_argument("--check", action="append", metavar="NAME", help="make this named check only; may be repeated")
    function.add_argument(
        "--no-check", action="append", default=[], metavar="NAME", help="leave this check out; may be repeated"
    )
    for kind in (checkpoint, wrapper, stage, split, module, function):
        _common(kind)


def _common(command: argparse.ArgumentParser) -> None:
    search = command.add_argument_group("what is searched")
    search.add_argument(
        "--profile",
        choices=tuple(PROFILES),
        default="default",
        help="how much is run, and what must have been judged (default: default, 500 cases)",
    )
    search.add_argument("--max-examples", type=int, metavar="N", help="cases to run (default: those of the profile)")
    search.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed gives the same result (default: 0)")
    search.add_argument("--time-budget", type=float, metavar="SECONDS", help="begin no further case after this time")
    search.add_argument("--device", default="cpu", help="cpu, cuda or all (default: cpu)")
    search.add_argument("--dtype", action="append", metavar="NAME", help="only values of this dtype; may be repeated")
    search.add_argument("--trait", action="append", metavar="NAME", help="aim at this trait only; may be repeated")
    search.add_argument(
        "--no-trait", action="append", default=[], metavar="NAME", help="no case with this trait; may be repeated"
    )
    search.add_argument("--operation", action="append", metavar="NAME", help="draw from this operation only; may be repeated")
    judged = command.add_argument_group("how it is judged")
    judged.add_argument(
        "--contract", default="", metavar="NAME|FILE", help="what the subject promises (default: that of its kind)"
    )
    judged.add_argument("--no-known", action="store_true", help="report the faults that are known of torch itself, too")
    judged.add_argument("--keep-going", action="store_true", help="report every distinct fault, not only the first")
    judged.add_argument(
        "--case-timeout", type=float, default=30.0, metavar="SECONDS", help="a case that takes longer hangs (default: 30)"
    )
    _output(command)


def _output(command: argparse.ArgumentParser) -> None:
    output = command.add_argument_group("what is written")
    output.add_argument("--json", metavar="FILE", help="write the report as JSON; - is standard output")
    output.add_argument("--out", metavar="DIR", help="the folder for repros and replays (default: gradcheck-plus-out)")
    amount = output.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="one line a check")
    amount.add_argument("-v", "--verbose", action="store_true", help="programs, traits and everything that is excused")


def _replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", nargs="+", metavar="FILE", help="case_*.json, as `check --out` writes them")
    command.add_argument("--target", metavar="TARGET", help="run the case under this implementation instead")
    command.add_argument("--case-timeout", type=float, default=30.0, metavar="SECONDS", help="default: 30")
    command.add_argument("-v", "--verbose", action="store_true", help="show the programs")


def _trace(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "target",
        metavar="TARGET",
        help="a callable without arguments that returns outputs or a loss, or that runs the backward itself: " + _TARGET,
    )
    command.add_argument(
        "--against", metavar="TARGET", help="a reference: say where TARGET parts from it first, and show both side by side"
    )
    command.add_argument("--seed", type=int, default=0, metavar="S", help="of the random numbers of each run (default: 0)")
    shown = command.add_argument_group("which nodes are shown")
    shown.add_argument("--node", metavar="TEXT", help="those with this in their name, such as addmm")
    shown.add_argument("--module", metavar="PATH", help="those of this module and of all in it, such as layers.0")
    shown.add_argument("--leaves", action="store_true", help="those that add to the .grad of a leaf")
    shown.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="from this index on")
    shown.add_argument("--to", dest="last", type=int, metavar="N", help="up to this index")
    shown.add_argument("--nonfinite", action="store_true", help="those that received or returned an infinity or NaN")
    output = command.add_argument_group("what is written")
    output.add_argument("--json", metavar="FILE", help="write what is shown as JSON; - is standard output, without the table")
    output.add_argument("--svg", metavar="FILE", help="write what is shown as a picture, folded by module")


def _list(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=("operations", "traits", "checks", "subjects", "contracts", "faults"))


def _selftest(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", nargs="*", metavar="NAME", help="only these planted faults; `list faults` names them all")
    command.add_argument("--kind", choices=(*KINDS, "function"), help="only faults of this kind")
    command.add_argument("--max-examples", type=int, default=1000, metavar="N", help="cases at most for each (default: 1000)")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed gives the same result (default: 0)")
    command.add_argument("--processes", type=int, metavar="N", help="worker processes (default: one for each processor)")
    command.add_argument("--json", metavar="FILE", help="write the report as JSON; - is standard output")
    command.add_argument("-q", "--quiet", action="store_true", help="no tables")


def _demo(command: argparse.ArgumentParser) -> None:
    command.add_argument("--max-examples", type=int, default=500, metavar="N", help="cases for each subject (default: 500)")
    command.add_argument("--seed", type=int, default=0, metavar="S")
