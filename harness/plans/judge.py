"""The judge of a plan: recorded when a person approves it, compared before anything is judged."""

from harness.errors import RefusedError
from harness.guard.judge_files import JudgeFiles, differences, judge_files, keep_contents
from harness.ledger.facts import JudgeRecorded
from harness.ledger.project import Project

_NAMED = 3


def record_judge(project: Project, *, by: str) -> JudgeFiles:
    """Record the judge as it is now, unless it stands recorded already. Nothing that was judged
    before is touched."""
    judge, layout, ledger = judge_files(project.layout.judge_seen), project.layout, project.ledger
    now = JudgeRecorded(
        sha256=judge.sha256,
        files=judge.count,
        interpreter=judge.interpreter,
        prefix=judge.prefix,
        python=judge.python,
        by=by,
    )
    if not layout.judge_approved.exists() or _changed(ledger.recorded_judge(ledger.writer), judge):
        keep_contents(layout.judge_approved)
    if _changed(ledger.recorded_judge(ledger.writer), judge):
        ledger.append(now)
    return judge


def require_judge(project: Project) -> None:
    """Raises RefusedError (judge_changed) when the files that judge are not those of the approval.

    An error and no finding: a changed judge must not even record a FAIL. A project whose plan was
    approved elsewhere, or before this was recorded, has nothing to compare with.
    """
    recorded = project.ledger.recorded_judge(project.ledger.writer)
    if recorded is None:
        return
    now = judge_files(project.layout.judge_seen)
    if not _changed(recorded, now):
        return
    if recorded.prefix != now.prefix:
        what = f"the Python of {recorded.prefix} judged then, that of {now.prefix} would now"
    else:
        names = differences(project.layout.judge_approved)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        what = ", ".join(names[:_NAMED]) + more or f"{recorded.files} files then, {now.count} now"
    raise RefusedError(
        f"The harness, or what it imports, is not what it was when the plan was approved: {what}.",
        hint=(
            "Reinstall it as it was; or, when the change is meant, a person approves again, with"
            " `harness plan approve` or `harness posttrain approve`: seeds, scores and verdicts"
            " stay."
        ),
        code="judge_changed",
    )


def _changed(recorded: JudgeRecorded | None, now: JudgeFiles) -> bool:
    return recorded is None or (recorded.sha256, recorded.prefix) != (
        now.sha256,
        now.prefix,
    )
