"""Several jobs at once, each in one of some worker processes, which takes the next one when it is done."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Generic, TypeVar

from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.remote import RemoteRunner

T = TypeVar("T")
#: What is to be done with a runner; it turns the runner to the searches that it needs.
Job = Callable[["Runners"], T]


class Runners:
    """One worker process, made when it is first wanted and turned from one search to the next."""

    def __init__(self, stack: ExitStack, stop: Callable[[], bool]) -> None:
        self.stack, self.stop = stack, stop
        self.runner: RemoteRunner | None = None

    def turned_to(self, search: Search) -> RemoteRunner:
        """Return the runner, with this search to run."""
        if self.runner is None:
            self.runner = self.stack.enter_context(RemoteRunner(search, stop=self.stop))
        else:
            self.runner.turn_to(search)
        return self.runner


class Several(Generic[T]):
    """Does jobs in some processes. Iterating yields (number of the job, result) as they are done.

    Args:
        jobs: what is to be done, in the order in which it is begun.
        processes: how many at a time.

    An exception of a job is raised where the results are taken. When the iteration ends, however it does, all processes have
    ended.
    """

    def __init__(self, jobs: Sequence[Job[T]], processes: int) -> None:
        self.jobs, self.processes = jobs, min(processes, len(jobs))
        self.waiting = iter(enumerate(jobs))
        self.done: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()
        self.lock, self.stopped = threading.Lock(), threading.Event()

    def __iter__(self) -> Iterator[tuple[int, T]]:
        """Do the jobs."""
        threads = [threading.Thread(target=self._work) for _ in range(self.processes)]
        for thread in threads:
            thread.start()
        try:
            for _ in self.jobs:
                number, result, error = self.done.get()
                if error is not None:
                    raise error
                assert result is not None
                yield number, result
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join()

    def _work(self) -> None:
        """Take one job after another, until there is none or somebody stops."""
        with ExitStack() as stack:
            runners = Runners(stack, self.stopped.is_set)
            while not self.stopped.is_set():
                with self.lock:
                    number, job = next(self.waiting, (-1, None))
                if job is None:
                    return
                try:
                    self.done.put((number, job(runners), None))
                except BaseException as error:  # an interrupt is how a job is stopped, too
                    self.done.put((number, None, error))
                    return
