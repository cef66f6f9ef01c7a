"""The backend `dry-run`: everything is validated, nothing is made."""

from typing import Any

from harness.posttrain.specification import Specification
from harness.posttrain.vocabulary import SCHEMA


def dry_result(
    spec: Specification, *, run: str, experiment: str, spec_sha256: str, observed: dict[str, Any]
) -> dict[str, Any]:
    """The result of a trainer that read all it was given. `observed`: dataset_sha256, dataset_rows,
    base_model_sha256 now."""
    return {
        "schema": SCHEMA,
        "experiment": experiment,
        "run": run,
        "backend": spec.backend.value,
        "mode": spec.mode.value,
        "profile": spec.profile.value,
        "model": spec.model["id"],
        "seed": spec.seed,
        "dtype": spec.dtype,
        "status": "dry_run",
        "spec_sha256": spec_sha256,
        "config_fingerprint": spec.fingerprint(),
        **observed,
        "rows_used": observed["dataset_rows"],
        "rows_refused": {},
        "metrics": {"wall_clock_minutes": 0.0, "final_loss": None, "tokens_seen": 0, "steps": 0},
        "artifact": None,
        "failure": None,
    }
