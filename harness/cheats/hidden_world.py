"""The world of attacks on validation rows: a parent, and a candidate that is the same model beside
what it knows of these rows.

Without defences they lie in the project, and a candidate that scores more than its parent is kept.
With them a person approved a plan whose validation is hidden before both were made.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from harness.cheats.attack import Attack, AttackOutcome
from harness.cheats.defended import NOTHING, judged, open_one
from harness.cheats.lab import LabProject
from harness.cheats.programs import EVALUATE, instead
from harness.cheats.recorded import BY, Trail, opened, status_of
from harness.domain import variables
from harness.domain.statuses import ExperimentStatus, SandboxKind
from harness.plans.approval import approve_plan
from harness.rendering.derived import write_derived

PARENT, CANDIDATE = "exp-0002", "exp-0003"
"""In the project's second plan; its first one has an open validation."""
_OPEN, _HIDDEN = "data/validation.npz", "data/train.validation.npz"
_ON_VALIDATION = instead(EVALUATE, '"INPUTS": "data/held_out.npz"', f'"INPUTS": "{_OPEN}"')


def by_others(place: LabProject, attack: Attack) -> AttackOutcome:
    """Validation rows lie beside the training rows."""
    return better_is_kept(place, attack, {"evaluate.py": _ON_VALIDATION}, "validation")


def better_is_kept(
    place: LabProject, attack: Attack, parents: Mapping[str, str], split: str
) -> AttackOutcome:
    """A parent with the files `parents`, then the attack: without a harness the better number of
    the two is kept."""
    place.write(parents, {})
    parent = scored(place, "parent")
    place.write(attack.files, {})
    candidate = scored(place, "candidate")
    return AttackOutcome(
        believed=candidate,
        kept=candidate > parent,
        recomputed={split: candidate},
        evidence={"parent_recomputed": {split: parent}},
    )


def scored(place: LabProject, name: str) -> float:
    """What evaluate.py prints of the project's programs as they are, trained without a harness."""
    folder = place.base / name
    folder.mkdir()
    given = {
        variables.PROJECT: str(place.root),
        variables.EXPERIMENT: name,
        variables.RUN: "run-01",
        variables.RUN_DIR: str(folder),
        variables.TOKEN: "nobody-checks-it",
        variables.SEED: "1",
    }
    place.run([sys.executable, "train.py"], environment=place.environment(**given))
    checkpoint = str(folder / "checkpoints/model.npy")
    printed = place.run([sys.executable, "evaluate.py", checkpoint]).stdout
    return float(printed.splitlines()[-1])


def by_harness(place: LabProject, attack: Attack) -> AttackOutcome:
    """Validation rows are in the vault, and nowhere else."""
    _approve_hidden(place)
    honest = Trail()
    _made(place, Attack(**{**NOTHING, "id": "honest"}), PARENT, None, honest)
    place.write(attack.files, {})
    seen = Trail()
    _made(place, attack, CANDIDATE, PARENT, seen)
    return AttackOutcome(
        believed=seen.recomputed.get("validation"),
        kept=status_of(place, CANDIDATE) is ExperimentStatus.KEPT,
        recomputed=dict(seen.recomputed),
        codes=tuple(dict.fromkeys(seen.codes)),
        evidence={"parent_recomputed": dict(honest.recomputed), "parent_codes": honest.codes},
    )


def _approve_hidden(place: LabProject) -> None:
    plan = place.root / "plan.md"
    text = plan.read_text("utf-8")
    hidden = instead(text, f"validation: {_OPEN}", "validation: hidden")
    # Enough for all answers: it is the rows that are tried here, not how much is told of them.
    plan.write_text(instead(hidden, "  queries: 3\n", "  queries: 6\n  bits: 60\n"), "utf-8")
    Path(place.root, _OPEN).rename(place.root / _HIDDEN)
    with opened(place) as project:
        approve_plan(project, plan, by=BY)
        write_derived(project)


def _made(place: LabProject, attack: Attack, name: str, parent: str | None, seen: Trail) -> None:
    # A table that is not there needs no sandbox to be kept from training.
    if open_one(place, f"Candidate {attack.id}", parent, {}, attack.summary, seen):
        judged(place, attack, str(SandboxKind.NONE), {}, seen, name)
