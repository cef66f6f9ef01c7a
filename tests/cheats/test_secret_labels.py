"""Attacks on labels that lie in the vault: each is real where they do not, and its own structure stops
it."""

import sys
from pathlib import Path

import pytest

from harness.artifacts.vault_key import vault_key
from harness.cheats import hidden_world
from harness.cheats.attack import Attack, Moment, TrueScores
from harness.cheats.bench import run_bench
from harness.cheats.catalogue.secret_labels import SECRET_LABELS
from harness.cheats.defences import structural_of
from harness.cheats.lab import LabProject, make_project
from harness.cheats.outcome_rows import SEED
from harness.evaluation.split_rows import TableFile, load_rows
from harness.files import sha256_file


def by_id(name: str) -> Attack:
    return next(one for one in SECRET_LABELS if one.id == name)


@pytest.fixture
def place(tmp_path: Path) -> LabProject:
    return make_project(tmp_path, SEED)


def guessed(place: LabProject, told: str) -> bool:
    (place.root / ".harness").mkdir(exist_ok=True)
    (place.root / ".harness/evaluation.json").write_text(f'{{"labels": "{told}"}}', "utf-8")
    program = by_id("labels-guessed-from-a-hash").acts[Moment.CLOSED]
    assert place.run([sys.executable, "-c", program]).returncode == 0
    return (place.root / "data/decoded.txt").is_file()


def test_a_plain_hash_of_labels_tells_which_guess_is_right_and_a_keyed_one_does_not(
    place: LabProject, tmp_path: Path
) -> None:
    path = place.root / "data/held_out.npz"
    rows = load_rows(
        TableFile(path=path, sha256=sha256_file(path)),
        which="held_out",
        inputs=["x"],
        label="y",
        id_column="id",
    )
    plain = rows.labels_hash()
    assert not guessed(place, vault_key(tmp_path / "vault").of(plain))
    assert guessed(place, plain)


def test_rows_learned_by_heart_look_better_where_they_can_be_read(place: LabProject) -> None:
    attack = by_id("validation-learned-by-heart")
    outcome = hidden_world.by_others(place, attack)
    assert (outcome.kept, outcome.believed) == (True, 1.0)
    assert attack.success(outcome, TrueScores(score=0.6, parent=0.6))


@pytest.mark.slow
@pytest.mark.parallel
@pytest.mark.parametrize("attack", SECRET_LABELS, ids=lambda attack: attack.id)
def test_its_own_structure_stops_it(tmp_path: Path, attack: Attack) -> None:
    (document,) = run_bench([attack.id], ["auto"], 2, tell=lambda line: None, base=tmp_path)
    (row,) = document["attacks"]
    assert row["succeeded_undefended"], row
    assert row["caught"], row
    assert structural_of(attack) in row["caught_by"]
