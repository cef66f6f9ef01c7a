"""A project with preference rows, and small trainers and evaluators of the standard library."""

import json
import textwrap
from pathlib import Path
from typing import Any

from harness.ledger.facts import BenchmarkApproved
from harness.ledger.project import Project
from harness.posttrain.benchmark_approval import Bar, approve_benchmark
from harness.posttrain.specification import Request
from harness.settings import create_config

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"

TRAINER = """
import argparse, hashlib, json, os, struct, sys
from pathlib import Path
from harness.run_logger import RunLogger

parser = argparse.ArgumentParser()
parser.add_argument("--spec"); parser.add_argument("--output-dir")
given = parser.parse_args()
raw = Path(given.spec).read_bytes()
spec, out = json.loads(raw), Path(given.output_dir)
data = Path(spec["dataset"]["path"]).read_bytes()
rows = [json.loads(line) for line in data.splitlines()]


def tensors(path, values):
    body, size = struct.pack(f"<{len(values)}f", *values), 4 * len(values)
    header = {
        name: {"dtype": "F32", "shape": [len(values)], "data_offsets": [place, place + size]}
        for name, place in (("lora_A", 0), ("lora_B", size))
    }
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + 2 * body)


def adapter(folder, values):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    tensors(folder / "adapter_model.safetensors", values)


def result(status="completed", **more):
    config = {name: spec[name] for name in ("backend", "mode", "dtype", "seed", "hyperparameters")}
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    values = {
        **{name: spec[name] for name in ("schema", "experiment", "run", "backend", "mode", "profile", "seed", "dtype")},
        "model": spec["model"]["id"], "status": status,
        "spec_sha256": hashlib.sha256(raw).hexdigest(),
        "config_fingerprint": hashlib.sha256(text.encode()).hexdigest(),
        "dataset_sha256": hashlib.sha256(data).hexdigest(), "dataset_rows": len(rows),
        "rows_used": len(rows), "rows_refused": {}, "base_model_sha256": spec["model"]["sha256"],
        "metrics": {"wall_clock_minutes": 0.0, "final_loss": 0.5, "tokens_seen": 100, "steps": 2},
        "artifact": spec["artifact"] if status == "completed" else None,
        "failure": None if status == "completed" else "the loss was not finite",
    }
    return values | more


log = RunLogger.from_environment()
log.start(total_epochs=2)
for epoch in range(2):
    log.epoch(epoch, {"loss": 1 / (epoch + 1), "tokens_seen": 50 * (epoch + 1)})
log.end("completed")
"""
GOOD = """
adapter(out / "adapter", [spec["seed"] + 0.5, 2.0])
print(json.dumps(result()))
"""

MADE = """
adapter(out / "adapter", [spec["seed"] + 0.5, 2.0])
print(json.dumps(result(metrics={"wall_clock_minutes": 0.0, "final_loss": 1 / 6, "tokens_seen": 300, "steps": 6})))
"""


def resuming(cut: str, *, then: str = "pass", pause: float = 0.0) -> str:
    """A trainer of six steps that keeps step 1 and 3, and goes on from what it kept; in its first
    attempt `cut` happens after step 2, in later ones `then` after step 4."""
    loop = f"""
import time
(out / "told").write_text(json.dumps({{name: text for name, text in os.environ.items() if "SPENT" in name}}))
kept = out / "state"
first = int(kept.read_text()) + 1 if kept.exists() else 0
again = os.environ["HARNESS_ATTEMPT"] != "1"
log = RunLogger.from_environment()
log.start(total_epochs=6, resumed_at=first if first else None)
for epoch in range(first, 6):
    time.sleep({pause})
    log.epoch(epoch, {{"loss": 1 / (epoch + 1), "tokens_seen": 50 * (epoch + 1)}})
    if epoch in (1, 3):
        (out / "half").write_text(str(epoch))
        (out / "half").rename(kept)
    if epoch == 2 and not again:
        {cut}
    if epoch == 4 and again:
        {then}
log.end("completed")
"""
    return TRAINER[: TRAINER.index("log = RunLogger")] + loop


EVALUATOR = """
import argparse, hashlib, json, os
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--request"); parser.add_argument("--output")
given = parser.parse_args()
request = json.loads(Path(given.request).read_text())
data = Path(request["rows"]["path"]).read_bytes()
rows = [json.loads(line) for line in data.splitlines()]
known = json.loads(Path("judge.json").read_text())
rate = known["base"] if request["adapter"] is None else known["candidate"]
scores = [
    {"id": row["id"], "value": 1.0 if index < rate * len(rows) else 0.0, "margin": 0.25}
    for index, row in enumerate(rows)
]
answer = {
    "schema": 1, "request": request["request"], "evaluator": request["evaluator"], "version": "1",
    "status": "completed", "failure": None, "rows_sha256": hashlib.sha256(data).hexdigest(),
    "base_model_sha256": request["base_model"]["sha256"],
    "adapter_sha256": None if request["adapter"] is None else request["adapter"]["sha256"], "scores": scores,
}
exec(known["change"])
Path(given.output).write_text(json.dumps(answer))
"""


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r{n}",
            "prompt": f"{n} + 1 = ?",
            "chosen": f"{n + 1}",
            "rejected": f"{n}",
            "guidance": "Count.",
        }
        for n in range(start, start + count)
    ]


def write_rows(path: Path, values: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in values))


def make_root(root: Path) -> Path:
    create_config(root, name="tuning", token="cafe")
    write_rows(root / "train.jsonl", rows(20))
    write_rows(root / "held_out.jsonl", rows(40, 100))
    write_trainer(root)
    write_evaluator(root)
    return root


def write_trainer(root: Path, body: str = GOOD, *, head: str = TRAINER) -> None:
    (root / "trainer.py").write_text(head + textwrap.dedent(body))


def write_evaluator(
    root: Path, base: float = 0.4, candidate: float = 0.9, change: str = ""
) -> None:
    """Its code stays the same: what it finds stands beside it."""
    (root / "judge.py").write_text(EVALUATOR)
    (root / "judge.json").write_text(
        json.dumps({"base": base, "candidate": candidate, "change": change})
    )


def approve(project: Project, **more: Any) -> BenchmarkApproved:
    """As a person does after reading the evaluator."""
    bar = Bar(**{"benchmark": "held_out.jsonl", "evaluator": ["python", "judge.py"], **more})
    return approve_benchmark(project, bar, by="human:ada")


def request(**more: Any) -> Request:
    values: dict[str, Any] = {
        "backend": "command",
        "mode": "orpo",
        "profile": "local-reader",
        "model": MODEL,
        "dataset": "train.jsonl",
        "benchmark": "held_out.jsonl",
        "evaluator": ["python", "judge.py"],
        "command": ["python", "trainer.py"],
    }
    if more.get("backend", "command") != "command":
        values["command"] = None
    return Request(**{**values, **more})
