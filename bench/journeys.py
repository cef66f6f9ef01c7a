"""How many of our modules a journey loads, runs and asks a reader to open; how long it starts.

A journey is one process, supervisor included; the processes that it starts are not traced.

- loaded: imported when the process ends.
- run: some function of the module was called, outside of imports. A module of constants never runs.
- to open: run, without what a reader takes on trust by its name. A reader opens the journey's own
  room (OWN) and its command in cli module by module. Every other room that these, the floor or the
  frame call counts as one: its interface is trusted. What only such a room calls is not counted,
  unless it is the journey's own room: all of that which runs counts. The floor (errors, files,
  clock, settings, process, domain, contract) and the frame of every command (FRAME) are free.
- by module: the rule before it, which had other rooms counted module by module and walked through
  (docs/adr/0032-other-rooms-count-as-one.md). Only ledger, projections and rendering counted as
  one each and were not walked through, and detectors, rows of one table, as one more.

The start-up ratio is the median time of the same verb with `--help`, which imports what the verb
needs and does nothing, over `python -c pass`, both measured in this run. A hook is measured whole.

    python bench/journeys.py [--record] [--list]   # --record writes docs/evidence/journeys.json

Exit 1 when `train`, `evaluate` or `gate check` has more than MOST modules to open.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _record import record, wants_record

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from harness.detectors.kinds import KINDS  # noqa: E402  it needs the line above
from tests.cli.journey import Journey, make_project  # noqa: E402  it needs the line above

TRACED = ROOT / "bench" / "_traced.py"
FLOOR = {"errors", "files", "clock", "settings", "process", "domain", "contract"}
FORMER_FRAME = {"main", "clean_start", "groups", "output", "changing", "person", "progress"}
FRAME = FORMER_FRAME | {"answer", "chosen", "isolation", "unguarded"}
"""Modules of cli that several verbs share: the beginning and the end of each, the experiment that
it is about, --sandbox, what it answers."""
OWN = {
    "train": "runs",
    "evaluate": "evaluation",
    "gate check": "gates",
    "hook Bash": "guard",
    "hook Write": "guard",
    "start_run": "driver",
}
"""The room, besides cli, that a reader of the journey opens."""
ONE_EACH = {"ledger", "projections", "rendering"}
DETECTORS = {name.partition(":")[0] for kind in KINDS.values() for name in kind.detectors}
PROMISED = ("train", "evaluate", "gate check")
MOST, REPEATS = 30, 5
EXPERIMENT = "exp-0001"
BASH = (
    'cd src && for f in *.py; do grep -n def "$f" | sed "s/x/y/" >> /dev/null; done && python -m'
    " pytest -q 2>&1 | tail"
)
HOOK_PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
HOOK_FLAGS = ("-I", "-S")


@dataclass(frozen=True, kw_only=True)
class Traced:
    """What one journey did, as bench/_traced.py wrote it."""

    loaded: list[str]
    calls: list[tuple[str, str]]
    """(caller, module)"""

    @property
    def run(self) -> set[str]:
        return {module for _, module in self.calls}

    def to_open(self, own: str) -> list[str]:
        """Modules of the room `own` and of the verb, and the other rooms, in alphabetical order."""
        mine = {name for name in {*self.run, ""} if is_own(name, own)}

        def is_free(name: str) -> bool:
            return in_frame(name) or room_of(name) in FLOOR

        reached = self._reached(mine, lambda name: is_own(name, own) or is_free(name))
        left = {name for name in reached if name.startswith("harness.") and not is_free(name)}
        return sorted({name if is_own(name, own) else f"harness.{room_of(name)}" for name in left})

    def by_module(self) -> list[str]:
        """By the rule before: modules, and rooms that counted as one."""
        starts = {name for name in {*self.run, ""} if is_start(name)}
        reached = self._reached(starts, lambda name: room_of(name) not in ONE_EACH)
        ours = {name for name in reached if name.startswith("harness.")}
        left = {name for name in ours if room_of(name) not in FLOOR}
        return sorted({shown(name) for name in left if not in_frame(name, FORMER_FRAME)})

    def _reached(self, starts: Iterable[str], through: Callable[[str], bool]) -> set[str]:
        """The starts and what they call, and what that calls; not beyond where `through` is
        False."""
        called = defaultdict(set)
        for caller, module in self.calls:
            called[caller].add(module)
        reached: set[str] = set()
        left = [*starts]
        while left:
            module = left.pop()
            if module not in reached:
                reached.add(module)
                left += called[module] if through(module) else ()
        return reached


def room_of(module: str) -> str:
    return [*module.split("."), ""][1]


def in_frame(module: str, frame: Collection[str] = FRAME) -> bool:
    return room_of(module) == "cli" and module.rpartition(".")[2] in frame


def is_start(module: str, frame: Collection[str] = FORMER_FRAME) -> bool:
    """The verb, a hook's program or a thread."""
    ours = module.startswith("harness.")
    return not ours or (room_of(module) == "cli" and not in_frame(module, frame))


def is_own(module: str, room: str) -> bool:
    return is_start(module, FRAME) or room_of(module) == room


def shown(module: str) -> str:
    if module in DETECTORS:
        return "harness.detectors: a row of KINDS"
    return f"harness.{room_of(module)}" if room_of(module) in ONE_EACH else module


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A small project that needs no torch, and a place for what the tracer writes."""

    journey: Journey
    out: Path

    def traced(
        self,
        *words: str,
        python: Sequence[str] = (sys.executable,),
        given: str = "",
        codes: Sequence[int] = (0,),
        **more: str,
    ) -> Traced:
        command = [*python, str(TRACED), str(self.out), *words]
        ended = subprocess.run(
            command,
            cwd=self.journey.root,
            env=self.journey.environment(**more),
            input=given,
            capture_output=True,
            text=True,
        )
        if ended.returncode not in codes:
            raise SystemExit(
                f"{words} ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
            )
        return Traced(**json.loads(self.out.read_text("utf-8")))

    def harness(self, *words: str) -> dict[str, Any]:
        answer = self.journey.harness(*words, "--json")
        if answer.exit_code:
            raise SystemExit(f"harness {words}: {answer.stdout}{answer.stderr}")
        return answer.document


def prepared(folder: Path) -> Lab:
    """The project, approved, with one experiment open."""
    lab = Lab(journey=make_project(folder / "project", folder / "home"), out=folder / "out.json")
    lab.harness("init")
    lab.harness("plan", "approve")
    open_experiment(lab)
    return lab


def open_experiment(lab: Lab) -> None:
    opened = lab.harness("experiment", "new", "--hypothesis", "centroids")
    Path(opened["folder"], "config.yaml").write_text("model: centroids\n", "utf-8")


def hook_call(lab: Lab, tool: str, arguments: Mapping[str, str]) -> str:
    """The payload as Claude Code sends it."""
    call = {
        "session_id": "bench",
        "cwd": str(lab.journey.root),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": arguments,
        "tool_use_id": "toolu_1",
    }
    return json.dumps(call)


def hook_program() -> list[str]:
    """The words after `python3 -I -S` in hooks.json, for PreToolUse."""
    document = json.loads((ROOT / "hooks" / "hooks.json").read_text("utf-8"))
    words = document["hooks"]["PreToolUse"][0]["hooks"][0]["args"][len(HOOK_FLAGS) :]
    return [word.replace("${CLAUDE_PLUGIN_ROOT}", str(ROOT)) for word in words]


def hook_environment(lab: Lab) -> dict[str, str]:
    return {"CLAUDE_PROJECT_DIR": str(lab.journey.root), "CLAUDE_PLUGIN_ROOT": str(ROOT)}


def traced_hook(lab: Lab, tool: str, arguments: Mapping[str, str]) -> Traced:
    return lab.traced(
        *hook_program(),
        python=(HOOK_PYTHON, *HOOK_FLAGS),
        given=hook_call(lab, tool, arguments),
        **hook_environment(lab),
    )


def start_run_lines() -> str:
    """What a client of `harness mcp` writes to start runs. Its end of input ends the server."""
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "0"},
    }
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "start_run", "arguments": {}}},
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def journeys(lab: Lab) -> dict[str, Traced]:
    """Each journey once, in the order in which a project goes through them."""
    traces = {"train": lab.traced("harness", "train", EXPERIMENT)}
    traces["evaluate"] = lab.traced("harness", "evaluate", EXPERIMENT)
    score = lab.harness("evaluate", EXPERIMENT)["score"]
    claims = f"---\nclaims: {{accuracy: {score:.2f}}}\n---\n# Result\n"
    folder = lab.journey.root / ".harness" / "experiments" / EXPERIMENT
    (folder / "result.md").write_text(claims, "utf-8")
    traces["gate check"] = lab.traced("harness", "gate", "check", EXPERIMENT)
    traces["hook Bash"] = traced_hook(lab, "Bash", {"command": BASH})
    target = str(lab.journey.root / "model.py")
    traces["hook Write"] = traced_hook(lab, "Write", {"file_path": target, "content": "x = 1\n"})
    traces["start_run"] = traced_start_run(lab)
    return traces


def traced_start_run(lab: Lab) -> Traced:
    """The process that answers the tool call; the supervisor that it starts is another one."""
    train = lab.journey.root / "train.py"
    train.write_text(
        train.read_text("utf-8") + "# another version: its seeds have not completed\n"
    )
    traced = lab.traced("harness", "mcp", given=start_run_lines())
    # The supervisor outlives the server; the project's folder must not go before it.
    while "already_training" in lab.journey.harness("train", EXPERIMENT, "--json").stdout:
        time.sleep(1)
    return traced


def seconds(command: Sequence[str], environment: Mapping[str, str], given: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=dict(environment), input=given, capture_output=True, text=True)
    return time.perf_counter() - start


def start_ratios(lab: Lab) -> dict[str, float]:
    """Median time of each start over that of a bare interpreter with the same flags."""
    harness = [sys.executable, "-m", "harness"]
    hook = [HOOK_PYTHON, *HOOK_FLAGS]
    write = hook_call(lab, "Write", {"file_path": "model.py", "content": "x = 1\n"})
    bash = hook_call(lab, "Bash", {"command": BASH})
    programs: dict[str, tuple[list[str], str]] = {
        "bare": ([sys.executable, "-c", "pass"], ""),
        "bare hook": ([*hook, "-c", "pass"], ""),
        "train": ([*harness, "train", "--help"], ""),
        "evaluate": ([*harness, "evaluate", "--help"], ""),
        "gate check": ([*harness, "gate", "check", "--help"], ""),
        "hook Bash": ([*hook, *hook_program()], bash),
        "hook Write": ([*hook, *hook_program()], write),
        "start_run": ([*harness, "mcp", "--help"], ""),
    }
    environment = {**lab.journey.environment(), **hook_environment(lab)}
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(REPEATS + 1):
        for name, (command, given) in programs.items():
            took = seconds(command, environment, given)
            if turn:  # the first turn warms the caches
                taken[name].append(took)
    median = {name: statistics.median(times) for name, times in taken.items()}
    bare = {name: median["bare hook" if name.startswith("hook") else "bare"] for name in median}
    return {name: median[name] / bare[name] for name in median if not name.startswith("bare")}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        lab = prepared(Path(folder).resolve())
        traces = journeys(lab)
        ratios = start_ratios(lab)
    opened = {name: traced.to_open(OWN[name]) for name, traced in traces.items()}
    print("                 loaded   run   to open   by module   start-up over `python -c pass`")
    for name, traced in traces.items():
        counts = f"{len(traced.loaded):6} {len(traced.run):5} {len(opened[name]):9}"
        print(f"{name:16} {counts} {len(traced.by_module()):11} {ratios[name]:10.1f}x")
    if "--list" in sys.argv:
        for name, modules in opened.items():
            print(f"\n{name}: {len(modules)} to open")
            print("".join(f"  {module}\n" for module in modules), end="")
    if wants_record():
        figures: dict[str, float | str] = {}
        for name, traced in traces.items():
            key = name.replace(" ", "_").lower()
            figures |= {f"{key}_loaded": len(traced.loaded), f"{key}_run": len(traced.run)}
            figures |= {f"{key}_to_open": len(opened[name])}
            figures |= {f"{key}_to_open_by_module": len(traced.by_module())}
            figures |= {f"{key}_start_ratio": round(ratios[name], 1)}
        record("journeys", "python bench/journeys.py --record", figures)
    most = max(len(opened[name]) for name in PROMISED)
    print(f"\nat most {most} to open for train, evaluate and gate check; promised: {MOST}")
    return int(most > MOST)


if __name__ == "__main__":
    sys.exit(main())
