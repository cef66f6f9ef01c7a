"""`harness recall`, and what sessions are told from memory beside their briefing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import harness
from harness.decisions.experiments import write_hand_off
from harness.domain.findings import Finding
from harness.driver.messages import BRIEFING_CHARACTERS
from harness.driver.remembered import ROOM, briefing_for, remembered
from harness.loop.steps import Build
from harness.projections.recall import Kind, Memory, kin_of, recall, section
from harness.rendering.derived import write_derived
from tests.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Three experiments in a line and one aside, a diagnosis, a prior and a hand-off."""
    made = World.make(tmp_path_factory.mktemp("recall"))
    made.open("A wider cut with a larger learning rate")
    made.open_another("exp-0001")
    made.open_another("exp-0002", parent="exp-0002")
    made.path("exp-0001", "diagnosis").write_text(
        "# Diagnosis\n\nThe loss diverged: the learning rate was ten times too large.\n"
    )
    ledger = made.project.ledger
    ledger.record_prior(
        lesson="Warm up before a large learning rate",
        evidence="exp-0001",
        rule="Warm up for 100 steps.",
        check=None,
        by="a person",
    )
    write_hand_off(
        made.project,
        text="The scheduler is half written.",
        by="agent",
        session=None,
        experiment="exp-0003",
    )
    write_derived(made.project)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made
    made.project.close()


def said(world: World, *words: str) -> Result:
    return CliRunner().invoke(harness, ["recall", *words, "--project", str(world.root)])


def found(world: World, *words: str) -> list[tuple[str, str]]:
    answer = said(world, *words, "--json")
    assert answer.exit_code == 0, answer.output
    return [(row["kind"], row["id"]) for row in json.loads(answer.stdout)["found"]]


def test_words_are_found_by_their_stem_in_every_kind(world: World) -> None:
    answers = found(world, "learning rates diverging")
    assert answers[0] == ("diagnosis", ".harness/experiments/exp-0001/diagnosis.md")
    assert {kind for kind, _ in answers} == {"diagnosis", "experiment", "prior"}
    assert [kind for kind, _ in found(world, "scheduler")] == ["hand-off"]
    assert found(world, "decides", "CANCEL", "--kind", "decision") == [
        ("decision", "d-0002"),
        ("decision", "d-0001"),
    ]
    shown = said(world, "half-written").stdout
    assert "The scheduler is half written." in shown


def test_nothing_found_is_no_error_and_no_word_is(world: World) -> None:
    nothing = said(world, "zebra")
    assert nothing.exit_code == 0
    assert "nothing is remembered" in nothing.stdout
    assert said(world, "!!").exit_code != 0
    # The query language of FTS5 is no part of ours.
    assert said(world, 'NEAR( "', "AND NOT", "text:*").exit_code == 0


def test_what_an_experiment_builds_on_counts_more(world: World) -> None:
    assert kin_of(world.project.ledger, "exp-0003") == ["exp-0003", "exp-0002"]
    plain = found(world, "another cut")
    with_kin = found(world, "another cut", "--experiment", "exp-0002")
    assert sorted(plain) == sorted(with_kin)
    assert with_kin[0] == ("experiment", "exp-0002")


def memory(kind: Kind, name: str, text: str, experiment: str | None = None) -> Memory:
    return Memory(kind=kind, id=name, experiment=experiment, at="2026-01-01T00:00:00Z", text=text)


@pytest.mark.parametrize(
    ("role", "first"),
    [("training-checker", Kind.DIAGNOSIS), ("model-builder", Kind.PRIOR)],
)
def test_a_role_gets_first_what_its_work_needs(role: str, first: Kind) -> None:
    texts = [memory(kind, kind.value, "the loss rose after a warm-up") for kind in Kind]
    texts.append(memory(Kind.DECISION, "d-0009", "nothing of it"))
    assert recall(texts, "warm-up loss", role=role)[0].memory.kind is first


def test_a_section_ends_before_its_room_does() -> None:
    texts = [memory(Kind.PRIOR, f"p-{n:04d}", f"a long lesson {n} " * 30) for n in range(20)]
    part = section(recall(texts, "lesson"), 700)
    assert part.startswith("## From memory\n")
    assert 300 < len(part) <= 700
    assert section(recall(texts, "lesson"), 40) == ""


def test_a_builder_is_told_of_what_its_findings_are_about(world: World) -> None:
    about = Finding("loss_diverged", "The loss diverged.", "Lower the rate.")
    step = Build(index=4, attempt=1, parent=None, findings=(about,))
    told = briefing_for(world.project, step, "model-builder", None)
    assert len(told) <= BRIEFING_CHARACTERS
    briefing, _, part = told.partition("## From memory")
    assert briefing.startswith("## Objective")
    assert "the learning rate was ten times too large" in part
    assert "prior p-0001" not in part  # the briefing has it
    assert "p-0001" in briefing


def test_a_long_briefing_gives_up_room(world: World) -> None:
    page = world.project.layout.briefing
    before = page.read_text("utf-8")
    page.write_text(before + "a line of the briefing\n" * 600, "utf-8")
    try:
        step = Build(index=4, attempt=1, parent=None)
        told = briefing_for(world.project, step, "model-builder", "A wider cut that diverged")
    finally:
        page.write_text(before, "utf-8")
    assert len(told) <= BRIEFING_CHARACTERS
    assert "(cut here)" in told
    assert "## From memory" in told


def test_a_checker_is_told_of_earlier_diagnoses_not_of_its_own_experiment(world: World) -> None:
    about = ["loss_diverged the loss diverged", "wider"]
    told = remembered(world.project, "training-checker", "exp-0002", about)
    assert "diagnosis" in told.splitlines()[2]
    own = remembered(world.project, "training-checker", "exp-0001", ["wider larger"])
    assert "experiment exp-0001" not in own
    assert len(told) <= ROOM


@pytest.mark.parametrize("before", range(4))
def test_a_long_diagnosis_is_found_whatever_its_cut_splits(world: World, before: int) -> None:
    path = world.path("exp-0002", "diagnosis")
    path.write_text("zebra" + "." * before + "\N{SNAKE}" * 9_000, "utf-8")
    try:
        assert found(world, "zebra") == [("diagnosis", str(path.relative_to(world.root)))]
        path.write_bytes(b"zebra" + b"\xff" * 30_000)  # other bytes than text
        assert found(world, "zebra") == []
    finally:
        path.unlink()


def test_a_link_in_place_of_a_diagnosis_is_not_read(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("a zebra in the vault")
    path = world.path("exp-0002", "diagnosis")
    path.symlink_to(secret)
    try:
        assert found(world, "zebra") == []
    finally:
        path.unlink()
