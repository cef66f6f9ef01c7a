"""Whether predict answers with its checkpoint: with other weights it must answer otherwise."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.content import hash_path
from harness.domain.statuses import Split
from harness.evaluation.perturbed import Change, perturbed
from harness.evaluation.weights_probe import OtherCheckpoint

from .workplace import HONEST, PREDICT, N, codes

BLIND = PREDICT + "write([(row['id'], 'b' if float(row['x']) >= 0 else 'a') for row in rows])\n"
COUNTED = "open({path!r}, 'a').write(f'{{len(rows)}} {{cut}}\\n')\n"


def numbers() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {"weight": draw.normal(size=(8, 3)).astype("float32"), "bias": draw.normal(size=3)}


def save_npz(path: Path) -> None:
    np.savez(path, **numbers())


def load_npz(path: Path) -> dict[str, np.ndarray]:
    return dict(np.load(path))


def save_safetensors(path: Path) -> None:
    pytest.importorskip("safetensors.numpy").save_file(numbers(), path)


def load_safetensors(path: Path) -> dict[str, np.ndarray]:
    return pytest.importorskip("safetensors.numpy").load_file(path)


def save_torch(path: Path) -> None:
    torch = pytest.importorskip("torch")
    tensors = {name: torch.from_numpy(values) for name, values in numbers().items()}
    torch.save({"model": tensors, "epoch": 3, "half": torch.ones(5, dtype=torch.bfloat16)}, path)


def load_torch(path: Path) -> dict[str, np.ndarray]:
    torch = pytest.importorskip("torch")
    loaded = torch.load(path, weights_only=True)
    assert loaded["epoch"] == 3
    assert bool(torch.isfinite(loaded["half"]).all())
    assert not bool((loaded["half"] == 1).all())
    return {name: values.numpy() for name, values in loaded["model"].items()}


def save_json(path: Path) -> None:
    path.write_text(json.dumps({name: values.tolist() for name, values in numbers().items()}))


def load_json(path: Path) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in json.loads(path.read_text()).items()}


FORMS = {
    ".npz": (save_npz, load_npz),
    ".safetensors": (save_safetensors, load_safetensors),
    ".pt": (save_torch, load_torch),
    ".json": (save_json, load_json),
}


@pytest.mark.parametrize("change", Change)
@pytest.mark.parametrize("suffix", FORMS)
def test_a_copy_has_other_numbers_in_the_same_form(
    tmp_path: Path, suffix: str, change: Change
) -> None:
    save, load = FORMS[suffix]
    source, before = tmp_path / f"model{suffix}", numbers()
    save(source)
    digest = hash_path(source)
    copy = perturbed(source, tmp_path / f"copy{suffix}", change)
    assert (copy.changed, copy.opaque) == (1, ())
    assert hash_path(source) == digest
    after = load(copy.path)
    assert {name: values.shape for name, values in after.items()} == {
        "weight": (8, 3),
        "bias": (3,),
    }
    for name, values in after.items():
        assert np.isfinite(values).all()
        assert not np.isclose(values, before[name]).all()
        if change is Change.SHUFFLED:
            assert np.isclose(np.sort(-values.ravel()), np.sort(before[name].ravel())).all()


def test_in_a_folder_what_holds_weights_is_changed_and_a_pickle_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    np.save(folder / "centroids.npy", np.arange(6.0))
    (folder / "config.json").write_text('{"rate": 0.5}')
    (folder / "latest.npy").symlink_to("centroids.npy")
    copy = perturbed(folder, tmp_path / "copy", Change.LOWERED)
    assert (copy.changed, copy.opaque) == (1, ())
    assert (copy.path / "config.json").read_text() == '{"rate": 0.5}'
    assert set(np.load(copy.path / "latest.npy")) == {-1026.0}
    (folder / "scaler.pkl").write_bytes(pickle.dumps(np.arange(3.0)))
    assert perturbed(folder, tmp_path / "again", Change.LOWERED).opaque == ("scaler.pkl",)


@pytest.mark.parametrize("data", [b"PK\x03\x04\0 no archive", b"\x93NUMPY\x01\x00", bytes(64)])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.npz").write_bytes(data)
    copy = perturbed(tmp_path / "model.npz", tmp_path / "copy", Change.SHUFFLED)
    assert (copy.changed, copy.opaque, copy.path.read_bytes()) == (0, ("a .npz file",), data)


@pytest.mark.parametrize("split", Split)
def test_answers_that_do_not_come_from_the_weights_have_no_score(workplace, unsandboxed, split):
    outcome = workplace.evaluate(BLIND, unsandboxed, split=split)
    assert codes(outcome) == ["weights_unused"]
    assert outcome.value is None
    assert "its own all one large negative number" in outcome.findings[0].message


def test_another_seeds_weights_end_the_question_when_the_answers_differ(workplace, unsandboxed):
    calls = workplace.state / "calls.txt"
    other = workplace.checkpoint.with_name("other.txt")
    other.write_text("1e9")
    program = PREDICT + COUNTED.format(path=str(calls)) + HONEST
    outcome = workplace.evaluate(
        program, unsandboxed, other=OtherCheckpoint(seed=2, path=other, sha256=hash_path(other))
    )
    assert (outcome.findings, outcome.value) == ((), pytest.approx(0.9))
    assert calls.read_text().split("\n") == [f"{N} 0.0", "10 0.0", "10 1000000000.0", ""]


def test_a_model_whose_seeds_answer_alike_is_asked_with_stronger_changes(workplace, unsandboxed):
    """All rows on one side of the cut: neither another seed's nor the shuffled one changes that."""
    workplace.checkpoint.write_text("-500.25")
    other = workplace.checkpoint.with_name("other.txt")
    other.write_text("-501.5")
    outcome = workplace.evaluate(
        HONEST, unsandboxed, other=OtherCheckpoint(seed=2, path=other, sha256=hash_path(other))
    )
    assert outcome.findings == ()
    assert outcome.value is not None


def test_without_another_seeds_checkpoint_its_own_is_changed(workplace, unsandboxed):
    gone = OtherCheckpoint(seed=2, path=workplace.checkpoint.with_name("no"), sha256="0" * 64)
    assert workplace.evaluate(HONEST, unsandboxed, other=gone).value == pytest.approx(0.9)
    assert codes(workplace.evaluate(BLIND, unsandboxed, other=gone)) == ["weights_unused"]


def test_a_pickle_is_a_note_beside_the_score(workplace, unsandboxed):
    pickled = workplace.checkpoint.with_name("model.pkl")
    pickled.write_bytes(pickle.dumps(0.0))
    program = "import pickle\n" + HONEST.replace(
        "float(stream.read())", "pickle.load(open(os.environ['HARNESS_CHECKPOINT'], 'rb'))"
    )
    change = {"checkpoint": pickled, "checkpoint_hash": hash_path(pickled)}
    outcome = workplace.evaluate(program, unsandboxed, **change)
    assert codes(outcome) == ["weights_not_probed"]
    assert outcome.value == pytest.approx(0.9)
    assert ".pkl" in outcome.findings[0].message


def test_of_a_pickle_another_seeds_is_tried_on_more_rows_before_the_note(workplace, unsandboxed):
    """Their cuts differ by one row of the forty, which may not be among the ten."""
    paths = [workplace.checkpoint.with_name(f"model-{number}.pkl") for number in (1, 2)]
    for path, cut in zip(paths, (0.0, 1.5), strict=True):
        path.write_bytes(pickle.dumps(cut))
    program = "import pickle\n" + HONEST.replace(
        "float(stream.read())", "pickle.load(open(os.environ['HARNESS_CHECKPOINT'], 'rb'))"
    )
    other = OtherCheckpoint(seed=2, path=paths[1], sha256=hash_path(paths[1]))
    for seed in range(3):
        outcome = workplace.evaluate(
            program,
            unsandboxed,
            checkpoint=paths[0],
            checkpoint_hash=hash_path(paths[0]),
            other=other,
            shuffle_seed=seed,
        )
        assert (outcome.findings, outcome.value) == ((), pytest.approx(0.9))


def test_a_predict_that_fails_on_other_weights_has_used_them(workplace, unsandboxed):
    program = PREDICT + "assert cut == 0\n" + BLIND
    assert workplace.evaluate(program, unsandboxed).value == pytest.approx(0.9)
