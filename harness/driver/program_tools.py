"""The tools of training programs: what an agent may do with one. Promoting, rejecting, rolling back
and importing are a person's verbs and have no tool."""

from typing import Any

from harness.driver.program_context import LONGEST_WAIT_S
from harness.posttrain.vocabulary import (
    HYPERPARAMETERS,
    Backend,
    EvaluationMode,
    Mode,
    Profile,
    Tier,
)

_WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_SECONDS = {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT_S}


def _one_of(words: Any) -> dict[str, Any]:
    return {"type": "string", "enum": [item.value for item in words]}


PROGRAM_TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "specify_training": (
        (
            "Record the specification of a training program, checked on every bound. Answers its"
            " experiment."
        ),
        {
            "backend": _one_of(Backend),
            "mode": _one_of(Mode),
            "profile": _one_of(Profile),
            "model": {"type": "string", "description": "An id of the registry."},
            "dataset": {"type": "string", "description": "JSON lines, relative to the project."},
            "benchmark": {"type": "string", "description": "Held-out JSON lines."},
            "evaluator": {
                "anyOf": [{"type": "string"}, _WORDS],
                "description": "A name, or the words of yours.",
            },
            "tier": _one_of(Tier),
            "trainer": {**_WORDS, "description": "With the backend command: its words."},
            "seed": {"type": "integer", "minimum": 0},
            "dtype": {"type": "string"},
            "hyperparameters": {
                "type": "object",
                "properties": {name: {"type": "number"} for name in HYPERPARAMETERS},
                "additionalProperties": False,
            },
            "minutes": {"type": "number"},
            "tokens": {"type": "integer"},
        },
        ["backend", "mode", "profile", "model", "dataset", "benchmark"],
    ),
    "run_training": (
        (
            "Start the trainer under the harness, once. Answers at once; training_status says how"
            " it ends."
        ),
        {
            "experiment_id": {"type": "string"},
            "resume": {
                "type": "boolean",
                "description": "The run that stopped goes on from its last checkpoint.",
            },
        },
        ["experiment_id"],
    ),
    "training_status": (
        (
            "Training programs with their runs, models with their states, and what is served; with"
            " experiment_id it waits until that program's run ended or wait_seconds passed."
        ),
        {"experiment_id": {"type": "string"}, "wait_seconds": _SECONDS},
        [],
    ),
    "training_lineage": (
        (
            "Dataset, runs, judged results, models, evaluations and promotions of one program or"
            " model."
        ),
        {"name": {"type": "string", "description": "exp-0007, or the beginning of a model's id."}},
        ["name"],
    ),
    "evaluate_model": (
        (
            "Score baseline and model on the same held-out rows, by the harness. A FAIL revokes"
            " what the model had earned."
        ),
        {
            "model": {"type": "string"},
            "mode": _one_of(EvaluationMode),
            "against": {
                "type": "string",
                "description": "A model as the baseline; default: the base model.",
            },
        },
        ["model"],
    ),
    "export_preferences": (
        (
            "Write the preference rows that say licence and consent to a new .jsonl file of the"
            " project, each with its hash; those left out are counted."
        ),
        {"source": {"type": "string"}, "target": {"type": "string"}},
        ["source", "target"],
    ),
}
