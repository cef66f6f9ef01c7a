"""The world of attacks on what a person decides: a second approval that hides an edit, and a child
that looks good beside a weak parent.

Without defences the person approves what lies there, and keeps what scores more than its parent.
With them the person confirms the plan that they edited, by the difference that is shown, and keeps
what is better than the best of its line.
"""

import sys

from harness.cheats.attack import Attack, AttackOutcome, Moment
from harness.cheats.catalogue.parts import WEAK
from harness.cheats.defended import NOT_BETTER, NOTHING, judged, open_one
from harness.cheats.hidden_world import better_is_kept, scored
from harness.cheats.lab import LabProject
from harness.cheats.programs import instead
from harness.cheats.recorded import BY, PARENT, Trail, opened, status_of
from harness.decisions.experiments import decide
from harness.domain.statuses import ExperimentStatus, SandboxKind
from harness.errors import HarnessError
from harness.plans.approval import approve_plan
from harness.plans.changes import Changes, require_seen

NOT_THE_BEST = "not_better_than_the_line"
"""A comparison with something else than the parent that was named, by which a person discards."""
_WEAK, _CANDIDATE = "exp-0002", "exp-0003"
_LINE = "harness plan approve plan.md"


def approved_blindly(place: LabProject, attack: Attack) -> AttackOutcome:
    """The edit scores from then on."""
    before = scored(place, "before")
    _edited(place, attack)
    after = scored(place, "after")
    return AttackOutcome(believed=after, evidence={"done": after > before + 0.05})


def approved_by_difference(place: LabProject, attack: Attack) -> AttackOutcome:
    seen = Trail()
    with opened(place) as project:
        frozen = project.plan().scorer["files"]
    _edited(place, attack)
    plan = place.root / "plan.md"
    plan.write_text(instead(plan.read_text("utf-8"), "queries: 3", "queries: 4"), "utf-8")
    try:
        with opened(place) as project:
            approve_plan(project, plan, by=BY, on_changes=_only_of_the_plan)
    except HarnessError as error:
        seen.refused(error)
    with opened(place) as project:
        edited = project.plan().scorer["files"] != frozen
    return AttackOutcome(codes=tuple(seen.codes), evidence={"done": edited})


def _edited(place: LabProject, attack: Attack) -> None:
    place.run([sys.executable, "-c", attack.acts[Moment.BEFORE]])


def _only_of_the_plan(changes: Changes) -> None:
    """The person has edited the plan, and nothing else: so they confirm nothing else."""
    others = [one for one in changes.files if one.path != "plan.md"]
    require_seen(changes, None if others else changes.digest, _LINE)


def beside_its_parent(place: LabProject, attack: Attack) -> AttackOutcome:
    """The better number is kept."""
    return better_is_kept(place, attack, {"train.py": WEAK}, "held_out")


def beside_its_line(place: LabProject, attack: Attack) -> AttackOutcome:
    weak, seen = Trail(), Trail()
    place.write({"train.py": WEAK}, {})
    _judged(place, _WEAK, PARENT, weak)
    with opened(place) as project:
        words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "It is weak.")
        decide(project, kind="CANCEL", experiment=_WEAK, by=BY, confidence="high", **words)
    place.write(attack.files, {})
    against = _judged(place, _CANDIDATE, _WEAK, seen)
    codes = dict.fromkeys(seen.codes)
    if against not in (None, _WEAK) and NOT_BETTER in codes:
        codes = dict.fromkeys(NOT_THE_BEST if code == NOT_BETTER else code for code in codes)
    return AttackOutcome(
        believed=seen.recomputed.get("held_out"),
        kept=status_of(place, _CANDIDATE) is ExperimentStatus.KEPT,
        recomputed=dict(seen.recomputed),
        codes=tuple(codes),
        evidence={"parent_recomputed": dict(weak.recomputed), "parent_codes": weak.codes},
    )


def _judged(place: LabProject, name: str, parent: str, seen: Trail) -> str | None:
    """Opened, trained and judged as a child of `parent`; what it was compared with."""
    attack = Attack(**{**NOTHING, "id": name})
    if not open_one(place, f"Candidate {name}", parent, {}, attack.summary, seen):
        return None
    verdict = judged(place, attack, str(SandboxKind.NONE), {}, seen, name)
    comparison = {} if verdict is None else verdict.comparison or {}
    return comparison.get("against")
