"""Training programs whose trainer ran elsewhere, so that a test needs no process: results,
adapters, evaluations."""

import json
import struct
from pathlib import Path
from typing import Any

from harness.domain.models import BASE
from harness.domain.statuses import SandboxKind
from harness.files import canonical_json, pretty_json, sha256_bytes
from harness.ledger.facts import BenchmarkApproved, ModelEvaluation
from harness.ledger.project import Project
from harness.posttrain.benchmark_approval import approved_for
from harness.posttrain.program import TrainingProgram
from harness.posttrain.promotion_checks import ThresholdCheck, checks_for
from harness.posttrain.specification import Specification, specification_from
from harness.posttrain.training_judgement import ProgramReport
from harness.posttrain.vocabulary import Backend
from harness.sandbox.select import choose
from tests.posttrain import programs


def adapter(folder: Path, values: tuple[float, ...] = (1.0, 2.0)) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    body = struct.pack(f"<{len(values)}f", *values)
    tensors = {
        name: {"dtype": "F32", "shape": [len(values)], "data_offsets": [begin, begin + len(body)]}
        for name, begin in (("lora_A", 0), ("lora_B", len(body)))
    }
    head = json.dumps(tensors).encode()
    whole = struct.pack("<Q", len(head)) + head + 2 * body
    (folder / "adapter_model.safetensors").write_bytes(whole)


def right_result(spec: Specification, **more: Any) -> dict[str, Any]:
    """What a trainer owes for `spec` as run-01 of exp-0001, unless `more` says otherwise."""
    dry = spec.backend is Backend.DRY_RUN
    return {
        "schema": 1,
        "experiment": "exp-0001",
        "run": "run-01",
        "spec_sha256": "5" * 64,
        "backend": spec.backend.value,
        "mode": spec.mode.value,
        "profile": spec.profile.value,
        "model": spec.model["id"],
        "seed": spec.seed,
        "dtype": spec.dtype,
        "status": "dry_run" if dry else "completed",
        "config_fingerprint": spec.config_fingerprint,
        "dataset_sha256": spec.dataset["sha256"],
        "dataset_rows": 20,
        "rows_used": 20,
        "rows_refused": {},
        "base_model_sha256": None,
        "metrics": {"wall_clock_minutes": 1.0, "final_loss": 0.5, "tokens_seen": 100, "steps": 2},
        "artifact": None if dry else dict(spec.artifact),
        "failure": None,
    } | more


class Imports:
    """A project and what is brought into it."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder = project, folder
        self.program = TrainingProgram(project, sandbox=choose(SandboxKind.NONE, required=False))

    def bring(
        self,
        seed: int = 1,
        asked: dict[str, Any] | None = None,
        weights: tuple[float, ...] | None = None,
        **more: Any,
    ) -> ProgramReport:
        """Specify, and judge a result that is right but for `more`; each seed has weights of its
        own."""
        made = self.program.create(programs.request(seed=seed, **(asked or {})), by="me")
        output = self.folder / f"{made.experiment}-out"
        spec = specification_from(made.spec)
        told = pretty_json(
            spec.for_trainer(self.project.layout.root, experiment=made.experiment, run="run-01")
        )
        result = right_result(
            spec, experiment=made.experiment, spec_sha256=sha256_bytes(told.encode())
        )
        adapter(output / "adapter", weights or (float(seed), 2.0))
        (output / "result.json").write_text(json.dumps(result | more))
        return self.program.process(made.experiment, output)

    def model(self, seed: int = 1) -> str:
        found = self.bring(seed).model
        assert found is not None
        return found

    def evaluated(self, model: str, verdict: str = "PASS", **more: Any) -> ModelEvaluation:
        """An evaluation as the harness records it, on what a person approved; 0.7 against 0.5
        unless `more` says otherwise."""
        values: dict[str, Any] = {
            "model": model,
            "against": BASE,
            "benchmark": {
                "sha256": "b" * 64,
                "evaluator": "preference",
                "path": "held_out.jsonl",
                "rows": 40,
            },
            "mode": "reduced_prompt",
            "verdict": verdict,
            "reason": "measured",
            "baseline": 0.5,
            "candidate": 0.7,
            "delta": 0.2,
            "interval": [0.1, 0.3],
            "margin": 0.2,
            "n": 40,
            "seed": 1,
            "evidence": {"model": model},
            "problems": [],
        }
        values |= more
        values["evidence"] = {"approval": self.approval(values["benchmark"]), **values["evidence"]}
        return self.project.ledger.record_model_evaluation(**values)

    def checks(self, model: str, name: str) -> list[ThresholdCheck]:
        """Those of the model's next step whose constraint ends with `name`."""
        made = self.project.ledger.model(model)
        found, _ = checks_for(self.project, made, self.project.ledger.model_history(made.id))
        return [check for check in found if check.constraint.endswith(name)]

    def approval(self, benchmark: dict[str, Any]) -> str:
        """The hash of the standing approval of the benchmark, which is made when there is none."""
        standing = approved_for(self.project, benchmark)
        if standing is None:
            standing = BenchmarkApproved(
                benchmark=benchmark,
                evaluator=benchmark["evaluator"],
                snapshot=None,
                thresholds={"delta": 0.05, "quality": 0.65, "rows": 20},
                seeds=[1, 2, 3],
                sha256=sha256_bytes(canonical_json(benchmark)),
                by="human:ada",
            )
            self.project.ledger.append(standing)
        return standing.sha256
