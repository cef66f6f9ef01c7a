"""What the watchdog does with a session that finds out nothing: nudge, end for a fresh one.
Each is a decision with its evidence; the loop's own limits escalate and stop."""

from collections.abc import Sequence

from harness.decisions.experiments import decide
from harness.domain.statuses import DecisionKind
from harness.driver import pulse
from harness.driver.circles import END_AT, NUDGE_AT, Circles
from harness.driver.tool_context import ToolContext

BY = "harness"
NUDGE = (
    "harness: your last {n} calls of {tool} brought the answers that you had. Do what is left to do"
    " in another way, or end your turn and say what is in the way."
)
ENDED = "talked in circles"


def nudge(context: ToolContext, circles: Circles) -> str:
    """What the session is told; recorded."""
    evidence = (
        f"{circles.repeated} calls in a row, the last of {circles.tool}, brought no new answer"
    )
    _record(context, "Nudge it.", "Leave it alone; end it.", f"{evidence}.")
    circles.told(context.project.ledger.position())
    return NUDGE.format(n=NUDGE_AT, tool=circles.tool)


def end(context: ToolContext, circles: Circles) -> str:
    """Why the session ends; recorded. Its hand-off tells the fresh one."""
    reason = (
        f"{END_AT} calls in a row, the last of {circles.tool}, brought no new answer, also after it"
        " was told; and no fact was recorded meanwhile"
    )
    _record(
        context, "End it; its step begins again in a fresh session.", "Nudge it again.", reason
    )
    return f"{ENDED}: {reason}"


def progress(context: ToolContext) -> object:
    """How far the work of a session is, whatever it says: its experiment's runs and their rows. Not
    the ledger's position: another tree's loop moves that, too."""
    if context.current is None:
        return None
    project = context.project
    runs = project.ledger.runs(context.current)
    paths = [project.layout.run(run.experiment, run.id, "metrics") for run in runs]
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    return [(run.id, run.status, size) for run, size in zip(runs, sizes, strict=True)]


def silent(context: ToolContext, seconds: float, at_work: Sequence[str]) -> None:
    """A session that was cut for its silence, while the tools and hooks `at_work` did not
    answer."""
    what = f"No message, and no tool or hook of the harness at work, for {seconds:g} s"
    if at_work:
        most = pulse.LONGEST_WORK_S + seconds
        what = f"{' and '.join(at_work)} did not answer, and no message came, for {most:g} s"
    reason = f"{what}; and in the last {seconds / 2:g} s of it no run of its experiment went on."
    _record(context, "End it; its step begins again in a fresh session.", "Wait longer.", reason)


def _record(context: ToolContext, choice: str, alternatives: str, reason: str) -> None:
    about = context.current or "no experiment yet"
    decide(
        context.project,
        kind=DecisionKind.WATCHDOG,
        experiment=None,
        by=BY,
        context=f"Session {context.session} ({context.role.name}), {about}.",
        choice=choice,
        alternatives=alternatives,
        reason=reason,
        confidence="medium",
    )
