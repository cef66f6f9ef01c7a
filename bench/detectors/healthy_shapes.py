"""Healthy runs of many shapes. None of them was looked at one by one to decide whether it stays in
the list."""

from typing import Any

from bench.detectors.real_training import Recipe

SHAPES: dict[str, dict[str, Any]] = {
    "sgd": {"task": "digits", "optimizer": "sgd", "lr": 0.1},
    "momentum": {"task": "digits", "optimizer": "momentum", "lr": 0.03},
    "nesterov": {"task": "digits", "optimizer": "nesterov", "lr": 0.02},
    "adamw": {"task": "digits", "optimizer": "adamw", "lr": 2e-3, "decay": 0.1},
    "rmsprop": {"task": "digits", "optimizer": "rmsprop", "lr": 1e-3},
    "adagrad": {"task": "digits", "optimizer": "adagrad", "lr": 0.02},
    "warmup then cosine to zero": {"task": "digits", "schedule": "warmup_cosine"},
    "cosine to zero": {"task": "digits", "schedule": "cosine"},
    "warm restarts": {"task": "digits", "schedule": "restarts", "lr": 5e-3},
    "steps": {"task": "digits", "schedule": "steps"},
    "linear to zero": {"task": "digits", "schedule": "linear"},
    "one cycle": {"task": "digits", "schedule": "one_cycle", "lr": 8e-3},
    "inverse root": {"task": "digits", "schedule": "inverse_root"},
    "batch of 8": {"task": "digits", "batch": 8, "lr": 1e-3},
    "batch of 512": {"task": "digits", "batch": 512, "rows": 25},
    "three epochs": {"task": "digits", "rows": 3, "steps": 40},
    "six epochs": {"task": "digits", "rows": 6, "steps": 30},
    "each step a row": {"task": "digits", "rows": 200, "steps": 1, "batch": 16, "form": "steps"},
    "each step a row, cnn": {
        "task": "cnn",
        "rows": 200,
        "steps": 1,
        "batch": 8,
        "form": "steps",
        "lr": 1e-3,
    },
    "names of transformers": {
        "task": "digits",
        "names": "hf",
        "form": "steps",
        "rows": 80,
        "steps": 4,
    },
    "names of lightning": {"task": "digits", "names": "lightning"},
    "percent": {"task": "digits", "names": "percent"},
    "rounded": {"task": "digits", "names": "rounded"},
    "regression": {"task": "regression", "lr": 3e-3, "decay": 0.1, "rows": 25},
    "regression, sgd": {"task": "regression", "optimizer": "sgd", "lr": 0.01, "rows": 25},
    "fine-tuning": {"task": "digits", "start_steps": 300, "lr": 3e-4, "rows": 20},
    "fine-tuning, cnn": {"task": "cnn", "start_steps": 200, "lr": 3e-4, "rows": 15},
    "tiny data": {"task": "digits", "share": 0.1, "dropout": 0.3, "rows": 20, "lr": 2e-3},
    "dropout": {"task": "digits", "dropout": 0.5},
    "label smoothing": {"task": "digits", "smoothing": 0.1},
    "clipped": {"task": "digits", "clip": 0.5},
    "bf16": {"task": "digits", "precision": "bf16", "rows": 25},
    "early plateau": {"task": "digits", "width": 4, "rows": 60},
    "slow": {"task": "digits", "lr": 2e-4},
    "converged early": {"task": "digits", "rows": 80, "schedule": "cosine", "lr": 5e-3},
    "resumed": {"task": "digits", "resumed_at": 8, "rows": 20},
    "resumed, cnn": {"task": "cnn", "resumed_at": 12, "rows": 20},
    "cnn": {"task": "cnn", "rows": 25, "lr": 1e-3},
    "cnn, cosine": {"task": "cnn", "rows": 25, "lr": 2e-3, "schedule": "warmup_cosine"},
    "characters": {"task": "chars", "rows": 25},
    "characters, warm-up": {
        "task": "chars",
        "rows": 25,
        "schedule": "warmup_cosine",
        "optimizer": "adamw",
    },
    "characters, sgd": {"task": "chars", "rows": 25, "optimizer": "momentum", "lr": 0.05},
}
BASE: dict[str, dict[str, Any]] = {
    "cnn": {"lr": 2e-3, "steps": 8},
    "digits": {"lr": 3e-3},
    "chars": {"lr": 3e-3, "batch": 16, "steps": 8},
    "regression": {},
}


def recipe(shape: str, seed: int) -> Recipe:
    given = SHAPES[shape]
    return Recipe(**{**BASE[given["task"]], **given, "seed": seed})
