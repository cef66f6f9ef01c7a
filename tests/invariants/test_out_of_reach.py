"""In a sandbox an agent's Bash, its training and its predict reach neither vault nor ledger;
without one they do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.sandbox.select import available
from tests.centroids import PREDICT, TRAIN
from tests.cli.journey import UNSANDBOXED, Answer, Journey, make_project
from tests.invariants.scenario import HONEST, LOOK, OPEN, ORACLE

# Tries everything in turn, and once more from a child that is left behind. Prints or leaves what it
# reached.
PROBE = '''\
"""What of the state directory this process can reach."""

import os
import subprocess
import sys
import time

STATE = {state!r}
LEDGER, HELD_OUT = STATE + "/ledger.db", {held_out!r}


def reached():
    found = []
    for path in (LEDGER, HELD_OUT):
        try:
            open(path, "rb").read(1)
            found.append("open " + path)
        except OSError:
            pass
        if subprocess.run(["cat", path], capture_output=True).returncode == 0:
            found.append("cat " + path)
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                open(f"/proc/{{process}}/root{{path}}", "rb").read(1)
                found.append(f"/proc/{{process}}/root" + path)
            except OSError:
                pass
    try:
        os.close(os.open(LEDGER, os.O_WRONLY))
        found.append("write " + LEDGER)
    except OSError:
        pass
    return found


def leave_a_child(report):
    """A daemon that looks again when its parent is gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1.0)
            for name in reached():
                with open(report, "a") as stream:
                    stream.write(name + "\\n")
        os._exit(0)


if __name__ == "__main__":
    leave_a_child({report!r})
    found = reached()
    print("REACHED " + "; ".join(found) if found else "OUT-OF-REACH")
'''
GUARD = """\
import probe

assert not probe.reached(), probe.reached()
probe.leave_a_child({report!r})
"""
SCENARIO = f"""\
sessions:
  - role: model-builder
    experiment: 1
    attempt: 1
    turns:
      - tools:
{OPEN}      - tools:
          - {{id: probe, name: Bash, input: {{command: "python probe.py", description: Look around}}}}
      - expect: OUT-OF-REACH
        tools:
{LOOK}{HONEST}      - text: Trained.
{ORACLE.replace("NUMBER", "1")}"""


def play(base: Path, sandbox: str) -> tuple[Journey, Answer, Path]:
    """Approve, plant the probe in the agent's programs, and run the loop; also where left-behind
    children report."""
    journey, report = make_project(base / "project", base / "home"), base / "project" / "left.txt"
    assert journey.harness("init").exit_code == 0
    assert journey.harness("plan", "approve").exit_code == 0
    held_out = next((journey.state / "vault" / "held_out").glob("*.npz"))
    probe = PROBE.format(state=str(journey.state), held_out=str(held_out), report=str(report))
    (journey.root / "probe.py").write_text(probe, "utf-8")
    (journey.root / ".gitignore").write_text("data/\nleft.txt\n__pycache__/\n", "utf-8")
    guard = GUARD.format(report=str(report))
    (journey.root / "train.py").write_text(guard + TRAIN, "utf-8")
    (journey.root / "predict.py").write_text(guard + PREDICT, "utf-8")
    scenario = base / "scenario.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    return (
        journey,
        journey.harness(
            "run",
            "--scenario",
            str(scenario),
            "--sandbox",
            sandbox,
            "--reason",
            "A test.",
            "--json",
        ),
        report,
    )


@pytest.mark.parametrize("sandbox", ["bwrap", "landlock"])
def test_state_is_out_of_reach(sandbox: str, tmp_path: Path) -> None:
    reason = available()[SandboxKind(sandbox)]
    if reason is not None:
        pytest.skip(f"{sandbox} does not work here: {reason}")
    journey, answer, report = play(tmp_path, sandbox)
    assert answer.exit_code == 0, (
        answer.stderr
    )  # predict and training raise when they reach anything
    assert answer.document["reason"] == "target"
    assert not report.exists(), report.read_text("utf-8")
    (row,) = journey.harness("experiment", "list", "--json").document["experiments"]
    assert (row["verdict"], row["split"]) == ("PASS", "held_out")
    open_ = ", local sockets not isolated" if sandbox == "landlock" else ""
    assert row["evidence"] == f"recomputed{open_}"


def test_without_a_sandbox_it_is_in_reach_and_the_score_says_so(tmp_path: Path) -> None:
    journey, answer, _ = play(tmp_path, "none")
    # The scenario ends loudly: what its agent saw is not what it expects.
    assert answer.exit_code == 2, answer.stdout + answer.stderr
    assert "scenario_unfit" in answer.stdout
    assert "REACHED" in answer.stdout + answer.stderr
    (journey.root / "train.py").write_text(TRAIN, "utf-8")
    (journey.root / "predict.py").write_text(PREDICT, "utf-8")
    assert journey.harness("train", "exp-0001", *UNSANDBOXED).exit_code == 0
    assert journey.harness("evaluate", "exp-0001", *UNSANDBOXED).exit_code == 0
    (row,) = journey.harness("experiment", "list", "--json").document["experiments"]
    assert row["evidence"] == "recomputed, training not isolated, predict not isolated"


def test_the_probe_itself_works(tmp_path: Path) -> None:
    """Outside any sandbox it finds what is there: a probe that finds nothing anywhere would prove
    nothing."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "ledger.db").write_bytes(b"x")
    text = PROBE.format(
        state=str(tmp_path / "state"), held_out="/nowhere", report=str(tmp_path / "left.txt")
    )
    (tmp_path / "probe.py").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "probe.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for way in ("open ", "cat ", "/proc/", "write "):
        assert way in done.stdout


LINK = """\
import os
import shutil

try:
    if os.path.isdir(".claude") and not os.path.islink(".claude"):
        shutil.rmtree(".claude")
    os.symlink({target!r}, ".claude")
except OSError:
    pass
"""


@pytest.mark.parametrize(
    ("sandbox", "relative"),
    [
        ("bwrap", True),
        ("landlock", False),
        pytest.param("bwrap", False, marks=pytest.mark.slow),
        pytest.param("landlock", True, marks=pytest.mark.slow),
    ],
)
def test_a_link_named_like_a_protected_path_grants_nothing(
    sandbox: str, relative: bool, tmp_path: Path
) -> None:
    reason = available()[SandboxKind(sandbox)]
    if reason is not None:
        pytest.skip(f"{sandbox} does not work here: {reason}")
    journey, report = (
        make_project(tmp_path / "deep" / "below" / "project", tmp_path / "home"),
        tmp_path / "left.txt",
    )
    assert journey.harness("init").exit_code == 0
    assert journey.harness("plan", "approve").exit_code == 0
    held_out = next((journey.state / "vault" / "held_out").glob("*.npz"))
    vault = journey.state / "vault"
    target = os.path.relpath(vault, journey.root) if relative else str(vault)
    probe = PROBE.format(state=str(journey.state), held_out=str(held_out), report=str(report))
    (journey.root / "probe.py").write_text(probe, "utf-8")
    guard = "import probe\n\nassert not probe.reached(), 'REACHED'\n"
    (journey.root / "train.py").write_text(guard + LINK.format(target=target) + TRAIN, "utf-8")
    assert journey.harness("experiment", "new", "--hypothesis", "a link").exit_code == 0
    answer = journey.harness(
        "train", "exp-0001", "--sandbox", sandbox, "--reason", "A test.", "--json"
    )
    assert "REACHED" not in answer.stdout + answer.stderr
    # The link was made in the run's own copy of the code, which went with it.
    assert answer.exit_code == 0, answer.stdout
    assert not (journey.root / ".claude").is_symlink()


SWAP = (
    "mv .harness moved && cp -r moved .harness; touch .harness/policy.json"
    " .harness/receipts/x.jsonl; ls -d moved"
)


def test_control_files_cannot_be_swapped_in_bwrap(tmp_path: Path) -> None:
    reason = available()[SandboxKind.BWRAP]
    if reason is not None:
        pytest.skip(f"bwrap does not work here: {reason}")
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init").exit_code == 0
    assert journey.harness("plan", "approve").exit_code == 0
    (journey.root / "swap.sh").write_text(f"{SWAP}\necho DONE $?\n", "utf-8")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        SCENARIO.replace("python probe.py", "sh swap.sh").replace("OUT-OF-REACH", "DONE"), "utf-8"
    )
    answer = journey.harness("run", "--scenario", str(scenario), "--sandbox", "bwrap", "--json")
    assert answer.exit_code == 0, answer.stderr
    assert not (journey.root / "moved").exists()
    assert not (journey.root / ".harness/receipts/x.jsonl").exists()


def test_a_config_that_an_agent_edited_is_not_believed(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init").exit_code == 0
    assert journey.harness("plan", "approve").exit_code == 0
    config = journey.root / ".harness/config.toml"
    config.write_text(config.read_text("utf-8") + f'readable = ["{tmp_path}/other"]\n', "utf-8")
    for words in (
        ("train", "exp-0001"),
        ("evaluate", "exp-0001"),
        ("gate", "check", "exp-0001"),
        ("run",),
    ):
        answer = journey.harness(*words, "--json")
        assert (answer.exit_code, answer.document["error"]["code"]) == (2, "config_changed")
