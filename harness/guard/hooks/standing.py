"""Where the work stands, in a few words for the person: the line
at a session's start, the status line.

The snapshot's `standing` is from the ledger; where a run is
now, its own files say. What the training wrote there is text
of an agent's program: only numbers and short names of it are
shown.
"""

from __future__ import annotations

from .alarms import lines_of, object_of, run_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .projects import HookedProject

LONGEST = 200
"""Characters of a line."""
STATUS = "status"
_LONGEST_NAME = 24
_MARGIN = 6
"""Columns that Claude Code leaves free beside the line."""


def opening_line(home: HookedProject) -> str:
    """E.g. `harness: toy v1 approved, exp-0002 running, run-01
    epoch 3/3; next: harness evaluate exp-0002`."""
    standing, current = _standing(home), home.snapshot.get("open_experiment")
    plan = standing.get("plan")
    parts = [] if plan is None else [f"{plan} approved" if plan else "no plan approved"]
    if current:
        parts += [f"{current['id']} {current['status']}", *_run_words(home, with_loss=False)]
    parts = parts or ["no experiment is open here"]
    step = standing.get("text")
    then = f"; next: {step}" if step else ""
    return cut(f"harness: {', '.join(parts)}", less=len(then)) + then


def status_line(home: HookedProject, columns: int = LONGEST) -> str:
    """E.g. `exp-0002 run-01 epoch 3/3 loss 0.27, best 0.91,
    next: decide`. `columns`: of the terminal, which cuts what
    is longer: the next step then has a line of its own."""
    if home.trouble:
        return cut(f"harness: every tool call is denied, next: {home.mend}")
    standing, current = _standing(home), home.snapshot.get("open_experiment")
    parts = [" ".join([current["id"], *_run_words(home)])] if current else []
    parts += [f"best {standing['best']}"] if standing.get("best") else []
    where, then = cut(", ".join(parts)), standing.get("next")
    step = f"next: {then}" if then else ""
    apart = len(where) + len(step) + _MARGIN > columns
    return ("\n" if apart else ", ").join(filter(None, (where, step)))


def cut(text: str, *, less: int = 0) -> str:
    """On one line, at most LONGEST characters, or so many
    `less`."""
    line, longest = " ".join(text.split()), max(LONGEST - less, 40)
    return line if len(line) <= longest else line[: longest - 3].rstrip() + "..."


def _standing(home: HookedProject) -> dict[str, str]:
    value = home.snapshot.get("standing")
    known = value.items() if isinstance(value, dict) else ()
    return {name: text for name, text in known if isinstance(text, str)}


def _run_words(home: HookedProject, *, with_loss: bool = True) -> list[str]:
    """["run-01 epoch 3/3", "loss 0.27", "alarm non_finite"] of
    the newest run, as far as it says so."""
    runs = run_files(home, STATUS)
    if not runs:
        return []
    run, path = runs[-1]
    status = object_of(path)
    place = f"{run}{_progress(status)}"
    loss = _metric(status.get("metrics")) if with_loss else []
    return [place, *loss, *_alarm(home, run)]


def _progress(status: dict[str, Any]) -> str:
    """As `harness train` counts: from 0, and no end that was passed."""
    epoch: Any = status.get("epoch")
    total: Any = status.get("total_epochs")
    if not _whole(epoch):
        return ""
    last = total - 1 if _whole(total) else 0
    return f" epoch {epoch}/{last}" if 0 < last >= epoch else f" epoch {epoch}"


def _metric(metrics: Any) -> list[str]:
    """The training's loss: `loss`, else the first name that ends
    so."""
    if not isinstance(metrics, dict):
        return []
    losses = [name for name in metrics if _is_name(name) and name.endswith("loss")]
    name = "loss" if "loss" in losses else losses[0] if losses else None
    value = metrics.get(name)
    # A number that is not finite stands there as a word.
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [f"{name} {value:.3g}"]
    return [f"{name} {value}"] if value in ("NaN", "Infinity", "-Infinity") else []


def _alarm(home: HookedProject, run: str) -> list[str]:
    """The newest alarm of the run that is going, or of one whose
    alarms nobody explained."""
    current = home.snapshot["open_experiment"]
    unexplained = current.get("undiagnosed")
    ended = current.get("runs") == current.get("ended")
    if ended and not (isinstance(unexplained, list) and run in unexplained):
        return []
    for name, path in run_files(home, "alarms"):
        for alarm in reversed(lines_of(path) if name == run else []):
            if alarm.get("recovered") or alarm.get("severity") == "note":
                continue
            code = alarm.get("code")
            return [f"alarm {code}"] if _is_name(code) else []
    return []


def _is_name(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_NAME
        and value.isascii()
        and value.replace("_", "a").replace("/", "a").replace("-", "a").isalnum()
    )


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
