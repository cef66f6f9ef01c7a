"""Exact evaluations on labels that nobody may read: in the vault, never in a fact.

The project folder and the facts are readable by agents. What they hold of such an evaluation is
what no label decides, and the keyed name of its exact record.
"""

import secrets
from dataclasses import asdict, replace
from typing import Any

import orjson

from harness.artifacts.locate import Layout
from harness.artifacts.objects import damaged
from harness.artifacts.vault_key import existing_key, vault_key
from harness.domain.findings import Finding
from harness.files import atomic_write, canonical_json, private_folder, sha256_bytes
from harness.ledger.facts.base import finite, read_findings, read_interval
from harness.ledger.facts.evaluation import Evaluation, EvaluationRecorded

LABELLED = frozenset({"score_not_finite", "scorer_failed"})
"""Findings that labels decide: whether they came up is told as an answer of the look."""


def seal(layout: Layout, exact: EvaluationRecorded) -> EvaluationRecorded:
    """The evaluation without what labels decide; the exact record is in the vault before the fact
    is."""
    key = vault_key(layout.vault)
    labelled = [finding for finding in exact.findings if finding.code in LABELLED]
    open_findings = [finding for finding in exact.findings if finding not in labelled]
    bare = replace(
        exact,
        value=None,
        interval=None,
        baseline=None,
        predict_seconds=None,
        findings=[_without_numbers(finding) for finding in open_findings],
        predictions=None if exact.predictions is None else key.of(exact.predictions),
    )
    if exact.value is None and not labelled:
        return bare
    record = {
        "experiment": exact.experiment,
        "run": exact.run,
        "split": exact.split,
        "value": exact.value,
        "interval": None if exact.interval is None else list(exact.interval),
        "baseline": exact.baseline,
        "predictions": exact.predictions,
        "predict_seconds": exact.predict_seconds,
        "findings": [asdict(finding) for finding in exact.findings],
        # So that equal records have no equal names.
        "salt": secrets.token_hex(16),
    }
    data = canonical_json(record)
    name = key.of(sha256_bytes(data))
    private_folder(layout.sealed)
    atomic_write(layout.sealed / name, data, mode=0o400)
    return replace(bare, sealed=name)


def unsealed(layout: Layout, evaluation: Evaluation) -> Evaluation:
    """The exact evaluation; as it is where the record is not on this machine, as in a clone.
    Nothing made of it may reach a file, a fact or an answer that an agent reads. Raises
    ObjectDamagedError for a record that is not the sealed one."""
    if evaluation.sealed is None:
        return evaluation
    path, key = layout.sealed / evaluation.sealed, existing_key(layout.vault)
    if key is None or not path.is_file():
        return evaluation
    data = path.read_bytes()
    if (actual := key.of(sha256_bytes(data))) != evaluation.sealed:
        raise damaged(path, evaluation.sealed, actual)
    record: dict[str, Any] = orjson.loads(data)
    return replace(
        evaluation,
        value=finite(record["value"]),
        interval=read_interval(record["interval"]),
        baseline=finite(record["baseline"]),
        predictions=record["predictions"],
        predict_seconds=finite(record["predict_seconds"]),
        findings=read_findings(record["findings"]),
    )


def _without_numbers(finding: Finding) -> Finding:
    """Seconds of predict on secret rows are not told."""
    if finding.code != "predict_longer_than_training":
        return finding
    return Finding(
        finding.code,
        "The predict command took longer than the training, and the plan does not say that it may.",
        finding.hint,
    )
