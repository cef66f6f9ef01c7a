"""The watch over the replicas of one run: start, states, restarts within a budget, one set of rows.

What decides here: a program that fails before its first step is not tried again; a replica that
fails later is, as long as there are restarts, and heals from another; when none is left alive all
go on from the newest round that each of them kept.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harness.clock import SystemClock, iso
from harness.domain import variables
from harness.domain.distributed import DiLoCoConfig
from harness.domain.plain_text import plain
from harness.run_logger import RunLogger
from harness.training.replicas.cards import cards_of
from harness.training.replicas.member import Member
from harness.training.replicas.merge import Merge
from harness.training.replicas.standing import GO, SAMPLES, State

EVENTS = "replicas.jsonl"
_LOOK_S = 0.1
_GRACE_S = 5.0
_LIGHTHOUSES = 10
"""So often a lighthouse that ended is started again."""
_HOST = "127.0.0.1"


class Crew:
    def __init__(
        self,
        config: DiLoCoConfig,
        command: Sequence[str],
        *,
        log: RunLogger,
        environ: Mapping[str, str],
    ) -> None:
        self._config, self._command, self._log = config, list(command), log
        self._folder = log.checkpoint_dir.parent
        self._environ = environ
        self.members = [
            Member(number, self._folder / "replicas" / str(number))
            for number in range(config.replicas)
        ]
        self._go = self._folder / "replicas" / GO
        self._merge = Merge()
        self._port = _free_port()
        self._lighthouse: subprocess.Popen[bytes] | None = None
        self._lighthouses = self._restarts = 0
        self._begun = False
        self._ended: list[Member] = []
        """In the order in which they came to the end."""
        self._clock = SystemClock()

    def run(self) -> int:
        """The exit code of the whole; raises SystemExit after SIGTERM."""
        signal.signal(signal.SIGTERM, _end_here)
        try:
            self._start_all()
            while self._look():
                time.sleep(_LOOK_S)
            return self._result()
        finally:
            self._stop()

    # Starting

    def _start_all(self) -> None:
        """Also after all of them died: from the newest round that each kept."""
        rounds = set.intersection(*(member.kept() for member in self.members))
        common = max(rounds, default=0)
        self._merge = Merge()
        self._go.unlink(missing_ok=True)
        for member in self.members:
            self._start(member, common)

    def _start(self, member: Member, from_round: int) -> None:
        own = {
            variables.RUN_DIR: str(member.folder),
            variables.EXPERIMENT: self._log.experiment,
            variables.RUN: self._log.run,
            variables.SEED: str(self._log.seed),
            variables.TOKEN: self._environ.get(variables.TOKEN) or "-",
            variables.REPLICA: str(member.number),
            variables.REPLICAS: str(self._config.replicas),
            variables.LIGHTHOUSE: f"http://{_HOST}:{self._port}",
        }
        if from_round:
            own[variables.REPLICA_ROUND] = str(from_round)
        threads = max(1, (os.cpu_count() or 1) // self._config.replicas)
        given = {"OMP_NUM_THREADS": str(threads), "RUST_LOG": "error"}
        own |= cards_of(member.number, self._config.replicas, self._environ)
        given["NCCL_SOCKET_IFNAME"] = "lo"  # all replicas are processes of this machine
        # `python`, `torchrun` and the like are those of this interpreter.
        programs = os.path.dirname(sys.executable), self._environ.get("PATH", os.defpath)
        own["PATH"] = os.pathsep.join(programs)
        member.start(self._command, {**given, **self._environ, **own})
        self._tell(member, State.STARTING, from_round)

    def _keep_lighthouse(self) -> None:
        if self._lighthouse is not None and self._lighthouse.poll() is None:
            return
        if self._lighthouse is not None:
            self._lighthouses += 1
            self._say(f"the lighthouse ended with code {self._lighthouse.poll()}")
            if self._lighthouses > _LIGHTHOUSES:
                return
        said = self._config
        words = [self._port, said.minimum_replicas, int(said.join_s * 1000)]
        words.append(int(said.heartbeat_s * 1000))
        self._lighthouse = subprocess.Popen(
            [sys.executable, "-m", "harness.training.replicas.lighthouse", *map(str, words)],
            env={"RUST_LOG": "error", **self._environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    # The watch

    def _look(self) -> bool:
        """Whether it goes on."""
        self._keep_lighthouse()
        for member in self.members:
            if self._is_over(member):
                continue
            # The code first: what it told before its end is then all there.
            code = member.code
            for state, at in member.look(self._config.stalled_s):
                self._tell(member, state, at)
            if code == 0:
                member.state = State.ENDED
                self._ended.append(member)
            elif code is not None:
                self._failed(member, _ended_by(code))
            elif self._ended and member.round < self._ended[0].round - 1:
                member.kill()
                self._give_up(member, "the training ended without it")
            elif member.state is State.STALLED:
                member.kill()
                member.wait(_GRACE_S)
                self._failed(member, f"no step for {self._config.stalled_s:g} s")
        alive = [member for member in self.members if member.alive]
        if all(member.state is State.WAITING for member in alive):
            self._go.touch()
        self._rows()
        return any(not self._is_over(member) for member in self.members)

    def _is_over(self, member: Member) -> bool:
        return member.given_up or member in self._ended

    def _failed(self, member: Member, why: str) -> None:
        member.wait(_GRACE_S)
        member.state = State.STOPPED
        self._tell(member, State.STOPPED, member.round, why)
        others = [other for other in self.members if other.alive]
        if self._ended:
            self._give_up(member, "the training ended without it")
        elif not member.stepped and (member.code or 0) > 0:
            self._give_up(member, "it failed before its first step", all_of_them=True)
        elif self._restarts >= self._config.restarts:
            few = len(others) < self._config.minimum_replicas
            self._give_up(member, f"{self._restarts} restarts were used", all_of_them=few)
        else:
            self._restarts += 1
            self._say(f"restart {self._restarts} of {self._config.restarts}")
            if others:
                self._start(member, max(member.kept(), default=0))
            else:
                self._start_all()

    def _give_up(self, member: Member, why: str, *, all_of_them: bool = False) -> None:
        member.given_up = True
        self._say(f"replica {member.number} is not started again: {why}")
        if all_of_them:
            for other in self.members:
                other.given_up = True
                other.kill(signal.SIGTERM)

    def _rows(self, *, last: bool = False) -> None:
        for member in self.members:
            for row in member.rows.take():
                self._take(member, row)
        alive = [each.number for each in self.members if each.alive and each.stepped]
        for row in self._merge.ready(alive, all_of_them=last):
            self._log.epoch(
                row["epoch"],
                row["metrics"],
                step=None if row["step"] is None else int(row["step"]),
                learning_rate=row["learning_rate"],
            )

    def _take(self, member: Member, row: dict[str, Any]) -> None:
        event = row.get("event")
        if event == "epoch":
            self._merge.put(member.number, row)
        elif event in ("start", "attempt") and not self._begun:
            self._begun = True
            if event == "attempt":
                self._log.resumed()
            at = row.get("resumed_at")
            config = row.get("config") or {}
            self._log.start(row.get("total_epochs"), config, resumed_at=at)
        elif event == "checkpoint":
            member.checkpoints.append(row)
        elif event == "end":
            unread = row.get("unread") or []
            for key in {*self._log.config.unread()} - {*unread}:
                self._log.config.get(key)  # a replica asked for it

    # The end

    def _result(self) -> int:
        self._rows(last=True)
        if len(self._ended) < self._config.minimum_replicas:
            self._log.end(
                "failed", error=f"{len(self._ended)} of {len(self.members)} replicas ended"
            )
            self._last_words()
            return 1
        best = min(self._ended, key=lambda member: (-member.round, member.number))
        for row in best.checkpoints:
            path = best.folder / row["path"]
            if path.exists():
                which = {name: bool(row.get(name)) for name in ("final", "initial")}
                self._log.checkpoint_saved(path, epoch=row.get("epoch"), **which)
        told = best.folder / SAMPLES
        if told.exists():
            (self._folder / SAMPLES).write_bytes(told.read_bytes())
        self._log.end()
        return 0

    def _last_words(self) -> None:
        """Those of the replica that failed by itself, at the very end, where they are looked
        for."""
        failed = [member for member in self.members if (member.code or 0) > 0]
        for member in failed[:1]:
            sys.stderr.write("\n".join([*member.last_lines, ""]))

    def _stop(self) -> None:
        for member in self.members:
            member.kill(signal.SIGTERM)
        until = time.monotonic() + _GRACE_S
        for member in self.members:
            member.wait(max(0.1, until - time.monotonic()))
        if self._lighthouse is not None:
            self._lighthouse.kill()
            self._lighthouse.wait()

    # What is told

    def _tell(self, member: Member, state: State, at: int, why: str = "") -> None:
        told = {
            "t": iso(self._clock.now()),
            "replica": member.number,
            "state": state.value,
            "round": at,
        }
        told |= {"why": why} if why else {}
        with (self._folder / EVENTS).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(told) + "\n")
        if state not in (State.TRAINING, State.WAITING):
            tail = f": {why}" if why else ""
            self._say(f"replica {member.number}, round {at}: {state.value}{tail}")

    def _say(self, text: str) -> None:
        sys.stderr.write(f"replicas: {plain(text)}\n")


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as asked:
        asked.bind((_HOST, 0))
        return int(asked.getsockname()[1])


def _ended_by(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {-code}"


def _end_here(number: int, _frame: Any) -> None:
    raise SystemExit(128 + number)
