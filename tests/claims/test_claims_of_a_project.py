"""The same over a real ledger: the gate, the verb and commit messages."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner

from harness.artifacts.git import run_git
from harness.cli.main import harness
from harness.domain.statuses import GateName, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from tests.world import GOOD, POOR, InProcess, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.project.close()


def judged_experiment(world: World, cuts: tuple[float, ...] = GOOD) -> tuple[str, float]:
    """An experiment that was evaluated on validation, with an empty result; and its score."""
    opened = world.open("A cut").id
    world.train(opened, cuts)
    found = evaluate_experiment(
        world.project,
        opened,
        Split.VALIDATION,
        InProcess(),
        environment={},
        shuffle_seed=7,
        admit=require_validation_passed,
    )
    world.result(opened)
    return opened, fmean(item.value for item in found if item.value is not None)


def say(world: World, experiment: str, body: str) -> None:
    path = world.path(experiment, "result")
    head = path.read_text("utf-8").split("\n---\n")[0]
    path.write_text(f"{head}\n---\n\n{body}\n", "utf-8")


def codes(world: World, experiment: str) -> dict[str, str]:
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)
    return {item.code: item.message for item in verdict.findings}


def audit(
    world: World, monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, list[dict[str, str]]]:
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    ended = CliRunner().invoke(
        harness, ["claims", "audit", *words, "--project", str(world.root), "--json"]
    )
    return ended.exit_code, json.loads(ended.stdout)["claims"]


def test_the_gate_reads_the_text_of_a_result(world: World) -> None:
    experiment, mean = judged_experiment(world)
    say(world, experiment, f"The accuracy on validation is {mean:.4f}, the mean over 3 seeds.")
    assert check_gate(world.project, experiment, GateName.VALIDATION).verdict is Verdict.PASS
    say(world, experiment, "All went well: an accuracy of 99.9 % on validation, over 5 seeds.")
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)
    assert verdict.verdict is Verdict.FAIL
    assert [
        item.data["claimed"] for item in verdict.findings if item.code == "prose_disagrees"
    ] == [
        "99.9 %",
        "5",
    ]
    say(world, experiment, f"The held-out accuracy is {mean:.4f}.")
    assert "prose_unsupported" in codes(world, experiment)
    say(world, experiment, "x" * 100_001)
    assert "expected at most 100,000" in codes(world, experiment)["prose_unsupported"]
    say(world, experiment, "The loader saves 40 % of the time.")
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)
    assert [item.code for item in verdict.findings if item.code.startswith("prose")] == [
        "prose_unproven"
    ]
    assert verdict.verdict is Verdict.PASS


def test_files_and_commit_messages_are_audited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, mean = judged_experiment(world)
    result, report = world.path(experiment, "result"), world.root / "REPORT.md"
    report.write_text(f"{experiment} reaches an accuracy of {mean:.3f}.\n", "utf-8")
    code, claims = audit(world, monkeypatch, str(result), str(report))
    assert (code, {item["kind"] for item in claims}) == (0, {"recomputed"})
    assert set(claims[0]) == {"file", "line", "text", "metric", "value", "kind", "evidence"}
    run_git(world.root, "init", "-q")
    message = f"{experiment}: accuracy 0.5013 on validation"
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    run_git(world.root, *who, "commit", "-q", "--allow-empty", "-m", message)
    code, claims = audit(world, monkeypatch, "--git")
    assert (code, [item["kind"] for item in claims]) == (1, ["contradicted"])
    assert claims[0]["file"].startswith("commit ")


def test_a_forged_front_matter_is_named_with_its_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, _ = judged_experiment(world, POOR)
    path = world.path(experiment, "result")
    path.write_text("---\nclaims:\n  accuracy: 0.9713\n---\n\nSee above.\n", "utf-8")
    code, claims = audit(world, monkeypatch, str(path))
    assert (code, [(item["line"], item["value"], item["kind"]) for item in claims]) == (
        1,
        [(3, "0.9713", "contradicted")],
    )


def test_nothing_to_read_is_a_usage_error(world: World) -> None:
    ended = CliRunner().invoke(harness, ["claims", "audit", "--project", str(world.root)])
    assert "nothing to read" in str(ended.exception)


QUOTED = (
    "Smith et al. (2021) report an accuracy of 0.41.",
    "Smith and Jones (2019) have an accuracy of 0.41 on their rows.",
    "The best published accuracy is 0.41 (https://example.org/table-3).",
    "Published: accuracy 0.41, arXiv:2101.01234.",
    "The best known accuracy is 0.41 (Smith et al., 2021).",
    "An accuracy of 0.41 on CIFAR-10 [see Smith and Jones (2019)] is known.",
    "Smith et al. (2021) report an accuracy of 0.39, and 0.41 with augmentation.",
    "While Smith et al. (2021) report an accuracy of 0.41, more rows are used there.",
    "According to https://example.org/table-3, accuracy is 0.41.",
    "| model | accuracy |\n|---|---|\n| Smith et al. (2021) | 0.41 |",
    "| model | accuracy |\n|---|---|\n| [ResNet](https://arxiv.org/abs/1512.03385) | 0.41 |",
    "Their accuracy is [0.41](https://example.org/table-3).",
    "Smith et al. (2021), https://arxiv.org/abs/2101.01234, report an accuracy of 0.41 on this"
    " data.",
    "The published baseline of Lee 2019 (doi:10.1000/182) reaches accuracy 0.41; we did not"
    " reproduce it.",
)
OWN_WITH_A_SOURCE = (
    "Our accuracy is 0.41, and Smith et al. (2021) report less.",
    "exp-0001 has an accuracy of 0.41, like https://example.org/table-3.",
    "Our accuracy is 0.41 (https://example.org/table-3).",
    "The accuracy is 0.41.",
    "[accuracy 0.41](https://example.org/log)",
    "Accuracy on validation is 0.41 (https://example.org/log).",
    "Accuracy is 0.41; the rows are those of doi:10.1000/182.",
    "Accuracy is 0.41.[^1]\n\n[^1]: https://example.org/log",
    "Accuracy is 0.41 with the optimiser of Smith et al. (2021).",
    "Run (2026) reaches an accuracy of 0.41.",
    "We follow Smith et al. (2021), https://arxiv.org/abs/2101.01234, and this model reaches an"
    " accuracy of 0.41.",
    "It reaches an accuracy of 0.41; Lee 2019 (doi:10.1000/182) publishes less.",
    "Smith et al. (2021) report less, and the accuracy on validation is 0.41.",
    "While Smith et al. (2021) report less, the model has an accuracy of 0.41.",
    "| model | accuracy |\n|---|---|\n| [model](https://example.org/log) | 0.41 |",
)


def test_another_papers_number_with_its_source_is_a_note(world: World) -> None:
    experiment, _ = judged_experiment(world)
    for text in QUOTED:
        say(world, experiment, text)
        verdict = check_gate(world.project, experiment, GateName.VALIDATION)
        assert verdict.verdict is Verdict.PASS, text
        assert {item.code for item in verdict.findings} <= {"prose_unproven"}, text
    for text in OWN_WITH_A_SOURCE:
        say(world, experiment, text)
        assert {"prose_disagrees", "prose_unsupported"} & set(codes(world, experiment)), text
