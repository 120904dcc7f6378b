"""``gradcheck-plus trace``. It imports torch, and runs what it is given in this process."""

import argparse
import contextlib
import inspect
import random
import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec
import torch

import gradcheck_plus
from gradcheck_plus.cli.selecting import select, select_pairs
from gradcheck_plus.errors import InvalidArgument, check_encodable, first_line
from gradcheck_plus.execute.device import repeatable
from gradcheck_plus.execute.targets import load
from gradcheck_plus.graph.pairing import SideBySide, side_by_side
from gradcheck_plus.graph.recording import Recording
from gradcheck_plus.graph.showing import remarks
from gradcheck_plus.graph.tracing import recorded
from gradcheck_plus.report.files import check_file, check_places, write, write_out
from gradcheck_plus.report.picture import picture
from gradcheck_plus.report.trace import Trace, title, trace_text
from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH

_OWN = str(Path(gradcheck_plus.__file__).parent)
_FORM = "Write a callable without arguments that returns outputs or a loss, or that runs the backward itself."


def trace(options: argparse.Namespace) -> int:
    """Record a run, and perhaps a reference, show what was asked for, and return the exit code."""
    _check_places(options)
    # The reference runs first, as it is first everywhere.
    reference = _recording("against", options.against, options.seed) if options.against else None
    subject = _recording("target", options.target, options.seed)
    _check_ran(options, subject, reference)
    sides = side_by_side(reference, subject) if reference is not None else None
    data = subject.data()
    nodes = select(data.nodes, options)
    shown = Trace(
        exit_code=MATCH if sides is None else _exit_code(sides),
        torch=data.torch,
        rank=data.rank,
        seed=options.seed,
        target=options.target,
        total=len(data.nodes),
        nodes=nodes,
        remarks=tuple(remarks(subject.nodes)),
        against=options.against,
        side_by_side=sides and select_pairs(sides, nodes, options),
    )
    _write(shown, options)
    return shown.exit_code


def _exit_code(sides: SideBySide) -> int:
    if sides.divergence is not None:
        return FAULT
    return MATCH if sides.aligned else INCONCLUSIVE


def _check_places(options: argparse.Namespace) -> None:
    for name in ("target", "against"):
        check_encodable(name, getattr(options, name) or "")
    check_places(json=options.json, out=None)
    if options.svg == "-":
        raise InvalidArgument("`svg`='-' stands for no file. Write the path of one.")
    if options.svg:
        check_file("svg", options.svg)


def _write(shown: Trace, options: argparse.Namespace) -> None:
    if options.svg:
        pairs = shown.side_by_side.nodes if shown.side_by_side else ()
        different = {pair.subject for pair in pairs if pair.differs and pair.subject is not None}
        write(Path(options.svg), picture(shown.nodes, title(shown), different=different))
    if options.json:
        text = msgspec.json.format(msgspec.json.encode(shown), indent=1).decode() + "\n"
        if options.json == "-":
            write_out(text)
            return
        write(Path(options.json), text)
    write_out(trace_text(shown))


# the run --------------------------------------------------------------------------------------------------------------


def _recording(option: str, target: str, seed: int) -> Recording:
    """Record what a target does, from a fixed state of the random number generators, and with torch's deterministic kernels.

    Raises:
        InvalidArgument: it cannot be imported or called without arguments, or leaves no backward to show.
    """
    with contextlib.redirect_stdout(sys.stderr):  # what the target prints is no part of the report
        _seed(seed)
        run = _loaded(option, target)
        _check_callable(option, target, run)
        _seed(seed)
        try:
            with repeatable("cuda" if torch.cuda.is_available() else "cpu", poison=True):
                return recorded(run)
        except InvalidArgument as error:
            raise InvalidArgument(f"`{option}`={target!r}: {error}") from error
        except SystemExit as left:
            raise InvalidArgument(f"`{option}`={target!r} raised SystemExit: {left.code}. {_FORM}") from left


def _seed(seed: int) -> None:
    """Seed every generator that a target may draw from without having made it."""
    torch.manual_seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


def _loaded(option: str, target: str) -> Any:
    try:
        return load(target)
    except InvalidArgument as error:
        if error.__cause__ is not None:
            _show_traceback(error.__cause__)
        raise InvalidArgument(str(error).replace("`target`=", f"`{option}`=", 1)) from error


def _check_callable(option: str, target: str, run: Any) -> None:
    if not callable(run):
        raise InvalidArgument(f"`{option}`={target!r} is of type {type(run).__name__}, not callable. {_FORM}")
    try:
        parameters = inspect.signature(run).parameters.values()
    except ValueError:  # some callables of C have none
        return
    needed = [parameter.name for parameter in parameters if _is_needed(parameter)]
    if needed:
        raise InvalidArgument(f"`{option}`={target!r} needs arguments: {', '.join(needed)}. {_FORM}")


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is inspect.Parameter.empty and not variadic


def _check_ran(options: argparse.Namespace, subject: Recording, reference: Recording | None) -> None:
    """Do nothing if the run did not raise; with a reference, if it is not both that did: that one raises is a difference.

    Raises:
        InvalidArgument: there is nothing to show.
    """
    if subject.raised is None or (reference is not None and reference.raised is None):
        return
    _show_traceback(subject.raised)
    both = f", and so does `against`={options.against!r}" if reference is not None else ""
    said = first_line(subject.raised)
    raise InvalidArgument(f"`target`={options.target!r} raises {type(subject.raised).__name__}{both}: {said}. {_FORM}")


def _show_traceback(error: BaseException) -> None:
    """Print the traceback of somebody else's exception, without the frames that are ours."""
    said = traceback.TracebackException.from_exception(error)
    one: traceback.TracebackException | None = said
    while one is not None:
        kept = [frame for frame in one.stack if not frame.filename.startswith((_OWN, "<frozen importlib"))]
        one.stack = traceback.StackSummary.from_list(kept)
        one = one.__cause__ or one.__context__
    if said.stack:
        sys.stderr.write("".join(said.format()))
