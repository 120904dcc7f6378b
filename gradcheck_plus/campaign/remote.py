"""The campaign's side of a worker process: asks it, watches it, and begins anew where a case hung or killed it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from select import select
from typing import IO

import msgspec

from gradcheck_plus.campaign.about import not_seen
from gradcheck_plus.campaign.inflight import Inflight, stop_file
from gradcheck_plus.campaign.messages import Explain, FindCase, Inspect, Judge, Judged, Reply, Request, RunBlock, Setup
from gradcheck_plus.campaign.plan import Block, Described, Explained, Failure, Inspected, Key, Outcome, Search
from gradcheck_plus.case import Case
from gradcheck_plus.errors import GradcheckPlusError, InvalidArgument, check_encodable
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.traits import traits

#: Cases of one check that may hang or kill the process before it is left at that.
MOST_LOST = 3
#: Seconds that importing the targets may take, whatever a case may: large projects need long for that.
IMPORTING = 300.0
_TICK = 0.1
_SHUTDOWN = 2.0
#: Seconds that the running case has, after an interrupt, before its block is given up.
_PATIENCE = 5.0


class ToolFailed(GradcheckPlusError):  # noqa: N818 - a condition
    """The tool itself failed, with the traceback of its worker."""


class Lost(Exception):  # noqa: N818 - a condition
    """The worker hung or died while it ran a case."""

    def __init__(self, phase: str, number: int, mismatch: Mismatch) -> None:
        super().__init__(mismatch.message)
        self.phase, self.number, self.mismatch = phase, number, mismatch


class RemoteRunner:
    """Runs a check in a process of its own. A context manager: leaving it ends the process.

    Args:
        search: what to search; its targets must be importable.
        tick: called now and then while a block runs, with the number of the case that is running.
        stop: asked now and then while an answer is awaited; if it says so, that is an interrupt.

    Raises:
        InvalidArgument: the targets, contract, traits or device cannot be used.
        ToolFailed: the worker failed by a mistake of ours.
    """

    def __init__(
        self, search: Search, tick: Callable[[int], None] = lambda _: None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.tick, self.stop = tick, stop
        self._take(search)
        self.folder = tempfile.TemporaryDirectory(prefix="gradcheck_plus_")
        self.inflight = Path(self.folder.name) / "inflight"
        self.process: subprocess.Popen[bytes] | None = None
        self._busy = False  # between a request and its reply
        self.received = b""

    def _take(self, search: Search) -> None:
        check_encodable("target", search.module or search.target)
        check_encodable("inputs", search.inputs)
        check_encodable("reference", search.reference)
        check_encodable("contract", search.contract)
        self.search, self.timeout = search, search.settings.case_timeout
        self.probe, self.lost = True, 0

    def __enter__(self) -> "RemoteRunner":
        """Start the worker."""
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker."""
        self._kill()
        self.folder.cleanup()

    def turn_to(self, search: Search) -> None:
        """Run another search, in the same process if that is well: starting one takes longer than many a check."""
        self._take(search)
        if self._busy or self.process is None:
            self._start()
        else:
            self._set_up()

    # what a runner does ---------------------------------------------------------------------------------------------

    def describe(self) -> Described:
        """Say what is run."""
        return self.described

    def block(self, block: Block) -> Outcome:
        """Run one block. A case that hangs or kills the process is a failure of the block like any other."""
        failures: list[Failure] = []
        while True:
            try:
                outcome = self._outcome(block)
            except Lost as lost:
                self.lost += 1
                failures.append(self._failure(block, lost))
                last = not self.search.settings.keep_going or self.lost >= MOST_LOST
                skip = block.skip | {lost.number}
                block = msgspec.structs.replace(block, skip=skip, stop=lost.number if last else 0)
                continue
            assert outcome is not None
            outcome.failures += failures
            outcome.counts.run += len(failures)
            outcome.counts.judged += len(failures)
            outcome.unfinished = outcome.unfinished or bool(block.stop)
            return outcome

    def _outcome(self, block: Block) -> Outcome | None:
        """Run a block; after an interrupt, only to the end of the case that is running."""
        try:
            return self._ask(RunBlock(block)).outcome
        except KeyboardInterrupt:
            stop_file(self.inflight).touch()
            return self._answered(_PATIENCE).outcome

    def _failure(self, block: Block, lost: Lost) -> Failure:
        case = self.case_of(block, lost.number)
        return Failure(block.number, lost.number, case, (lost.mismatch,), traits(case))

    def case_of(self, block: Block, number: int) -> Case:
        """Return a case of a block without running it."""
        case = self._ask(FindCase(block, number)).case
        assert case is not None
        return case

    def explain(self, failure: Failure, key: Key, seconds: float | None, *, hold: str = "") -> Explained | None:
        """Shrink and explain a failure; None if it does not fail any more, or cannot be run here."""
        skip: frozenset[int] = frozenset()
        for _ in range(MOST_LOST):
            try:
                return self._ask(Explain(failure, key, seconds, hold, skip)).explained
            except Lost as lost:
                if not lost.number:
                    return None
                skip |= {lost.number}
        return None

    def inspect(self, case: Case, mismatch: Mismatch) -> Inspected:
        """Return what a report needs to know of a case beyond what it says itself."""
        try:
            inspected = self._ask(Inspect(case, mismatch)).inspected
        except Lost:
            return Inspected(divergence=not_seen(case, mismatch))
        assert inspected is not None
        return inspected

    def judge(self, case: Case) -> Judged:
        """Judge one case."""
        try:
            judged = self._ask(Judge(case)).judged
        except Lost as lost:
            return Judged("fault", (lost.mismatch,))
        assert judged is not None
        return judged

    # the process ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._kill()
        for file in (self.inflight, stop_file(self.inflight)):
            file.unlink(missing_ok=True)
        self.errors = open(Path(self.folder.name) / "stderr", "w+b")  # noqa: SIM115 - open as long as the process lives
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradcheck_plus.campaign.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,  # an interrupt is for the campaign to handle, which then ends the worker
        )
        self._busy, self.received = False, b""
        self._set_up()

    def _set_up(self) -> None:
        """Tell the worker what is searched, and hear what it says of that."""
        try:
            described = self._ask(Setup(self.search, str(self.inflight), self.probe)).described
        except Lost as lost:
            if lost.phase != "probe" or not self.probe:
                raise self._unusable(lost) from lost
            self.probe = False
            self._start()
            return
        assert described is not None
        self.described = described

    def _unusable(self, lost: Lost) -> InvalidArgument:
        """Return the error for targets that do not come back before there is a case to blame."""
        s, got = self.search, lost.mismatch.got
        said = "did not end" + got.removeprefix("none") if lost.mismatch.kind == "hang" else f"took its process along ({got})"
        target = f"`target`={s.module or s.target!r}"
        if lost.phase == "load":
            what = f" with `inputs`={s.inputs!r}" if s.inputs else ""
            return InvalidArgument(f"{target}{what}: importing {said}. Write a target that can be imported.")
        if s.kind == "function":
            return InvalidArgument(
                f"{target}: calling it with the sample call {said}. Write a function and a sample call that end, or a longer "
                f"--case-timeout."
            )
        if not s.module:
            return InvalidArgument(f"{target}: asking for its signature {said}. Write a plain function.")
        return InvalidArgument(
            f"{target}: calling it with `inputs`={s.inputs!r} {said}. Write a module and a sample call that end, or a longer "
            f"--case-timeout."
        )

    def _kill(self) -> None:
        """End the worker and what its subject has started: all of that is in the session that the worker leads."""
        if self.process is None:
            return
        process, self.process = self.process, None
        assert process.stdin is not None and process.stdout is not None
        for stream in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                stream.close()
        try:
            if not self._busy:
                process.wait(_SHUTDOWN)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError, PermissionError):  # there may be nobody left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.errors.close()

    def _ask(self, request: Request) -> Reply:
        """Send a request and wait for the reply, as long as cases go on.

        Raises:
            Lost: one case took longer than it may, or the process ended.
        """
        if self._busy:  # the last worker was lost, or an interrupt came before its reply
            self._start()
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        self._busy = True
        self._touch(request)
        try:
            self.process.stdin.write(msgspec.json.encode(request) + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self._raise_lost(None)
        return self._answered()

    def _answered(self, patience: float = inf) -> Reply:
        """Return the reply to the request that was sent, if it comes within some seconds."""
        assert self.process is not None and self.process.stdout is not None
        reply = msgspec.json.decode(self._line(self.process.stdout, time.monotonic() + patience), type=Reply)
        self._busy = False
        if reply.wrong_call:
            raise InvalidArgument(reply.wrong_call)
        if reply.failed:
            raise ToolFailed(reply.failed)
        return reply

    def _touch(self, request: Request) -> None:
        """Say in the in-flight file that nothing is running yet."""
        if not isinstance(request, Setup):
            Inflight(str(self.inflight)).write("idle", 0, 0)

    def _line(self, answers: IO[bytes], until: float) -> bytes:
        assert self.process is not None
        seen, since = None, time.monotonic()
        while not self.received.endswith(b"\n"):
            if time.monotonic() > until or self.stop():
                raise KeyboardInterrupt
            ended = self.process.poll() is not None
            ready, _, _ = select([answers], [], [], _TICK)
            if ready:
                part = os.read(answers.fileno(), 1 << 16)
                if not part:
                    self._raise_lost(None)
                self.received += part
                continue
            if ended:  # though a child of its has the other end of the pipe still open
                self._raise_lost(None)
            now = self.inflight.read_bytes() if self.inflight.exists() else None
            if now != seen:
                seen, since = now, time.monotonic()
                self._report_progress()
            elif time.monotonic() - since > (limit := self._limit(now)):
                self._raise_lost(limit)
        received, self.received = self.received, b""
        return received

    def _report_progress(self) -> None:
        running = Inflight.read(self.inflight)
        if running and running[0] == "block":
            self.tick(running[2])

    def _limit(self, content: bytes | None) -> float:
        """Return how many seconds what is running may take."""
        phase = (content or b"idle").split()[0]
        return inf if phase == b"idle" else max(IMPORTING, self.timeout) if phase == b"load" else self.timeout

    def _raise_lost(self, timeout: float | None) -> None:
        """Raise `Lost` for the case that is in flight.

        Raises:
            Lost: always, unless no case was begun.
            ToolFailed: no case was begun.
        """
        assert self.process is not None
        running = Inflight.read(self.inflight)
        if timeout is not None:
            mismatch = Mismatch("hang", "call", "forward or backward", "an answer", f"none within {timeout:g} s")
        else:
            ended = _ended(self.process.wait())
            mismatch = Mismatch("crash", "call", "forward or backward", "an answer", f"the process ended: {ended}")
        if running is None or running[0] == "idle":
            raise ToolFailed(f"The worker was lost before it ran a case: {mismatch.got}\n{self._said()}")
        raise Lost(running[0], running[2], mismatch)

    def _said(self) -> str:
        self.errors.flush()
        text = Path(self.errors.name).read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-20:])


def _ended(code: int) -> str:
    """Return how a process ended, in words.

    Example:
        >>> _ended(-11), _ended(3)
        ('signal SIGSEGV', 'exit code 3')
    """
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
