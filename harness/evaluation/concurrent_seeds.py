"""Several checkpoints at once: each predict and each scorer is a process of its own, and the
harness waits for them in threads.

What is told comes in the order of the seeds, and the ledger is written by the caller's thread
alone. Side by side a predict may lack memory or time that it has alone: such a failure is asked
again alone before it counts.
"""

import os
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from harness.clock import Clock
from harness.domain.sandbox import Sandbox, machine_share
from harness.errors import HarnessError
from harness.evaluation.evaluate_run import EvaluationOutcome, EvaluationRequest, evaluate_run
from harness.evaluation.weights_probe import SeedAnswers
from harness.process import StoppedError, stopping_at
from harness.sandbox.reach import accelerators

_LEAST_BYTES = 512 << 20
_COPIES = 4
"""How often a checkpoint or a table may lie in memory, read and in use."""
_PAUSE_S = 0.1
_BY_ROOM = frozenset({"predict_crashed", "predict_timed_out"})

Doubtful = Callable[[EvaluationRequest, EvaluationOutcome], bool]


def places(requests: Sequence[EvaluationRequest], sizes: Sequence[int]) -> int:
    """How many run at once: by cores and memory; one where there is a GPU, whose memory nobody
    shares out. `sizes`: of the checkpoints, bytes."""
    if len(requests) < 2 or accelerators():
        return 1
    there = [one.table.path for one in requests if one.table.path.exists()]
    tables = max(
        (path.stat().st_size for path in there), default=0
    )  # none in a clone: its rows are on another machine
    each = _LEAST_BYTES + _COPIES * (max(sizes) + tables)
    return max(1, min(len(requests), _cores(), machine_share() // each))


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def short_of_room(outcome: EvaluationOutcome) -> bool:
    """Whether it may fail for what ran beside it."""
    return any(found.code in _BY_ROOM for found in outcome.findings)


def evaluated(
    requests: Sequence[EvaluationRequest],
    sandbox: Sandbox,
    clock: Clock,
    *,
    at_once: int,
    doubtful: Doubtful,
) -> Generator[EvaluationOutcome, None, None]:
    """The outcome of each request, in their order. `doubtful`: whether to ask once more, alone;
    once an answer is the same alone, the others stand. Raises what `evaluate_run` raises, with the
    seed, and what a request's `before_predict` raises, which is called by this thread."""
    answers = SeedAnswers()
    requests = [replace(request, answers=answers) for request in requests]
    if at_once < 2:
        for request in requests:
            yield evaluate_run(request, sandbox, clock)
        return
    room = _Room(sandbox, clock, at_once)
    try:
        for request in requests:
            room.start(request)
        alone = True
        for place, request in enumerate(requests):
            outcome = room.outcome(place)
            if alone and doubtful(request, outcome):
                room.wait()
                outcome = evaluate_run(request, sandbox, clock)
                alone = not doubtful(request, outcome)
            yield outcome
    finally:
        room.close()


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A worker is about to show rows, and waits until that is allowed."""

    call: Callable[[], None]
    done: threading.Event = field(default_factory=threading.Event)


_Ended = Future[EvaluationOutcome]


class _Room:
    """The threads, and what they tell this one."""

    def __init__(self, sandbox: Sandbox, clock: Clock, at_once: int) -> None:
        self._sandbox, self._clock = sandbox, clock
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="evaluate")
        self._told: queue.SimpleQueue[_Asked | _Ended] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._started: list[_Ended] = []
        self._seeds: list[int] = []

    def start(self, request: EvaluationRequest) -> None:
        self._seeds.append(request.seed)
        started = self._pool.submit(self._work, request)
        self._started.append(started)
        started.add_done_callback(self._told.put)

    def outcome(self, place: int) -> EvaluationOutcome:
        """Of the request that was started as the `place`-th, from 0."""
        while not self._started[place].done():
            self._listen()
        try:
            return self._started[place].result()
        except HarnessError as error:
            error.message = f"Seed {self._seeds[place]}: {error.message}"
            raise

    def wait(self) -> None:
        """Until all have ended."""
        while not all(one.done() for one in self._started):
            self._listen()

    def close(self) -> None:
        """Nothing that was started runs on."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def _listen(self) -> None:
        told = self._told.get()
        if isinstance(told, _Asked):
            told.call()
            told.done.set()

    # The threads' side

    def _work(self, request: EvaluationRequest) -> EvaluationOutcome:
        asking = replace(request, before_predict=lambda: self._ask(request.before_predict))
        with stopping_at(self._stop):
            return evaluate_run(asking, self._sandbox, self._clock)

    def _ask(self, call: Callable[[], None]) -> None:
        asked = _Asked(call=call)
        self._told.put(asked)
        while not asked.done.wait(_PAUSE_S):
            if self._stop.is_set():
                raise StoppedError
