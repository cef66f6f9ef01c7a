"""A model's way to be served and back, gone with a clock that is moved: each step with what it
should do and did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from harness.clock import SystemClock
from harness.errors import HarnessError
from harness.ledger.project import Project, open_project
from harness.posttrain.promotion import promote, rollback, serve_path
from harness.posttrain.promotion_checks import observe
from harness.posttrain.vocabulary import THRESHOLDS, Profile

BY = "human:bench"
"""This program stands in for the person whose decisions promotion and rollback are."""
UNSEEN = {"shadow observations", "shadow seconds", "arbiter rejection", "execution rejection"}


class MovedClock(SystemClock):
    """The system's, and as many seconds later as it was moved."""

    ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)


@dataclass(kw_only=True)
class Steps:
    """What was asked, expected and seen."""

    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, asked: str, expected: str, seen: str) -> None:
        self.lines.append((asked, expected, seen))
        print(
            f"{'as expected' if expected == seen else 'NOT EXPECTED':12}  {asked}: {seen}",
            flush=True,
        )

    @property
    def wrong(self) -> int:
        return sum(expected != seen for _, expected, seen in self.lines)


@dataclass(frozen=True, kw_only=True)
class Way:
    """The project, open, and its steps."""

    project: Project
    clock: MovedClock
    steps: Steps

    def step(self, label: str, model: str, expected: str) -> None:
        """`expected`: the state that follows, or "refused: " and the constraints that do not hold,
        sorted."""
        made = promote(self.project, model, by=BY, reason=f"{label}, held-out pairs")
        unmet = sorted({check.constraint.split()[-1] for check in made.checks if not check.passed})
        seen = made.after.value if made.moved else f"refused: {', '.join(unmet)}"
        self.steps.add(f"promote {label} from {made.before}", expected, seen)

    def serve(self, label: str, model: str) -> None:
        """From candidate to deployed, and what holds it back on the way."""
        self.step(label, model, "shadow")
        self.step(label, model, refusal(UNSEEN))
        for _ in range(THRESHOLDS.observations):
            observe(
                self.project,
                model,
                "accepted",
                by=BY,
                note="made up: no worker ran in shadow here",
            )
        self.step(label, model, refusal({"shadow seconds"}))
        self.clock.ahead += THRESHOLDS.shadow_seconds
        self.step(label, model, "promotable")
        self.step(label, model, "deployed")

    def back(self, expected: str) -> None:
        try:
            served = rollback(
                self.project, Profile.READER, by=BY, reason="the former answers better"
            )
            seen = (served.model or "nothing")[:12]
        except HarnessError as error:
            seen = error.code
        self.steps.add("rollback", expected, seen)

    def served(self, expected: str) -> None:
        try:
            seen = str(serve_path(self.project, Profile.READER))
        except HarnessError as error:
            seen = error.code
        self.steps.add("serve-path", expected, seen)


def refusal(constraints: set[str]) -> str:
    return f"refused: {', '.join(sorted({name.split()[-1] for name in constraints}))}"


def go(
    root: Path,
    environment: Mapping[str, str],
    good: Mapping[str, str],
    bad: Mapping[str, str],
    steps: Steps,
) -> str:
    """Promote the models of `good` (label to id, the best first), be refused those of `bad`; deploy
    the first and the second, roll back. Returns what must be served now: the first one's folder, or
    "nothing_served"."""
    clock = MovedClock()
    with open_project(root, environment, clock=clock) as project:
        way = Way(project=project, clock=clock, steps=steps)
        for label, model in bad.items():
            way.step(label, model, refusal({"evaluations"}))
        for label, model in good.items():
            way.step(label, model, "candidate")
        way.served("nothing_served")
        paths = {model: str(root / project.ledger.model(model).path) for model in good.values()}
        for label, model in list(good.items())[:2]:
            way.serve(label, model)
            way.served(paths[model])
        best = next(iter(good.values()), None)
        way.back(best[:12] if best and len(good) > 1 else "nothing_to_roll_back_to")
        return "nothing_served" if best is None else paths[best]
