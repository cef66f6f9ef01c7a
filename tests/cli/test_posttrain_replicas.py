"""`distributed:` in the config.yaml of a training program, which would not read it."""

from pathlib import Path

from tests.cli.journey import UNSANDBOXED, Journey
from tests.cli.test_posttrain import SPEC
from tests.posttrain import programs


def test_a_training_program_does_not_leave_replicas_out_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    tuning = Journey(programs.make_root(tmp_path / "tuning"), tmp_path / "home")
    made = tuning.harness(*SPEC, "--backend", "dry-run", "--json")
    name = made.document["experiment"]
    config = tuning.root / f".harness/experiments/{name}/config.yaml"
    config.write_text("distributed: {engine: diloco, replicas: 2}\n")
    said = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
    error = said.document["error"]
    assert (said.exit_code, error["code"]) == (2, "distributed_invalid")
    assert f"experiments/{name}/config.yaml has `distributed`" in error["message"]
    for leads_on in (f"{name} --launcher torchrun", "harness train EXP --replicas N -- CMD"):
        assert leads_on in error["hint"]
    assert not list((config.parent).glob("runs/*"))
    config.write_text("learning_rate: 0.1\n")
    went = tuning.harness("posttrain", "run", name, *UNSANDBOXED, "--json")
    assert (went.exit_code, went.document["run"]) == (0, f"{name}/run-01"), went.stdout
