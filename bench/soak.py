"""A loop of many experiments with seeded faults: does it end as it should, and is nothing left?

    python bench/soak.py [--experiments 200] [--seed 1] [--loops-killed 3] [--folder DIR] [--record]

Each experiment is a good training, one that crashes, one that gives NaN, one that is killed with
SIGKILL, one whose supervisor is, one with a false claim, or a session that ends without work: by
seed. Sessions are scripted in this process: they call the harness's own tools, and no model and no
Claude Code CLI is started; everything else is real: supervisors, trainings, alarms, evaluations,
gates, decisions. The loop is a process of its own, which is killed with SIGKILL some times, and
started again.

Looked at: the ledger verifies, every experiment is decided, no process is left, the loop's memory
is flat (its last quarter against its second one), and nobody idles: the share of the loop's time
in which it neither did a step nor a supervisor trained, and the longest time from the end of a
run's training to the end of the session that waited for it.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import psutil
from _record import record

from harness.decisions.person import reject
from harness.domain.grade import PERSON
from harness.domain.statuses import CLOSED_EXPERIMENTS, SandboxKind
from harness.driver import role_sessions
from harness.driver.loop_runner import run_loop
from harness.driver.session import SessionEnding, SessionOutcome, SessionSpec
from harness.driver.steps import StepRunner
from harness.driver.tool_server import OfferedTool
from harness.errors import GatewayError
from harness.ledger.project import Project, open_project
from harness.ledger.verify import verify
from harness.loop.steps import StopReason
from harness.model_gateway.gateway import Gateway
from harness.plans.approval import approve_plan
from harness.sandbox.select import choose

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "tests/scenarios")]
import toy_project as toy  # noqa: E402  they need the line above

from tests.centroids import PREDICT, TRAIN, slow_train  # noqa: E402

FAULTS = {
    "good": 0.4,
    "crash": 0.15,
    "nan": 0.1,
    "killed": 0.1,
    "supervisor_killed": 0.05,
    "false_claim": 0.1,
    "session_gives_up": 0.1,
}
"""Share of each kind."""
NAN = """\
import time

from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=600)
    for epoch in range(600):
        log.epoch(epoch, {"train_loss": float("nan")})
        time.sleep(0.05)
"""
SLOW = slow_train(30)
PROGRAMS = {"crash": "raise ValueError('seeded')\n", "nan": NAN}
KILLED = ("killed", "supervisor_killed")
MARK = "HARNESS_SOAK"
LOOK_S = 0.5
GROWTH = 1.1
"""Of the loop's memory, from the second quarter of its samples to the last one."""


def fault_of(seed: int, experiment: int) -> str:
    draw = random.Random(seed * 100_003 + experiment)
    return draw.choices(list(FAULTS), weights=list(FAULTS.values()))[0]


class Nobody:
    """An Answerer: no session here asks a model."""

    async def answer(self, request: Any, raw: bytes) -> Any:
        raise GatewayError(f"Nobody answers {request.where}.", hint="Sessions are scripted.")

    count_tokens = answer

    async def close(self) -> None:
        return None


class Agents:
    """Plays every session: what `run_session` is replaced by."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project, self.seed = project, seed

    def __call__(
        self, spec: SessionSpec, *, tools: Sequence[OfferedTool], **_more: Any
    ) -> SessionOutcome:
        by_name = {tool.name: tool for tool in tools}

        def call(name: str, **given: Any) -> dict[str, Any]:
            said = anyio.run(by_name[name].handler, given)
            text = said["content"][0]["text"]
            if said.get("is_error"):
                print(f"{spec.session} {name}: {text}", file=sys.stderr)
                return {}
            value: dict[str, Any] = json.loads(text)
            return value

        number = max((one.number for one in self.project.undecided()), default=0)
        if spec.role.name == "model-builder":
            return self.build(call, number or self.project.ledger.last_number() + 1)
        if spec.role.name == "training-checker":
            self.diagnose(call)
        else:
            self.judge(call, number)
        return finished()

    def build(self, call: Callable[..., dict[str, Any]], number: int) -> SessionOutcome:
        fault, root = fault_of(self.seed, number), self.project.layout.root
        attempts = sum(f"build-{number}-" in one.id for one in self.project.ledger.sessions())
        if fault == "session_gives_up" and attempts == 1:
            return SessionOutcome(outcome=SessionEnding.FAILED, detail="seeded: it gave up")
        call("open_experiment", hypothesis=f"Idea {number}", rationale="By seed.")
        (root / "train.py").write_text(self.program(fault, number, attempts), "utf-8")
        (root / "predict.py").write_text(PREDICT, "utf-8")
        folder = self.project.layout.experiment(f"exp-{number:04d}")
        (folder / "config.yaml").write_text(f"idea: {number}\n", "utf-8")
        call("start_run")
        if fault in KILLED and attempts == 1:
            self.kill(f"exp-{number:04d}", fault)
        call("run_status", wait_seconds=120)
        return finished()

    def program(self, fault: str, number: int, attempt: int) -> str:
        """One that is killed trains well in its second attempt."""
        program = PROGRAMS.get(fault, TRAIN)
        if fault in KILLED and attempt == 1:
            program = SLOW
        return f"# idea {number}\n{program}"

    def kill(self, experiment: str, fault: str) -> None:
        """The training, or its supervisor, as soon as it runs."""
        for _ in range(600):
            runs = [run for run in self.project.ledger.runs(experiment) if run.pid]
            if runs:
                run = runs[-1]
                whom = run.pid if fault == "killed" else run.supervisor.get("pid")
                if whom and psutil.pid_exists(whom):
                    os.kill(whom, signal.SIGKILL)
                return
            time.sleep(0.1)

    def diagnose(self, call: Callable[..., dict[str, Any]]) -> None:
        (current,) = self.project.undecided()
        for run in self.project.ledger.runs(current.id):
            raised = self.project.ledger.alarms(current.id, run.id)
            if raised:
                codes = {str(one.alarm["code"]): int(one.alarm["row"]) for one in raised}
                call(
                    "record_diagnosis",
                    run=run.id,
                    what_happened="The loss is NaN.",
                    mechanism="The seeded fault.",
                    alarms=[{"code": code, "rows": [row]} for code, row in codes.items()],
                    candidates=[
                        {
                            "change": "Train without the seeded fault",
                            "alarm": next(iter(codes)),
                            "confidence": "high",
                        }
                    ],
                )

    def judge(self, call: Callable[..., dict[str, Any]], number: int) -> None:
        report = call("evaluation_report")
        claim = report.get("claim")
        if fault_of(self.seed, number) == "false_claim" and claim:
            claim = "0.9999"
        call("record_result", claims={"accuracy": claim} if claim else {}, summary="As measured.")


def finished() -> SessionOutcome:
    return SessionOutcome(outcome=SessionEnding.FINISHED, detail="")


def project_in(folder: Path, experiments: int) -> Path:
    root = toy.make_project(folder / "a project")
    text = toy.PLAN.replace("seeds: 3", "seeds: 1").replace("queries: 5", "queries: 400")
    budget = f"experiments: {experiments}, run_minutes: 1, total_minutes: 600"
    text = text.replace("experiments: 3, run_minutes: 1, total_minutes: 5", budget)
    text = text.replace("must: 0.90, should: 0.95", "must: 0.60, should: 0.99")
    text = text.replace("{stop_tier: must, patience: 3}", "{stop_tier: should, patience: 9999}")
    (root / "plan.md").write_text(text, "utf-8")
    for number, (name, rows) in enumerate(
        {"train": 200, "validation": 100, "held_out": 100}.items()
    ):
        draw = np.random.default_rng(number)
        y = np.arange(rows) % 2
        x = (y[:, None] + draw.normal(size=(rows, 2))).astype(np.float32)  # the clouds overlap
        np.savez(root / "data" / f"{name}.npz", x=x, y=y, id=np.arange(rows))
    return root


@dataclass
class Timed:
    """Seconds in steps, by class of step."""

    steps: Counter[str]
    folder: Path

    def wrap(
        self, execute: Callable[[StepRunner, Any], None]
    ) -> Callable[[StepRunner, Any], None]:
        def timed(runner: StepRunner, step: Any) -> None:
            start = time.perf_counter()
            try:
                execute(runner, step)
            finally:
                self.steps[type(step).__name__] += time.perf_counter() - start  # type: ignore
                self.tell()

        return timed

    def tell(self) -> None:
        memory = psutil.Process().memory_info().rss / 2**20
        line = {"pid": os.getpid(), "t": time.time(), "mb": memory, "steps": dict(self.steps)}
        with (self.folder / "loop.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")


def play(folder: Path, seed: int) -> int:
    """The loop's own process; 3: there is more to do."""
    timed = Timed(Counter(), folder)
    StepRunner.execute = timed.wrap(StepRunner.execute)  # type: ignore[method-assign]
    with open_project(folder / "a project", os.environ, caller=PERSON) as project:
        agents = Agents(project, seed)
        role_sessions.run_session = agents  # type: ignore[assignment]
        sandbox = choose(SandboxKind.NONE, required=False)
        timed.tell()
        ended = run_loop(project, Gateway(Nobody(), retries=1), sandbox)
        while ended.reason == StopReason.WAITING:
            # One seed never says "better" for sure: a person decides, and here rejects.
            waiting = project.undecided()[0].id
            reject(project, waiting, by="human:bench", reason="Nothing shows that it is better.")
            ended = run_loop(project, Gateway(Nobody(), retries=1), sandbox)
        timed.tell()
        print(json.dumps({"reason": ended.reason, "detail": ended.detail}))
        return 0 if ended.reason in (StopReason.BUDGET, StopReason.TARGET) else 3


def marked() -> list[psutil.Process]:
    """Living processes of this soak, this one left out."""
    own, found = os.environ[MARK], []
    for one in psutil.process_iter():
        try:
            if one.pid != os.getpid() and one.environ().get(MARK) == own:
                found.append(one)
        except psutil.Error:
            continue
    return [one for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def soak(folder: Path, seed: int, kills: Sequence[int]) -> tuple[float, int, str]:
    """Seconds, how often the loop was started, and what it said last."""
    start, left, starts, said = time.perf_counter(), list(kills), 0, ""
    words = [sys.executable, __file__, "--play", str(folder), "--seed", str(seed)]
    while starts < 20:
        starts += 1
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                time.sleep(LOOK_S)
                if left and opened(folder) >= left[0]:
                    left.pop(0)
                    process.kill()
            said = process.stdout.read() if process.stdout else ""
            if process.returncode != -signal.SIGKILL:
                break
    return time.perf_counter() - start, starts, said.strip()


def opened(folder: Path) -> int:
    return len(list((folder / "a project/.harness/experiments").glob("exp-*")))


def seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def waits(project: Project) -> list[float]:
    """From the end of each run to the end of the builder's session that waited for it."""
    ends = {}
    for fact in project.ledger.facts():
        body = fact.body()
        if fact.kind == "session_ended":
            ends[body["session"]] = seconds(fact.at)
    found = []
    for session in project.ledger.sessions():
        ended = ends.get(session.id)
        runs = [] if session.experiment is None else project.ledger.runs(session.experiment)
        at = [seconds(run.ended_at) for run in runs if run.ended_at]
        if session.role == "model-builder" and at and ended:
            found += [ended - max(at)] if ended > max(at) else []
    return found


def memory(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of the process that led the loop longest."""
    longest = max(
        (list(group) for _, group in itertools.groupby(lines, lambda line: line["pid"])), key=len
    )
    sizes = [line["mb"] for line in longest]
    part = max(1, len(sizes) // 4)
    second, last = sizes[part : 2 * part] or sizes, sizes[-part:]
    return {"mb_second_quarter": max(second), "mb_last_quarter": max(last)}


def looked(folder: Path, experiments: int) -> tuple[dict[str, Any], list[str]]:
    """The figures, and what is not as it should be."""
    lines = [json.loads(line) for line in (folder / "loop.jsonl").read_text().splitlines()]
    with open_project(folder / "a project", os.environ, read_only=True) as project:
        layout, ledger = project.layout, project.ledger
        problems = [str(one) for one in verify(layout.ledger_db, layout.anchors)]
        records = ledger.experiments()
        undecided = [one.id for one in records if one.status not in CLOSED_EXPERIMENTS]
        problems += [f"not decided: {undecided}"] if undecided else []
        problems += [] if len(records) == experiments else [f"{len(records)} experiments"]
        problems += [f"open runs: {len(ledger.open_runs())}"] if ledger.open_runs() else []
        problems += ["open sessions"] if ledger.sessions(open_only=True) else []
        statuses = Counter(str(run.status) for one in records for run in ledger.runs(one.id))
        waited = waits(project)
        facts = sum(1 for _ in ledger.facts())
    spent: Counter[str] = Counter()
    wall = 0.0
    for _, group in itertools.groupby(lines, lambda line: line["pid"]):
        own = list(group)
        wall += own[-1]["t"] - own[0]["t"]
        spent.update(own[-1]["steps"])
    grown = memory(lines)
    if grown["mb_last_quarter"] > GROWTH * grown["mb_second_quarter"]:
        problems.append(f"memory grew: {grown}")
    return {
        "experiments": len(records),
        "facts": facts,
        **{f"runs_{name}": count for name, count in sorted(statuses.items())},
        **{name: round(value, 1) for name, value in grown.items()},
        "share_between_steps": round(1 - sum(spent.values()) / wall, 3) if wall else 0.0,
        "longest_wait_s": round(max(waited, default=0.0), 1),
        "median_wait_s": round(sorted(waited)[len(waited) // 2], 2) if waited else 0.0,
    }, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loops-killed", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--play", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.play is not None:
        return play(options.play, options.seed)
    count = options.experiments
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        os.environ |= {"XDG_STATE_HOME": str(folder / "state"), MARK: folder.name}
        root = project_in(folder, count)
        with open_project(root, os.environ, caller=PERSON) as project:
            approve_plan(project, root / "plan.md", by="human:bench")
        # All in the first third: the loop's memory is looked at in what follows.
        parts = options.loops_killed + 1
        kills = [1 + one * count // 3 // parts for one in range(1, parts)]
        wall, starts, said = soak(folder, options.seed, kills)
        left = marked()
        figures, problems = looked(folder, count)
        problems += [f"left: {one.pid} {one.name()}" for one in left]
        for one in left:
            one.kill()
    faults = Counter(fault_of(options.seed, number) for number in range(1, count + 1))
    figures |= {"minutes": round(wall / 60, 1), "loops_started": starts}
    figures |= {"processes_left": len(left), "problems": len(problems)}
    figures |= {f"seeded_{name}": faults[name] for name in FAULTS}
    print(said)
    for name, value in figures.items():
        print(f"{name:<24} {value}")
    print("\n".join(["held" if not problems else "MISSED", *problems]))
    if options.record:
        record("soak", "python bench/soak.py --record", figures, seed=options.seed)
    return 0 if not problems else 1


if __name__ == "__main__":
    sys.exit(main())
