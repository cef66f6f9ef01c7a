"""Two experiments on the same rows of validation: their stored predictions against the vault's
labels.

What is read is named by its hash, so what was computed once holds as long as it is there.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import orjson

from harness.artifacts.objects import ObjectDamagedError, load_object
from harness.domain.records import ApprovedPlan, Evaluation
from harness.domain.statuses import Split
from harness.evaluation.contributions import RIGHT_OR_WRONG, Rows, contributions
from harness.evaluation.frozen_files import scorer_of, table_of
from harness.evaluation.paired import Paired, paired_test
from harness.evaluation.problems import Unscorable
from harness.evaluation.rows import TableFile, read_verified, require
from harness.evaluation.scoring import FrozenScorer
from harness.evaluation.truth import Truth, read_truth
from harness.files import sha256_bytes
from harness.ledger.project import Project

_Frozen = tuple[str, TableFile, TableFile, str]
"""Scorer, training rows, validation rows, label."""


def paired(
    project: Project,
    approved: ApprovedPlan,
    own: Sequence[Evaluation],
    other: Sequence[Evaluation] | None,
) -> Paired | None:
    """The paired test of the evaluations `own` against `other`, or against the trivial predictor
    for None.

    None where rows are not known: a script's score, evaluations of before predictions were kept, a
    clone without the vault.
    """
    mine, theirs = _hashes(own), _hashes(other or ())
    if (
        scorer_of(approved).entry is not None
        or not mine
        or len({item.labels for item in (*own, *(other or ()))}) > 1
    ):
        return None
    if other is not None and not theirs:
        return None
    objects = project.layout.objects
    if not all((objects / name).is_file() for name in {*mine, *theirs}):
        return None
    frozen = (
        scorer_of(approved).name,
        table_of(project, approved, "train"),
        table_of(project, approved, Split.VALIDATION.value),
        str(approved.splits[Split.VALIDATION.value]["label"]),
    )
    try:
        return _paired(objects, frozen, mine, None if other is None else theirs)
    except (Unscorable, ObjectDamagedError):
        return None  # what is missing or changed is named by the gate's own checks


def _hashes(evaluations: Sequence[Evaluation]) -> tuple[str, ...]:
    """Of all predictions; empty when one has none."""
    known = [item.predictions for item in evaluations if item.value is not None]
    return tuple(name for name in known if name is not None) if None not in known else ()


@lru_cache(maxsize=1024)
def _paired(
    objects: Path, frozen: _Frozen, own: tuple[str, ...], other: tuple[str, ...] | None
) -> Paired:
    mine = np.stack([_rows(objects, frozen, name) for name in own])
    theirs = (
        _trivial(frozen)[None, :]
        if other is None
        else np.stack([_rows(objects, frozen, name) for name in other])
    )
    seed = int(sha256_bytes("/".join([*own, "against", *(other or ())]).encode())[:12], 16)
    return paired_test(mine, theirs, right_or_wrong=frozen[0] in RIGHT_OR_WRONG, seed=seed)


@lru_cache(maxsize=256)
def _rows(objects: Path, frozen: _Frozen, predictions: str) -> Rows:
    return contributions(
        frozen[0], _truth(frozen).labels, orjson.loads(load_object(objects, predictions))
    )


@lru_cache(maxsize=8)
def _trivial(frozen: _Frozen) -> Rows:
    truth = _truth(frozen)
    return contributions(frozen[0], truth.labels, truth.baseline)


@lru_cache(maxsize=8)
def _truth(frozen: _Frozen) -> Truth:
    name, train, validation, label = frozen
    known = require(read_verified(train, "training"), label, "training")
    asked = require(read_verified(validation, "validation"), label, "validation")
    return read_truth(known, asked, FrozenScorer(name=name), which="validation")
