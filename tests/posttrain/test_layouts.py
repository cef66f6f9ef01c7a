"""A specification takes the layouts that others use, and says what it converted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.ledger.project import Project
from harness.posttrain.base_models import add_base_model
from harness.posttrain.field_problems import SpecificationError
from harness.posttrain.program import TrainingProgram
from tests.posttrain import programs

Change = Callable[[dict[str, Any]], dict[str, Any]]


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def conversational(row: dict[str, Any]) -> dict[str, Any]:
    asked = [said("system", "Be brief."), said("user", row["prompt"])]
    return {
        "id": row["id"],
        "chosen": [*asked, said("assistant", row["chosen"])],
        "rejected": [*asked, said("assistant", row["rejected"])],
    }


def hh(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        **{
            name: f"\n\nHuman: {row['prompt']}\n\nAssistant: {row[name]}"
            for name in ("chosen", "rejected")
        },
    }


def templated(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"prompt": f"<|im_start|>user\n{row['prompt']}<|im_end|>\n"}


def rewritten(path: Path, change: Change) -> None:
    programs.write_rows(path, [change(row) for row in programs.rows(20)])


@pytest.mark.parametrize(
    ("change", "layout"), [(conversational, "prompt in the answers"), (hh, "hh")]
)
def test_a_layout_of_others_is_taken_and_told(
    program: TrainingProgram, root: Path, change: Change, layout: str
):
    rewritten(root / "train.jsonl", change)
    made = program.create(programs.request(), by="me")
    told = [one["actual"] for one in made.warnings if one["field"] == "dataset"]
    assert told == [f"20 rows in the layout {layout!r}"]


def test_a_prompt_that_holds_a_template_is_refused(program: TrainingProgram, root: Path):
    rewritten(root / "train.jsonl", templated)
    with pytest.raises(SpecificationError, match="applies the model's chat template itself"):
        program.create(programs.request(), by="me")


@pytest.mark.parametrize("key", ["prompt", "chosen"])
def test_a_role_that_is_none_is_refused(program: TrainingProgram, root: Path, key: str):
    rows = [row | {key: [{"role": "alien", "content": row[key]}]} for row in programs.rows(20)]
    programs.write_rows(root / "train.jsonl", rows)
    with pytest.raises(SpecificationError, match=f"assistant, tool in {key}, found alien"):
        program.create(programs.request(), by="me")


def test_a_benchmark_of_conversations_is_refused(
    program: TrainingProgram, root: Path, project: Project
):
    rows = [conversational(row) for row in programs.rows(40, 100)]
    programs.write_rows(root / "held_out.jsonl", rows)
    with pytest.raises(SpecificationError, match="one text as prompt"):
        program.create(programs.request(), by="me")


def test_an_evaluator_that_these_rows_have_no_text_for_is_refused_with_one_that_fits(
    program: TrainingProgram, root: Path
):
    rows = [{"id": f"h-{n}", "prompt": f"{n}?", "completion": "yes"} for n in range(20)]
    programs.write_rows(root / "held_out.jsonl", rows)
    with pytest.raises(SpecificationError) as refused:
        program.create(programs.request(evaluator="preference"), by="me")
    named = {problem.field: problem.expected for problem in refused.value.problems}
    assert named["benchmark.evaluator"] == "exact_match or perplexity"


def test_rollouts_take_conversations_and_no_tools_of_a_row(
    program: TrainingProgram, project: Project, root: Path
):
    (root / "weights").mkdir()
    (root / "weights/config.json").write_text("{}")
    add_base_model(project, programs.MODEL, weights=root / "weights", gguf=None, inherited={})
    wanted = programs.request(backend="composed", mode="composed", tier="cpu-experimental")
    rewritten(root / "train.jsonl", lambda row: conversational(row) | {"hint": "Look."})
    (root / "hints.toml").write_text('[reward]\nweight = 0\n[distillation]\ncontexts = ["hint"]\n')
    made = program.create(replace(wanted, composition="hints.toml"), by="me")
    assert [one["actual"] for one in made.warnings if one["field"] == "dataset"] != []
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}
    rewritten(root / "train.jsonl", lambda row: conversational(row) | {"tools": [tool]})
    with pytest.raises(SpecificationError, match="tools of the composition, and none of a row"):
        program.create(wanted, by="me")


def test_a_prompt_in_another_layout_contaminates_all_the_same(
    program: TrainingProgram, root: Path
):
    rows = [conversational(row) for row in programs.rows(40, 100)]
    rows = [row | {name: row[name][1:] for name in ("chosen", "rejected")} for row in rows]
    programs.write_rows(root / "train.jsonl", rows)
    with pytest.raises(SpecificationError, match="prompts that are not trained on"):
        program.create(programs.request(), by="me")
