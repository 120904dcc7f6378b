"""Run one case under one subject and keep everything that it left behind."""

import contextlib
import sys
import warnings
from typing import Any, Protocol

from gradcheck_plus import support
from gradcheck_plus.case import Case
from gradcheck_plus.errors import first_line, said
from gradcheck_plus.execute import checkpoint, split, stage, wrapper
from gradcheck_plus.execute.build import Variant
from gradcheck_plus.execute.device import wait
from gradcheck_plus.execute.meter import Meter
from gradcheck_plus.execute.tape import Tape, Unreplayable
from gradcheck_plus.execute.world import World, undisturbed
from gradcheck_plus.graph.running import RunRecording
from gradcheck_plus.operations.device import suits_cudnn
from gradcheck_plus.record import Raised, Record
from gradcheck_plus.subject import CALLS, Kind, Subject

__all__ = ["Meter", "Tape", "Unreplayable", "Variant", "execute", "is_answer", "reference"]


class Driver(Protocol):
    """Runs the forwards and backwards of a case under one kind of implementation."""

    def __init__(self, world: World, call: Any) -> None: ...

    def forward(self, number: int) -> None:
        """Run forward `number`."""

    def backward(self, number: int, repetition: int, *, retain: bool) -> None:
        """Run a backward of forward `number`; keep its graph if `retain`."""


DRIVERS: dict[Kind, type[Driver]] = {
    "checkpoint": checkpoint.CheckpointDriver,
    "wrapper": wrapper.WrapperDriver,
    "stage-backward": stage.StageDriver,
    "split-backward": split.SplitDriver,
}
REFERENCES: dict[Kind, Any] = {
    "checkpoint": support.plain_checkpoint,
    "wrapper": support.plain_wrap,
    "stage-backward": support.plain_stage_backward,
    "split-backward": (support.plain_backward_input, support.plain_backward_weight),
}


def reference(kind: Kind) -> Subject:
    """Return plain autograd, to be run as subjects of this kind are."""
    return Subject("plain", kind, REFERENCES[kind], contract="strict")


def execute(
    case: Case,
    subject: Subject,
    *,
    device: str = "cpu",
    variant: Variant = "plain",
    tape: Tape | None = None,
    poison: bool = True,
    meter: Meter | None = None,
    recorder: RunRecording | None = None,
) -> Record:
    """Run `case` once under `subject` and return everything it left behind.

    Generators, grad mode, autocast and default dtype are as before when this returns. An exception of the subject is part
    of the record; an interrupt, or what ends a test of pytest, is raised on.

    Args:
        case: what to run.
        subject: whom to run it under.
        device: where tensors live.
        variant: ``truth`` computes in double precision, ``up`` and ``down`` move every value by one ULP.
        tape: records the noise that is drawn, or puts back what it recorded.
        poison: memory is handed out filled with NaN, so that reading what was never written shows, and repeatably.
        meter: measures what the execution costs; its hooks may change what a subject does.
        recorder: records the operations and the backwards.

    Raises:
        InvalidArgument: the case cannot be run under this kind of subject, or names a target that cannot be loaded.
        Unreplayable: `tape` cannot put back the noise of this case.
    """
    cudnn = suits_cudnn(case)
    with warnings.catch_warnings(record=True) as caught, undisturbed(device, poison=poison, cudnn=cudnn):
        warnings.simplefilter("always")
        world = World(case, device, variant, CALLS[subject.kind])
        driver = DRIVERS[subject.kind](world, subject.under(case.plan))
        world.seed()
        if meter:
            meter.watch(world.model)
        if recorder is not None:
            recorder.name(world.model)
        with tape or contextlib.nullcontext(), contextlib.nullcontext() if recorder is None else recorder:
            error = _run(world, driver, meter)
            if recorder is not None:
                recorder.raised = error
        if recorder is not None:
            recorder.name({f"params[{name!r}]": p for name, p in world.trainable.items()} | world.leaves)
        record = world.finish()
    record.warnings = sorted({str(w.message).partition("\n")[0] for w in caught})
    return record


def _run(world: World, driver: Driver, meter: Meter | None) -> BaseException | None:
    """Run the schedule; an exception ends it, goes into the record, and is returned."""
    environment, phase = world.case.environment, "forward"
    forwards, repetitions = 0, dict.fromkeys(range(environment.forwards), 0)
    try:
        for position, step in enumerate(environment.schedule):
            if step == "F":
                phase = "forward"
                with meter.forward() if meter else contextlib.nullcontext():
                    driver.forward(forwards)
                forwards += 1
                world.note_state("forward")
                if environment.draws_after:
                    world.space["draw"](environment.draws_after)
                if environment.changes_parameter:
                    world.change_parameter()
            else:
                phase, number = "backward", int(step)
                retain = step in environment.schedule[position + 1 :]
                driver.backward(number, repetitions[number], retain=retain)
                world.separate_gradients()
                repetitions[number] += 1
        wait(world.device)
        world.note_state("backward")
    except stage.StructureDiffersError:
        return None  # the record says it
    except Unreplayable:
        raise
    except BaseException as error:
        if not is_answer(error):
            raise
        world.record.raised = Raised("forward" if phase == "forward" else "backward", type(error).__name__, _message(error))
        return error
    return None


def _message(error: BaseException) -> str:
    """Return what an exception says; one that only wraps another, as torch's pipelining has them, with what that says."""
    cause = error.__cause__
    return said(error) if cause is None else f"{first_line(error)} {type(cause).__name__}: {said(cause)}"


def is_answer(error: BaseException) -> bool:
    """Is an exception the answer of the subject that it came out of, and not meant for the whole process or test?"""
    outcomes = sys.modules.get("_pytest.outcomes")  # as `pytest.fail` raises them, and pytest-timeout with it
    return not isinstance(error, (KeyboardInterrupt, *([outcomes.OutcomeException] if outcomes else [])))
