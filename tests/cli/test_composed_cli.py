"""The backend `composed` as a person types it: from rows and a composition to a judged adapter."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from tests.cli.journey import UNSANDBOXED, Answer, Journey
from tests.posttrain import programs
from tests.training.calling_model import ADD, BOARD, PLAYING, save_calling_model
from tests.training.test_composed import VERIFIER, installed
from tests.training.tiny_model import save_tiny_model, save_tool_model

COLLECTED = Path(__file__).parents[1] / "traces/inputs/collected"
OTHER = "HuggingFaceTB/SmolLM2-360M-Instruct"
COMPOSITION = """
gradients_every = 1

[reward]
functions = ["contains", "rewards.py:brevity"]
function_weights = [1.0, 0.5]

[distillation]
weight = 0.5
final_weight = 0.1
warmup = 0.5
teacher = "ema"
contexts = ["hint"]

[dpo]
weight = 0.25
reference = "precomputed"

[rollouts]
max_tokens = 8
"""
REWARD = """def brevity(completions, **more):
    return [100 / (100 + sum(map(ord, one[0]["content"]))) for one in completions]
"""
"""By letters, not by their number alone: two answers of one length have no advantage."""
SMALL = ("max_steps=2", "batch_size=2", "gradient_accumulation=2", "lora_rank=4", "lora_alpha=8")
SMALL = (*SMALL, "max_seq_length=128")


@pytest.fixture
def tuning(tmp_path: Path) -> Journey:
    (tmp_path / "home").mkdir()
    root = programs.make_root(tmp_path / "tuning")
    rows = [{**row, "answer": row["chosen"], "hint": row["chosen"]} for row in programs.rows(20)]
    programs.write_rows(root / "train.jsonl", rows)
    (root / "composed.toml").write_text(COMPOSITION)
    (root / "rewards.py").write_text(REWARD)
    journey = Journey(root, tmp_path / "home")
    weights = str(save_tiny_model(tmp_path / "tiny"))
    for identifier in (programs.MODEL, OTHER):
        added = journey.harness("posttrain", "model", "add", identifier, "--weights", weights)
        assert added.exit_code == 0, added.stderr
    return journey


def specified(tuning: Journey, *more: str, composition: str = "composed.toml") -> Answer:
    numbers = [word for one in SMALL for word in ("--set", one)]
    return tuning.harness(
        *("posttrain", "spec", "--backend", "composed", "--mode", "composed"),
        *("--model", programs.MODEL, "--profile", "local-reader", "--tier", "cpu-experimental"),
        *("--dataset", "train.jsonl", "--benchmark", "held_out.jsonl"),
        *("--evaluator", '["python", "judge.py"]', "--composition", composition),
        *numbers,
        *more,
        "--json",
    )


def logged(tuning: Journey, name: str) -> list[dict[str, Any]]:
    run = tuning.root / ".harness/experiments" / name / "runs/run-01"
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [row["metrics"] for row in rows if "loss" in row.get("metrics", {})]


def test_from_rows_and_a_composition_to_a_promoted_model(tuning: Journey) -> None:
    models = []
    for seed in ("1", "2", "3"):
        made = specified(tuning, "--seed", seed)
        assert made.exit_code == 0, made.stdout + made.stderr
        name = made.document["experiment"]
        ran = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
        assert ran.exit_code == 0, ran.stdout + ran.stderr
        models.append(ran.document["model"])
    spec = made.document["specification"]["composition"]
    assert spec["reward"]["functions"][1]["source"] == REWARD
    circular = [one for one in made.document["warnings"] if "teacher" in one["field"]]
    assert ["circular" in one["reason"] for one in circular] == [True]
    rows = logged(tuning, name)
    assert len(rows) == 2
    for channel in ("reward", "distillation", "dpo"):
        assert rows[-1][f"channel/{channel}/rows"] == 4
        assert rows[-1][f"channel/{channel}/grad_norm"] > 0
    assert [row["channel/distillation/weight"] for row in rows] == pytest.approx([0.5, 0.1])
    weighted = sum(
        rows[-1][f"channel/{name}/weight"] * rows[-1][f"channel/{name}/loss"]
        for name in ("reward", "distillation", "dpo")
    )
    assert rows[-1]["loss"] == pytest.approx(weighted, rel=1e-4, abs=1e-5)
    assert {"rewards/contains/mean", "rewards/brevity/mean"} <= rows[-1].keys()
    approve = ("posttrain", "approve", "--benchmark", "held_out.jsonl")
    assert tuning.harness(*approve, "--evaluator", '["python", "judge.py"]').exit_code == 0
    judged = [
        tuning.harness("posttrain", "evaluate", model, *UNSANDBOXED, "--json") for model in models
    ]
    assert judged[-1].document["verdict"] == "PASS", judged[-1].stdout
    took = tuning.harness("posttrain", "promote", models[-1], "--reason", "passes", "--json")
    assert took.exit_code == 0, took.stdout + took.stderr
    tree = tuning.harness("posttrain", "lineage", models[-1], "--json").document
    (run,) = tree["runs"]
    assert len(run["judgement"]["result"]["extra"]["reference_sha256"]) == 64


def test_another_local_model_teaches_and_its_family_is_told(tuning: Journey) -> None:
    text = COMPOSITION.replace('"ema"', f'"{OTHER}"')
    (tuning.root / "other.toml").write_text(text)
    made = specified(tuning, composition="other.toml")
    assert made.exit_code == 0, made.stdout + made.stderr
    told = {one["reason"] for one in made.document["warnings"]}
    assert "shared by teacher, trained model" in told
    assert not any("circular" in one for one in told)
    name = made.document["experiment"]
    ran = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    assert logged(tuning, name)[0]["channel/distillation/rows"] == 4


BAD = {
    "[reward]\nweigth = 1": "weigth",
    "[reward]\nweight = -1": "reward.weight",
    "[reward]\nweight = nan": "reward.weight",
    "[reward]\nfunctions = ['mine']": "FILE.py:FUNCTION",
    "[reward]\nfunctions = ['rewards.py:other']\nfunction_weights=[1]": "no function other",
    "[reward]\nfunctions = ['gone.py:brevity']\nfunction_weights=[1]": "gone.py",
    "[reward]\nfunctions = ['imports.py:f']\nfunction_weights=[1]": "only this file is kept",
    "[reward]\nfunctions = ['/etc/x.py:f']\nfunction_weights=[1]": "reward.functions",
    "[reward]\nfunction_weights = [1]": "function_weights",
    "[distillation]\nteacher = 'nobody/such'": "distillation.teacher",
    "[distillation]\nobjective = 'sampled'": "sampled",
    "[distillation]\nbeta = 2": "distillation.beta",
    "[distillation]\ncontexts = []": "contexts",
    "[distillation]\ntail = 1": "tail",
    "[dpo]\nreference = 'constants'": "adapter_off",
    "[rollouts]\ngenerations = 1": "generations",
    "[rollouts]\ntool_turns = 0": "tool_turns",
    "[rollouts]\ntools = ['add']": "FILE.py:FUNCTION",
    "[rollouts]\ntools = ['rewards.py:brevity']": "no type for completions",
    "[rollouts]\ntools = ['tools.py:add', 'tools.py:add']": "two are one name",
    "[rollouts]\ntools = ['tools.py:bare']": "no docstring",
    "[rollouts]\ntools = ['tools.py:half']": "Args:",
    "[reward]\nweight = 0\n[distillation]\nweight = 0\n[rollouts]\ntools = ['tools.py:add']": (
        "nothing calls them"
    ),
    "[reward]\nfunctions = []\nfunction_weights = []": "nothing is scored",
    "[rollouts]\nenvironment = 'board.py:Bored'": "no class Bored",
    "[rollouts]\nenvironment = 'board.py:Still'": "reset(self, **row)",
    "[rollouts]\nenvironment = 'board.py:Mute'": "add has no docstring",
    "[rollouts]\nenvironment = 'board.py:Board'\ntools = ['tools.py:add']": "two are one name",
    "[reward]\nweight = 0\n[distillation]\nweight = 0\n[rollouts]\n"
    "environment = 'board.py:Board'": "nothing calls them",
    "reward = 3": "a table",
    "gradients_every = -1": "gradients_every",
    "[reward]\nweight = 0\n[distillation]\nweight = 0\n[dpo]\nweight = 0": "nothing is learned",
    "[reward": "TOML",
}


def test_a_wrong_composition_is_refused_in_words(tuning: Journey) -> None:
    half = ADD.replace("add", "half").replace("b: another", "")
    (tuning.root / "tools.py").write_text(f"{ADD}\ndef bare(a: int):\n    return a\n\n{half}")
    mute = "class Mute:\n    def reset(self, **row): ...\n    def add(self, a: int): ...\n"
    still = "class Still:\n    def reset(self): ...\n"
    (tuning.root / "board.py").write_text(f"{BOARD}\n{mute}\n{still}")
    (tuning.root / "imports.py").write_text("import trainer\ndef f(**more):\n    return []\n")
    for text, said in BAD.items():
        (tuning.root / "bad.toml").write_text(text)
        made = specified(tuning, composition="bad.toml")
        assert made.exit_code == 2, text
        assert said in made.document["error"]["message"], (text, made.stdout)
    gone = specified(tuning, composition="nowhere.toml")
    assert (gone.exit_code, "nowhere.toml" in gone.stdout) == (2, True)
    assert tuning.harness("posttrain", "status", "--json").document["programs"] == []


def test_a_channel_that_no_row_can_feed_is_refused(tuning: Journey) -> None:
    bare = [{"id": row["id"], "prompt": row["prompt"]} for row in programs.rows(20)]
    programs.write_rows(tuning.root / "train.jsonl", bare)
    said = specified(tuning).document["error"]["message"]
    for name in ("dpo.weight", "distillation.contexts", "reward.functions"):
        assert name in said
    other = tuning.harness(
        *("posttrain", "spec", "--backend", "trl-sft", "--mode", "sft", "--model", programs.MODEL),
        *("--profile", "local-reader", "--dataset", "train.jsonl"),
        *("--benchmark", "held_out.jsonl", "--composition", "composed.toml", "--json"),
    )
    assert "none but with composed" in other.document["error"]["message"]


@pytest.mark.parametrize("form", [("--text",), ()], ids=["texts", "calls"])
def test_from_a_real_transcript_to_an_adapter(
    tuning: Journey, tmp_path: Path, form: tuple[str, ...]
) -> None:
    """A recorded session is ingested; its pair and hint feed all three channels, the self-
    distillation with a weight of 10. Its answers call tools: as text, or in the chat template."""
    weights = str(save_tool_model(tmp_path / "tools", "qwen2_5"))
    added = tuning.harness("posttrain", "model", "add", programs.MODEL, "--weights", weights)
    assert added.exit_code == 0, added.stdout + added.stderr
    pytest.importorskip("detect_secrets", reason="the extra `traces` is not installed")
    transcript = COLLECTED / "t11_randlee_agent_explore.jsonl"
    for words in (
        ("ingest", str(transcript), "--licence", "MIT", "--consent"),
        ("rows", "traces.jsonl", "-o", "pairs.jsonl", *form, "--context", "600"),
    ):
        done = tuning.harness("traces", *words)
        assert done.exit_code == 0, done.stdout + done.stderr
    (row,) = map(json.loads, (tuning.root / "pairs.jsonl").read_text().splitlines())
    assert "No such file" in row["hint"]
    assert isinstance(row["chosen"], str) == bool(form)
    assert form or row["rejected"][-1]["tool_calls"]
    text = COMPOSITION.replace('"contains", "rewards.py:brevity"', '"rewards.py:brevity"')
    text = text.replace("[1.0, 0.5]", "[1.0]").replace("weight = 0.5\n", "weight = 10.0\n", 1)
    (tuning.root / "trace.toml").write_text(text)
    made = specified(
        tuning,
        *("--dataset", "pairs.jsonl", "--set", "max_seq_length=4096"),
        composition="trace.toml",
    )
    assert made.exit_code == 0, made.stdout + made.stderr
    name = made.document["experiment"]
    ran = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    first = logged(tuning, name)[0]
    for channel in ("distillation", "dpo"):
        assert first[f"channel/{channel}/rows"] == 4
    assert first["channel/reward/rows"] > 0
    assert first["channel/dpo/loss"] == pytest.approx(0.6931, abs=1e-3)
    assert first["channel/distillation/weight"] == 10.0


def test_a_verifier_of_a_package_is_frozen_by_the_projects_interpreter(
    tuning: Journey, tmp_path: Path
) -> None:
    """An environment of the project's own, with a package that the harness's does not have."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (site,) = home.glob("lib/python3*/site-packages")
    beside = [Path(sysconfig.get_path("purelib")), Path(__file__).parents[2]]
    (site / "all.pth").write_text("".join(f"{path}\n" for path in beside))
    installed(site, VERIFIER)
    config = tuning.root / ".harness/config.toml"
    config.write_text(f'interpreter = "{home}/bin/python"\n' + config.read_text())
    words = 'functions = ["contains", "package:my-verifier:even"]'
    text = COMPOSITION.replace('functions = ["contains", "rewards.py:brevity"]', words)
    (tuning.root / "packaged.toml").write_text(text)
    made = specified(tuning, composition="packaged.toml")
    assert made.exit_code == 0, made.stdout + made.stderr
    _, function = made.document["specification"]["composition"]["reward"]["functions"]
    assert (function["package"], function["version"]) == ("my-verifier", "1.2")
    assert len(function["sha256"]) == 64
    (tuning.root / "packaged.toml").write_text(text.replace("my-verifier:even", "no-such:even"))
    gone = specified(tuning, composition="packaged.toml")
    assert gone.exit_code == 2
    assert "no-such is not installed" in gone.stdout


CALLING = """
gradients_every = 1

[reward]
functions = ["rewards.py:sums"]
function_weights = [1.0]

[distillation]
contexts = ["hint"]

[rollouts]
max_tokens = 400
tools = ["tools.py:add"]
tool_turns = 2
"""
SUMS = """def sums(completions, **more):
    told = [[said["content"] for said in one if said["role"] == "tool"] for one in completions]
    return [float(one.count("3")) for one in told]
"""


def test_a_model_that_calls_a_tool_twice_is_trained_on_what_it_wrote(
    tuning: Journey, tmp_path: Path
) -> None:
    weights = str(save_calling_model(tmp_path / "calling"))
    added = tuning.harness("posttrain", "model", "add", programs.MODEL, "--weights", weights)
    assert added.exit_code == 0, added.stdout + added.stderr
    for name, text in (("calling.toml", CALLING), ("tools.py", ADD), ("rewards.py", SUMS)):
        (tuning.root / name).write_text(text)
    made = specified(tuning, "--set", "max_seq_length=4096", composition="calling.toml")
    assert made.exit_code == 0, made.stdout + made.stderr
    (tuning.root / "tools.py").write_text("raise SystemExit")  # what was specified runs
    (tool,) = made.document["specification"]["composition"]["rollouts"]["tools"]
    assert (tool["source"], len(tool["sha256"])) == (ADD, 64)
    name = made.document["experiment"]
    ran = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    first = logged(tuning, name)[0]
    assert (first["tools/call_frequency"], first["tools/failure_frequency"]) == (2.0, 0.0)
    assert first["rewards/sums/mean"] == 2.0
    assert first["channel/distillation/rows"] == first["channel/dpo/rows"] == 4


def test_a_model_plays_in_an_environment_that_keeps_a_state_for_each_rollout(
    tuning: Journey, tmp_path: Path
) -> None:
    weights = str(save_calling_model(tmp_path / "calling"))
    added = tuning.harness("posttrain", "model", "add", programs.MODEL, "--weights", weights)
    assert added.exit_code == 0, added.stdout + added.stderr
    (tuning.root / "playing.toml").write_text(PLAYING)
    (tuning.root / "board.py").write_text(BOARD)
    made = specified(tuning, "--set", "max_seq_length=4096", composition="playing.toml")
    assert made.exit_code == 0, made.stdout + made.stderr
    (tuning.root / "board.py").write_text("raise SystemExit")  # what was specified runs
    environment = made.document["specification"]["composition"]["rollouts"]["environment"]
    assert (environment["source"], len(environment["sha256"])) == (BOARD, 64)
    name = made.document["experiment"]
    ran = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    first = logged(tuning, name)[0]
    assert (first["tools/call_frequency"], first["tools/failure_frequency"]) == (2.0, 0.0)
    assert (first["rewards/Board/mean"], first["rewards/Board/std"]) == (6.5, 0.0)
    assert first["channel/distillation/rows"] == first["channel/dpo/rows"] == 4


def test_a_model_without_a_form_of_calls_ends_with_the_reason(tuning: Journey) -> None:
    (tuning.root / "tools.py").write_text(ADD)
    (tuning.root / "calling.toml").write_text(COMPOSITION + 'tools = ["tools.py:add"]\n')
    made = specified(tuning, composition="calling.toml")
    assert made.exit_code == 0, made.stdout + made.stderr
    ran = tuning.harness("posttrain", "run", made.document["experiment"], *UNSANDBOXED, "--json")
    assert ran.exit_code == 1
    assert "chat template of this model cannot be used with tools" in ran.stdout
