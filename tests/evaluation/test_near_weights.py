"""Seeds whose models are the same but for noise are one; seeds that trained are not."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.content import hash_path
from harness.domain.findings import Finding
from harness.domain.statuses import Split
from harness.evaluation.weights_probe import OtherCheckpoint, near

from .workplace import HONEST, PREDICT, codes

DRAW = np.random.default_rng(0)
WEIGHTS = DRAW.normal(size=(4, 3))
NOISE = 1e-9 * DRAW.normal(size=(4, 3))
TRAINED = 0.01 * DRAW.normal(size=(4, 3))
NUMBERS = PREDICT + "write([(row['id'], cut + float(row['x']) / 7) for row in rows])\n"


def save_npy(
    path: Path,
    weights: np.ndarray,
    seed: int,
) -> None:
    np.save(path, weights)


def save_npz(
    path: Path,
    weights: np.ndarray,
    seed: int,
) -> None:
    np.savez(path, weights=weights, seed=seed)


def save_json(
    path: Path,
    weights: np.ndarray,
    seed: int,
) -> None:
    path.write_text(json.dumps({"weights": weights.tolist()}))


def save_torch(
    path: Path,
    weights: np.ndarray,
    seed: int,
) -> None:
    torch = pytest.importorskip("torch")
    single = torch.from_numpy(weights.astype(np.float32))
    torch.save({"w": single, "seed": seed}, path)


def save_safetensors(
    path: Path,
    weights: np.ndarray,
    seed: int,
) -> None:
    pytest.importorskip("safetensors.numpy").save_file({"w": weights}, path)


def save_folder(
    path: Path,
    weights: np.ndarray,
    seed: int,
) -> None:
    path.mkdir()
    np.save(path / "weights.npy", weights)
    (path / "config.json").write_text(json.dumps({"seed": seed}))
    (path / "state.pkl").write_bytes(pickle.dumps(seed))


FORMS = {
    "a.npy": save_npy,
    "a.npz": save_npz,
    "a.json": save_json,
    "a.pt": save_torch,
    "a.safetensors": save_safetensors,
    "folder": save_folder,
}


@pytest.mark.parametrize("form", FORMS)
def test_noise_is_near_and_training_is_not(
    tmp_path: Path,
    form: str,
) -> None:
    save = FORMS[form]
    one, other, trained = (tmp_path / f"{name}{form}" for name in ("one", "other", "trained"))
    save(one, WEIGHTS, 1)
    save(other, WEIGHTS + (1e-7 * WEIGHTS if form == "a.pt" else NOISE), 2)
    save(trained, WEIGHTS + TRAINED, 3)
    assert near(one, other) is True
    assert near(one, trained) is False


def test_what_cannot_be_read_as_numbers_says_nothing(tmp_path: Path) -> None:
    one, other = tmp_path / "one.pkl", tmp_path / "other.npy"
    one.write_bytes(pickle.dumps(WEIGHTS))
    np.save(other, WEIGHTS)
    (tmp_path / "bad").write_bytes((5).to_bytes(8, "little") + b"\xff{{]x")
    (tmp_path / "link.npy").symlink_to(other)
    for pair in ((one, one), (one, other), (tmp_path / "bad", tmp_path / "bad")):
        assert near(*pair) is None
    assert near(other, tmp_path / "link.npy") is None


def seeds(
    workplace,
    cut: str,
    **changes: object,
) -> dict[str, object]:
    path = workplace.checkpoint.with_name("other.txt")
    path.write_text(cut)
    other = OtherCheckpoint(seed=2, path=path, sha256=hash_path(path))
    return {"seed": 1, "other": other, "others": (other,), **changes}


def said(outcome) -> Finding:
    (finding,) = outcome.findings
    return finding


@pytest.mark.parametrize("split", Split)
def test_seeds_that_differ_by_noise_are_one_and_keep_their_value(
    workplace,
    unsandboxed,
    split,
) -> None:
    workplace.checkpoint.write_text("0.3")
    changes = seeds(workplace, "0.3000000001", split=split)
    outcome = workplace.evaluate(
        HONEST,
        unsandboxed,
        **changes,
    )
    assert outcome.value == 0.9
    finding = said(outcome)
    assert (finding.code, finding.data["alike"]) == ("seed_ignored", [1, 2])
    assert "training.deterministic" in finding.hint
    assert "cheat" not in (finding.message + finding.hint).lower()


def test_where_the_plan_says_so_they_are_a_note(
    workplace,
    unsandboxed,
) -> None:
    workplace.checkpoint.write_text("0.3")
    changes = seeds(workplace, "0.3000000001", deterministic=True)
    assert codes(
        workplace.evaluate(HONEST, unsandboxed, **changes),
    ) == ["seeds_are_one"]


def test_seeds_that_trained_are_two_also_where_they_answer_alike(
    workplace,
    unsandboxed,
) -> None:
    workplace.checkpoint.write_text("0.3")
    outcome = workplace.evaluate(HONEST, unsandboxed, **seeds(workplace, "0.4"))
    assert codes(outcome) == []


@pytest.mark.parametrize(("cut", "found"), [("0.3 x", ["seed_ignored"]), ("0.31 x", [])])
def test_numbers_that_are_answered_alike_show_one_model_in_any_file(
    workplace,
    unsandboxed,
    cut: str,
    found: list[str],
) -> None:
    program = NUMBERS.replace("float(stream.read())", "float(stream.read().split()[0])")
    labels = np.arange(40.0) / 7
    table = workplace.table(workplace.vault / "measured.csv", x=np.arange(40.0), y=labels)
    workplace.checkpoint.write_text("0.3")
    outcome = workplace.evaluate(
        program,
        unsandboxed,
        metric="mae",
        scorer=type(workplace.request().scorer)(name="mae"),
        table=table,
        train=table,
        **seeds(workplace, cut),
    )
    assert outcome.value is not None
    assert codes(outcome) == found
