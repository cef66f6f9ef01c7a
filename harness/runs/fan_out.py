"""All seeds of an experiment at once, each with a supervisor of its own where an engine puts it."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.domain.findings import Finding
from harness.domain.plain_text import one_line, plain
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError, RefusedError
from harness.files import atomic_write
from harness.gates.findings import finding
from harness.process import boot_id, harness_command
from harness.runs.closing import close_abandoned
from harness.runs.launchers.launcher import Engine, Placed
from harness.runs.launchers.on_node import (
    ANSWER,
    CANCEL,
    ENDED,
    LOG,
    Watch,
    began,
)
from harness.runs.placement import Order, forget, write_order
from harness.runs.run_tail import Event
from harness.runs.train_job import TrainJob

_POLL_S = 0.2
_ASK_S = 2.0
"""Between two questions whether an engine still knows a job."""
_GRACE_S = 45.0
"""What supervisors may take to close their runs when all is cancelled, beside the runs' grace."""
_LONGEST = 2000
_MORE_MINUTES = 10.0
"""Beside the run's own limit, for its start and its end."""


@dataclass(frozen=True)
class Pace:
    """Seconds."""

    silent_s: float
    """That a run may go on without a row of its own."""
    grace_s: float
    """Between TERM and KILL."""


@dataclass(kw_only=True)
class FanOut:
    """Seeds wait, go, and end; their findings are kept in the order in which they ended."""

    job: TrainJob
    engine: Engine
    environment: Mapping[str, str]
    on_event: Event
    resume: bool
    pace: "Pace"
    findings: list[Finding] = field(default_factory=list)
    problem: HarnessError | None = None
    _going: list["_Seed"] = field(default_factory=list)
    _again: list[int] = field(default_factory=list)
    """Seeds that found the budget kept for what ran then."""
    _ended: int = 0
    _first: bool = True

    def run(self, seeds: Sequence[int]) -> list[Finding]:
        """Train them. The first that does not complete keeps the others from starting. Raises
        KeyboardInterrupt when all that was placed has ended, and the error of a supervisor that
        could not begin."""
        waiting = list(seeds)
        try:
            while waiting or self._going:
                if self.problem is None:
                    self._fill(waiting)
                else:
                    waiting.clear()
                self._look(waiting)
                time.sleep(_POLL_S if self._going else 0)
                may_go_on = self._ended and self.problem is None
                if not waiting and not self._going and may_go_on:
                    waiting, self._again, self._ended = self._again, [], 0
        finally:
            self._cancel()
        # Seeds that no other one can make room for any more.
        self.findings += [_spent(seed) for seed in self._again]
        if self.problem is not None and not isinstance(self.problem, _FailedError):
            raise self.problem
        return self.findings

    def _fill(self, waiting: list[int]) -> None:
        most = self.engine.most
        while waiting and (most is None or len(self._going) < most):
            self._going.append(self._placed(waiting.pop(0)))

    def _placed(self, seed: int) -> "_Seed":
        job = self.job
        order = self._order(seed)
        folder = write_order(job.project.layout, order)
        self._first = False
        words = harness_command("train", job.experiment, "--project", str(job.project.layout.root))
        words += ["--json", "--sandbox", order.sandbox]
        words += ["--placed", folder.name]
        watch = Watch(words, self.environment, folder)
        minutes = job.plan.budget.run_minutes + _MORE_MINUTES
        title = f"{job.experiment} seed {seed}"
        try:
            at = self.engine.submit(watch, title=title, minutes=minutes)
        except HarnessError:
            forget(folder)
            raise
        self._tell(seed, f"given to {self.engine.name}" + (f", job {at.job}" if at.job else ""))
        return _Seed(seed=seed, folder=folder, at=at, tell=self._tell)

    def _order(self, seed: int) -> Order:
        job = self.job
        return Order(
            experiment=job.experiment,
            seed=seed,
            argv=job.argv,
            engine=self.engine.name,
            gpus=self.engine.gpus,
            code=job.snapshot.hash,
            config=job.config,
            asked=dict(job.asked),
            caller=str(job.project.caller),
            session=job.session,
            sandbox=job.sandbox.kind.value,
            resume=self.resume,
            first=self._first,
            silent_s=self.pace.silent_s,
            grace_s=self.pace.grace_s,
            boot=boot_id(),
        )

    def _look(self, waiting: list[int]) -> None:
        for one in list(self._going):
            one.news()
            if (code := one.ended()) is not None:
                self._going.remove(one)
                self._take(one, code, waiting)
            elif one.is_lost():
                self._going.remove(one)
                self._take_lost(one)

    def _take(self, one: "_Seed", code: int, waiting: list[int]) -> None:
        answer = one.answer()
        error = answer.get("error")
        if isinstance(error, dict):
            self.problem = RefusedError(
                f"Seed {one.seed}: {error.get('message')}",
                hint=str(error.get("hint") or ""),
                code=str(error.get("code") or "run_failed"),
            )
        elif not answer:
            self.findings.append(_no_answer(self.engine.name, one, f"ended with {code}"))
            self.problem = self.problem or _FailedError.of(one.seed)
        else:
            found = [Finding.from_plain(found) for found in answer.get("findings", ())]
            if "budget_spent" in {one.code for one in found}:
                self.findings += [one for one in found if one.code != "budget_spent"]
                self._again.append(one.seed)
            else:
                self.findings += found
                self._ended += 1
                self._completed_or_stop(one.seed)
        self.findings += close_abandoned(self.job.project, self.job.experiment, seed=one.seed)
        forget(one.folder)

    def _completed_or_stop(self, seed: int) -> None:
        done = self.job.completed().get(seed)
        if done is None or done.status is not RunStatus.COMPLETED:
            self.problem = self.problem or _FailedError.of(seed)

    def _take_lost(self, one: "_Seed") -> None:
        closed = close_abandoned(self.job.project, self.job.experiment, seed=one.seed)
        lines = [line for line in one.at.said().splitlines() if line.strip()]
        why = f" ({one_line(lines[-1], _LONGEST)})" if lines else ""
        what = f"is not known any more{why}"
        self.findings += closed or [_no_answer(self.engine.name, one, what)]
        self.problem = self.problem or _FailedError.of(one.seed)
        forget(one.folder)

    def _cancel(self) -> None:
        """Each supervisor closes its own run; what still waits in a queue is taken out of it."""
        for one in self._going:
            one.cancel()
        left = time.monotonic() + _GRACE_S + self.pace.grace_s
        while self._going and time.monotonic() < left:
            for one in list(self._going):
                one.news()
                if one.ended() is not None or one.is_lost():
                    self._going.remove(one)
                    forget(one.folder)
            time.sleep(_POLL_S)

    def _tell(self, seed: int | None, text: str) -> None:
        """Of a seed, or a line of its supervisor, which says of what it is."""
        name = "" if seed is None else f"{self.job.experiment} seed {seed}: "
        about = {"kind": "placed", "engine": self.engine.name}
        self.on_event({**about, "text": name + text})


class _FailedError(RefusedError):
    """A seed did not complete: the call ends, its findings say why."""

    @classmethod
    def of(cls, seed: int) -> "_FailedError":
        return cls(f"Seed {seed} did not complete.", hint="")


@dataclass(kw_only=True)
class _Seed:
    seed: int
    folder: Path
    at: Placed
    tell: Callable[[int | None, str], None]
    _read: int = 0
    _starts: int = 0
    _asked: float = 0.0

    def news(self) -> None:
        about = began(self.folder)
        if about is not None and about.get("starts", 0) > self._starts:
            again = "again, " if self._starts else ""
            self._starts = int(about["starts"])
            self.tell(self.seed, f"{again}on {plain(str(about.get('host')))}")
        for line in self._lines():
            self.tell(None, one_line(line, _LONGEST))

    def ended(self) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / ENDED).read_text("ascii"))
        return None

    def is_lost(self) -> bool:
        now = time.monotonic()
        if now - self._asked < _ASK_S:
            return False
        self._asked = now
        # In this order: what ended in between has said so.
        return self.at.lost() and self.ended() is None

    def cancel(self) -> None:
        with contextlib.suppress(OSError):
            atomic_write(self.folder / CANCEL, "", durable=False)
        if began(self.folder) is None:
            self.at.cancel()

    def answer(self) -> dict[str, Any]:
        try:
            said = json.loads((self.folder / ANSWER).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def last_words(self) -> str:
        try:
            text = (self.folder / LOG).read_text("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        return one_line(lines[-1], _LONGEST) if lines else ""

    def _lines(self) -> Iterator[str]:
        with contextlib.suppress(OSError), (self.folder / LOG).open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                yield line.decode("utf-8", "replace").strip()


def _no_answer(engine: str, one: _Seed, what: str) -> Finding:
    said = one.last_words()
    more = f"; it said last: {said}" if said else ""
    name = f"job {one.at.job}" if one.at.job else "its supervisor"
    message = f"Seed {one.seed}: {name} at {engine} {what}, without an answer{more}."
    return finding("placement_lost", message, seed=one.seed, engine=engine)


def _spent(seed: int) -> Finding:
    return Finding(
        "budget_spent",
        f"The plan's total_minutes are spent: seed {seed} was not trained.",
        "A person may raise budget.total_minutes and approve the plan again.",
    )
