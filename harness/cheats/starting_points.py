"""Where attacks begin in the defended world: a kept parent, a candidate that awaits a person."""

import json
import subprocess
import sys

from harness.cheats.attack import Attack
from harness.cheats.defended import NOTHING, Parent, judged, open_one
from harness.cheats.lab import LONGEST_S, LabProject
from harness.cheats.programs import TRAIN, instead
from harness.cheats.recorded import BY, CANDIDATE, PARENT, Trail, audited, checkpoints_of, opened
from harness.cheats.truth import copy_code, true_score
from harness.domain.statuses import ExperimentStatus, Verdict
from harness.errors import HarnessError
from harness.install.install import install
from harness.plans.approval import approve_plan
from harness.rendering.derived import write_derived


def make_parent(place: LabProject, sandbox: str) -> Parent:
    """Install, approve, and one honest experiment that is trained, judged and kept."""
    git = ["git", "-c", "user.name=lab", "-c", "user.email=lab@localhost"]
    place.run([*git, "init", "-q", "-b", "main"])
    place.run([*git, "add", "-A"])
    place.run([*git, "commit", "-q", "-m", "A project"])
    install(place.root, None, place.environment(), by=BY)
    with opened(place) as project:
        approve_plan(project, place.root / "plan.md", by=BY)
        write_derived(project)
    seen = Trail()
    open_one(place, "The first three features", None, {}, "As recomputed.", seen)
    judged(place, Attack(**NOTHING), sandbox, {}, seen, PARENT)
    with opened(place) as project:
        if project.ledger.experiment(PARENT).status is not ExperimentStatus.KEPT:
            raise HarnessError(
                f"The lab's honest parent was not kept: {seen.codes}.", hint="Fix the lab."
            )
    code = copy_code(place, place.base / "code")
    return Parent(
        true=true_score(place, code, checkpoints_of(place, PARENT)), recomputed=seen.recomputed
    )


def settle(place: LabProject) -> None:
    """Write derived files anew in a copy: they name their project's folder."""
    if (place.root / ".harness/config.toml").is_file():
        with opened(place) as project:
            write_derived(project)


def make_candidate(place: LabProject, sandbox: str) -> None:
    """A good experiment that passed both gates and awaits a person, after `make_parent`."""
    seen = Trail()
    attack = Attack(
        **{**NOTHING, "id": "good"},
        files={"train.py": instead(TRAIN, "FEATURES = 3", "FEATURES = 9")},
    )
    place.write(attack.files, {})
    _leave_a_receipt(place)
    open_one(place, "All nine features", PARENT, {}, "As recomputed.", seen)
    verdict = judged(place, attack, sandbox, {}, seen, CANDIDATE, decide=False)
    if verdict is None or verdict.verdict is not Verdict.PASS:
        raise HarnessError(
            f"The lab's good candidate did not pass: {seen.codes}.", hint="Fix the lab."
        )


def _leave_a_receipt(place: LabProject) -> None:
    """One call that the guard judged, as a session leaves it, and an audit that saw it; before the
    candidate is opened, since a plain session after that lowers its scores."""
    payload = {
        "session_id": "an-earlier-session",
        "transcript_path": "",
        "cwd": str(place.root),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "Write",
        "tool_use_id": "call_1",
        "tool_input": {"file_path": str(place.root / ".harness/policy.json"), "content": ""},
    }
    guard = place.root / ".claude/hooks/harness/run.py"
    subprocess.run(
        [sys.executable, "-I", "-S", str(guard), "PreToolUse"],
        cwd=place.root,
        env=place.environment(CLAUDE_PROJECT_DIR=str(place.root)),
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=LONGEST_S,
        check=False,
    )
    list(audited(place, Trail()))
