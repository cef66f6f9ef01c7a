"""A base model of one's own: any folder of a transformers model, hashed."""

import json
import struct
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.ledger.project import Project
from harness.posttrain.base_models import add_base_model, known_models
from harness.posttrain.field_problems import SpecificationError
from harness.posttrain.program import TrainingProgram
from tests.posttrain import programs

MINE = "ada/tiny-1"


def folder(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "config.json").write_text('{"model_type": "llama"}')
    (place / "tokenizer.json").write_text("{}")
    (place / "README.md").write_text("---\nlicense: |\n  mit\n---\n# Tiny\n")
    tensors = {"a": [3, 4], "b": [5]}
    header = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
        for name, shape in tensors.items()
    }
    head = json.dumps({**header, "__metadata__": {"format": "pt"}}).encode()
    (place / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head)
    return place


def test_any_local_model_is_added_and_specified(
    project: Project, program: TrainingProgram, tmp_path: Path
):
    added = add_base_model(project, MINE, weights=folder(tmp_path / "w"), gguf=None, inherited={})
    assert (added.family, added.parameters, added.licence) == ("llama", 17, "mit")
    assert known_models(project.layout)[MINE].sha256 == added.sha256
    made = program.create(programs.request(model=MINE), by="me")
    assert made.spec["model"] == {
        "id": MINE,
        "family": "llama",
        "path": str(tmp_path / "w"),
        "sha256": added.sha256,
    }
    (tmp_path / "w/tokenizer.json").write_text("[]")
    with pytest.raises(SpecificationError, match="the weights changed"):
        program.create(programs.request(model=MINE, seed=2), by="me")
    again = add_base_model(project, MINE, weights=tmp_path / "w", gguf=None, inherited={})
    assert again.sha256 != added.sha256


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"config.json": None}, "cannot be read"),
        ({"config.json": "{}"}, "names no model_type"),
        ({"config.json": "[]"}, "names no model_type"),
        ({"tokenizer.json": None}, "has no tokenizer"),
        ({"adapter_config.json": "{}"}, "is an adapter"),
        ({"model.safetensors": None, "pytorch_model.bin": "x"}, "has no safetensors"),
        ({"model.safetensors": "x"}, "is no safetensors file"),
    ],
)
def test_what_is_no_model_is_refused(
    project: Project, tmp_path: Path, change: dict[str, str | None], said: str
):
    place = folder(tmp_path / "w")
    for name, text in change.items():
        if text is None:
            (place / name).unlink()
        else:
            (place / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        add_base_model(project, MINE, weights=place, gguf=None, inherited={})


@pytest.mark.parametrize("name", ["../x", "a/b/c", "", "a b"])
def test_an_id_that_is_none_is_refused(project: Project, tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="no id of a model"):
        add_base_model(project, name, weights=folder(tmp_path / "w"), gguf=None, inherited={})


def test_an_unknown_id_without_weights_is_refused(project: Project):
    with pytest.raises(UsageError, match="no weights are given"):
        add_base_model(project, MINE, weights=None, gguf=None, inherited={})
