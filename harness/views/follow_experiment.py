"""Follow an experiment: its runs' rows and alarms, with what the ledger and their supervisor know.

Everything here is `logged`: the training code reported it.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from harness.artifacts.jsonl import LineFeed, parse_line
from harness.artifacts.training_status import read_status
from harness.detectors.alarm import Alarm
from harness.detectors.watch_settings import WatchSettings
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, Evidence, RunStatus, Tier
from harness.driver.supervisors import is_going, is_held, is_supervised
from harness.errors import NotFoundError, UsageError
from harness.foreign.log_rows import Row
from harness.foreign.reader import ByteTail, LogReader
from harness.ledger.project import Project
from harness.plans.approved import objective_of, plan_seeds
from harness.runs.run_tail import watch_settings
from harness.views.follow import MOST_RUNS, Heart, News, RunView, Target, trimmed
from harness.views.run_picture import RunPicture, shown_metrics
from harness.views.snapshot import active
from harness.views.usage_tail import UsageTail

_ALARM_BYTES = 4 << 20
LOOKED_AT = 20
"""Newest experiments that are searched for one with a run."""


def watched(project: Project, experiment: str | None) -> str:
    """The experiment to follow: the named one, else the active one, else the newest with a run.

    Failed runs count: a person wants to see them. Raises NotFoundError for an unknown id, and when
    no run was started yet; RefusedError (other_tree) for one whose rows are in another tree.
    """
    if experiment is not None:
        return project.require_here(experiment).id
    candidate = active(project) or _newest_with_runs(project)
    if candidate is None:
        raise NotFoundError(
            "This project has no run yet.",
            hint=(
                "Start one with `harness train EXP`; list experiments with"
                " `harness experiment list`."
            ),
            code="nothing_runs",
        )
    return candidate


def _newest_with_runs(project: Project) -> str | None:
    newest_first = reversed(project.here(project.ledger.experiments(newest=LOOKED_AT)))
    return next((item.id for item in newest_first if project.ledger.runs(item.id)), None)


def is_watched_over(project: Project, experiment: str) -> bool:
    """Whether a process trains the experiment; True between two of its runs too."""
    return is_going(project, experiment) or is_held(project, experiment)


def progress(project: Project, experiment: str) -> dict[str, Any]:
    """{experiment, state, seeds_wanted, evidence, runs[]}; state: running, ended, not started."""
    runs = project.ledger.runs(experiment)
    going = is_watched_over(project, experiment)
    plan, record = project.ledger.plan(), project.ledger.experiment(experiment)
    return {
        "experiment": experiment,
        "state": "running" if going else "ended" if runs else "not started",
        "seeds_wanted": None if plan is None else len(plan_seeds(plan, record)),
        "evidence": Evidence.LOGGED.value,
        "runs": [_run(project, run) for run in runs],
    }


def all_completed(document: dict[str, Any]) -> bool:
    """Whether the newest run of every seed that was started completed."""
    newest = {run["seed"]: run["status"] for run in document["runs"]}
    return bool(newest) and set(newest.values()) == {RunStatus.COMPLETED}


def _run(project: Project, run: Run) -> dict[str, Any]:
    """`alive`: supervised. The supervisor of an open run that is not alive has died."""
    status = None
    # Without a readable status file the ledger's part of the row is still true.
    with contextlib.suppress(UsageError):
        status = read_status(project.layout.run(run.experiment, run.id, "status"))
    return {
        "run": run.id,
        "seed": run.seed,
        "status": run.status,
        "alive": run.status not in FINAL_RUNS and is_supervised(project, run),
        "epoch": status.epoch if status else None,
        "total_epochs": status.total_epochs if status else None,
        "metrics": shown_metrics(status.metrics) if status else {},
        "seconds": run.seconds,
        "reason": run.reason,
    }


class ExperimentFollower:
    """Follows the runs of one experiment."""

    def __init__(self, project: Project, experiment: str) -> None:
        self._project, self.experiment = project, experiment
        self._runs: dict[str, _RunFollower] = {}
        self._over = False
        self.targets: Sequence[Target] = ()
        self._settings = watch_settings(project, experiment)
        if project.ledger.plan() is not None and project.ledger.program(experiment) is None:
            objective = objective_of(project.plan())
            self.targets = [
                Target(value=objective.tiers[tier], name=tier.value)
                for tier in Tier
                if tier in objective.tiers
            ]

    @property
    def title(self) -> str:
        return self.experiment

    @property
    def waits_for(self) -> str:
        return str(self._project.layout.experiment(self.experiment) / "runs")

    def poll(self, *, seconds: float) -> list[News]:
        # Ask before reading: rows that are written until the answer are then read too.
        self._over = not is_watched_over(self._project, self.experiment)
        clock = self._project.clock
        end = clock.monotonic() + seconds
        news: list[News] = []
        for run in self._project.ledger.runs(self.experiment):
            follower = self._runs.get(run.id)
            if follower is None:
                follower = self._runs[run.id] = _RunFollower(self._project, run, self._settings)
            follower.run = run
            news += follower.poll()
            while follower.reader.behind and clock.monotonic() < end:
                news = trimmed(news + follower.poll())
        return news

    def finish(self) -> list[News]:
        return [news for follower in self._runs.values() for news in follower.finish()]

    def views(self) -> list[RunView]:
        return [follower.view() for follower in self._runs.values()][-MOST_RUNS:]

    def over(self) -> bool:
        return self._over and not any(one.reader.behind for one in self._runs.values())

    def succeeded(self) -> bool:
        return all_completed(self.document())

    def document(self) -> dict[str, Any]:
        document = progress(self._project, self.experiment)
        for run in document["runs"]:
            follower = self._runs.get(run["run"])
            run["alarms"] = (
                []
                if follower is None
                else [alarm.plain() for alarm in follower.picture.shown_alarms]
            )
            run["resources"] = {} if follower is None else follower.picture.used
            run["notes"] = [] if follower is None else follower.view().notes
        return document


class _RunFollower:
    """Follows one run. The watched code writes its files, so links are not followed."""

    def __init__(self, project: Project, run: Run, settings: WatchSettings) -> None:
        self._project, self.run = project, run
        place = project.layout.run
        self.reader = LogReader(place(run.experiment, run.id, "metrics"), follow=False)
        self.picture = RunPicture(run.id, settings, title=run.id)
        self._name = f"{run.experiment}/{run.id}"
        self._alarms = ByteTail(place(run.experiment, run.id, "alarms"), follow=False)
        self._alarm_lines = LineFeed()
        self._used = UsageTail(place(run.experiment, run.id, "resources"))
        self._reported: set[tuple[str, str, int]] = set()
        self._heart = Heart(project.clock)

    def poll(self) -> list[News]:
        rows = self.reader.read_more()
        self._heart.beat(self.reader.modified, self.reader.size)
        self.picture.used = self._used.read() or self.run.resources
        news = self._take(rows)
        news += self._raised(self._new_alarms())
        return news

    def _new_alarms(self) -> list[Alarm]:
        """The supervisor's alarms that were not reported yet."""
        # The supervisor replaces the whole file for each alarm, so old ones come again.
        before, data = self._alarms.restarts, self._alarms.read(_ALARM_BYTES)
        if self._alarms.restarts != before:
            self._alarm_lines = LineFeed()
        if not self._alarms.present:
            return []
        alarms = [alarm for line in self._alarm_lines.feed(data) for alarm in _alarms(line)]
        self.picture.alarms_from(alarms)
        new = [
            alarm
            for alarm in alarms
            if (alarm.code, alarm.metric, alarm.row) not in self._reported
        ]
        self._reported |= {(alarm.code, alarm.metric, alarm.row) for alarm in new}
        return new

    def finish(self) -> list[News]:
        return self._take(self.reader.finish())

    def _take(self, rows: list[Row]) -> list[News]:
        news: list[News] = []
        for row in rows:
            if row.get("run") != self._name:
                continue
            news += self._raised(self.picture.feed(row))
            if row.get("metrics"):
                news.append(
                    News(
                        run=self.run.id, seed=self.run.seed, row=row, began=self.picture.first_time
                    )
                )
        return news

    def view(self) -> RunView:
        alive = self.run.status in FINAL_RUNS or is_supervised(self._project, self.run)
        status = self.run.status if alive else RunStatus.LOST
        size, left = self.reader.size, self.reader.behind
        return RunView(
            picture=self.picture,
            status=status.value,
            seed=self.run.seed,
            age_s=None if self.run.status in FINAL_RUNS else self._heart.age_s,
            reason=self.run.reason or ("" if alive else "unsupervised: its supervisor died"),
            notes=[*self.picture.notes(), *self.reader.notes()],
            behind=left / size if left and size else None,
        )

    def _raised(self, alarms: Sequence[Alarm]) -> list[News]:
        return [News(run=self.run.id, seed=self.run.seed, alarm=alarm) for alarm in alarms]


def _alarms(line: bytes) -> list[Alarm]:
    alarms = []
    for row in parse_line(line).rows:
        # Skip a row that no supervisor wrote.
        with contextlib.suppress(KeyError, TypeError, ValueError):
            alarms.append(Alarm.from_plain(row))
    return alarms
