"""An adapter that changes nothing, or is another base's, is no model; nor is a result that its own
rows contradict."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from harness.posttrain.adapter import adapter_fault
from tests.posttrain import programs

Tensors = dict[str, tuple[str, list[float]]]
BASE = {"id": "org/base-1b", "path": None}
LAYER = "base_model.model.layers.0.q_proj"
HEAD = "base_model.model.lm_head.weight"
CODES = {"F32": "f", "F16": "e", "F64": "d", "BF16": "H", "I8": "b"}


def write(path: Path, tensors: Tensors) -> None:
    header, body = {}, b""
    for name, (kind, values) in tensors.items():
        data = struct.pack(f"<{len(values)}{CODES[kind]}", *values)
        places = [len(body), len(body) + len(data)]
        header[name] = {"dtype": kind, "shape": [len(values)], "data_offsets": places}
        body += data
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + body)


def fault(folder: Path, tensors: Tensors, *, base: Any = None, **config: Any) -> str | None:
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"} | config))
    write(folder / "adapter_model.safetensors", tensors)
    return adapter_fault(folder, base or BASE)


def pair(a: list[float], b: list[float], kind: str = "F32") -> Tensors:
    return {f"{LAYER}.lora_A.weight": (kind, a), f"{LAYER}.lora_B.weight": (kind, b)}


@pytest.mark.parametrize("kind", ["F32", "F16", "F64", "BF16"])
def test_numbers_that_are_all_zero_are_no_adapter(tmp_path: Path, kind: str) -> None:
    assert "all its numbers are 0" in str(fault(tmp_path / "a", pair([0, 0], [0, 0], kind)))
    one = 0x3F80 if kind == "BF16" else 1.0
    assert fault(tmp_path / "a", pair([one, 0], [0, one], kind)) is None


def test_minus_zero_is_zero(tmp_path: Path) -> None:
    assert "all its numbers" in str(fault(tmp_path / "a", pair([-0.0], [-0.0])))
    assert "all its numbers" in str(fault(tmp_path / "a", pair([0x8000], [0x8000], "BF16")))


@pytest.mark.parametrize(
    "tensors",
    [
        pair([0.5, 1.0], [0.0, 0.0]),  # as LoRA begins, before its first step
        pair([0.0], [0.5]),
        {f"{LAYER}.lora_A.weight": ("F32", [0.5])},
        {f"{LAYER}.lora_embedding_A": ("F32", [0.5]), f"{LAYER}.lora_embedding_B": ("F32", [0.0])},
        pair([0.5], [0.0]) | {f"{LAYER}.lora_magnitude_vector": ("F32", [2.0])},
    ],
)
def test_a_product_with_zero_changes_no_weight(tmp_path: Path, tensors: Tensors) -> None:
    assert "no weight differs" in str(fault(tmp_path / "a", tensors))


def test_whole_weights_are_compared_with_the_bases(tmp_path: Path) -> None:
    weights = tmp_path / "base"
    weights.mkdir()
    write(weights / "model.safetensors", {"lm_head.weight": ("F32", [1.0, 2.0])})
    base = {"id": "org/base-1b", "path": str(weights)}
    same, other = {HEAD: ("F32", [1.0, 2.0])}, {HEAD: ("F32", [1.0, 2.5])}
    assert "no weight differs" in str(fault(tmp_path / "a", same, base=base))
    assert fault(tmp_path / "a", other, base=base) is None
    assert fault(tmp_path / "a", same | pair([1.0], [1.0]), base=base) is None


def test_what_multiplies_by_one_changes_no_weight(tmp_path: Path) -> None:
    ones, more = {"ia3_l": ("F32", [1.0, 1.0])}, {"ia3_l": ("F32", [1.0, 1.1])}
    assert "no weight differs" in str(fault(tmp_path / "a", ones, peft_type="IA3"))
    assert fault(tmp_path / "a", more, peft_type="IA3") is None


def test_an_adapter_of_another_base_is_refused(tmp_path: Path) -> None:
    good = pair([1.0], [1.0])
    for named in (None, "org/base-1b"):
        assert fault(tmp_path / "a", good, base_model_name_or_path=named) is None
    for named in ("org/other-1b", "/elsewhere/base", ["org/base-1b"], 1):
        said = fault(tmp_path / "a", good, base_model_name_or_path=named)
        assert "specified is org/base-1b" in str(said)


def told(**metrics: Any) -> str:
    values = {"wall_clock_minutes": 0.0, "final_loss": 0.5, "tokens_seen": 100, "steps": 2}
    return (
        f"{programs.GOOD.splitlines()[1]}\nprint(json.dumps(result(metrics={values | metrics})))"
    )


@pytest.mark.parametrize(
    ("metrics", "field"),
    [
        ({"steps": 0}, "metrics.steps"),
        ({"final_loss": 0.01}, "metrics.final_loss"),
    ],
)
def test_a_result_that_says_it_trained_nothing_or_that_its_rows_contradict_is_refused(
    execute: Any, metrics: dict[str, Any], field: str
) -> None:
    report = execute(told(**metrics))
    assert report.model is None
    assert {item.field for item in report.problems} == {field}


def test_a_loss_that_a_row_rounds_is_the_same(execute: Any) -> None:
    assert execute(told(final_loss=0.5004)).model is not None


def test_a_trainer_that_saves_zeros_makes_no_model(execute: Any) -> None:
    report = execute('adapter(out / "adapter", [0.0, 0.0])\nprint(json.dumps(result()))')
    assert report.model is None
    assert "all its numbers are 0" in report.run.reason
