"""A script scorer is tried before a person approves it: what everybody can answer must not score
like the truth.

It runs in a sandbox, in a process of its own, on training labels alone: nothing of a later split
is told, and a script that nobody approved yet reaches nothing.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.artifacts.objects import store_bytes
from harness.domain.records import Objective
from harness.domain.sandbox import Confinement, Sandbox
from harness.errors import HarnessError, PlanError
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import WHY, Columns
from harness.evaluation.scoring import PROGRAM, FrozenScorer, lay_out, with_packages
from harness.evaluation.truth import Truth, read_truth
from harness.plans.scorer import Closure, ScorerProbe

SECONDS = 60.0
"""All tries together may take."""
_ROWS = 400
_CLASSES = 8
_WELL = 0.5
"""Of the way from all wrong to the truth: nonsense that gets further, and further than the best
constant answer, is rewarded."""
_TIE = 1e-9
_CONSTANTS = "one answer for all rows"
_NONSENSE = "answers that are no class"


@dataclass(frozen=True, kw_only=True)
class Try:
    """Predictions that a scorer of worth rates below the truth."""

    what: str
    predictions: Columns
    kind: str


def prober(sandbox: Sandbox) -> ScorerProbe:
    """What `plan check` and `plan approve` try a script with."""

    def probe(closure: Closure, objective: Objective, labels: NDArray[Any]) -> list[HarnessError]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = Path(name).resolve()
            objects = folder / "objects"
            files = {path: store_bytes(data, objects) for path, data in closure.sources.items()}
            packages = closure.environment
            scorer = FrozenScorer(
                name=closure.entry,
                entry=closure.entry,
                files=files,
                environment=packages,
                approved_environment=packages.sha256 if packages else None,
            )
            return _Tries(sandbox, scorer, folder, objective).problems(labels)

    return probe


def tries_of(truth: Truth, *, probabilities: bool) -> Iterator[Try]:
    """Of a truth in classes, numbers or, with `probabilities`, shares of classes."""
    n = len(truth.labels)
    if probabilities:
        names = truth.classes
        yield Try(what="equal shares", predictions=_shares(names, [None] * n), kind=_CONSTANTS)
        for name in _common(truth.labels):
            what = f"the class {name!r} for all rows"
            yield Try(what=what, predictions=_shares(names, [name] * n), kind=_CONSTANTS)
        answers: list[Any] = _rolled(truth.labels)
        yield Try(what="the truth of other rows", predictions=_shares(names, answers), kind="rows")
        return
    for value in _constants(truth):
        what = f"{value!r} for all rows"
        yield Try(what=what, predictions={"prediction": [value] * n}, kind=_CONSTANTS)
    if not truth.numeric:
        for what, value in _nonsense(truth.classes):
            yield Try(what=what, predictions={"prediction": [value] * n}, kind=_NONSENSE)
    shuffled = _shuffled(truth.labels)
    for what, answers in (("the truth in another order", shuffled), *_wrong(truth)):
        yield Try(what=what, predictions={"prediction": answers}, kind="rows")


def _constants(truth: Truth) -> list[Any]:
    if not truth.numeric:
        return list(_common(truth.labels))
    numbers = np.asarray(truth.labels, dtype=np.float64)
    low, high = float(numbers.min()), float(numbers.max())
    some = [float(numbers.mean()), float(np.median(numbers)), (low + high) / 2, 0.0, -1e12, 1e12]
    return list(dict.fromkeys([*_common(truth.labels), *some, *_all_digits(truth.labels)]))


def _all_digits(labels: Sequence[float]) -> list[float]:
    """Every class at once where classes are numbers: 0, 1 and 2 stand in the text of 210."""
    digits = sorted({str(int(label)) for label in labels if float(label).is_integer()})
    return [float("".join(digits[::-1]))] if 1 < len(digits) <= _CLASSES else []


def _nonsense(classes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every class at once, and no class."""
    some = classes[: 4 * _CLASSES]
    for mark in ("|", ",", " ", ";", "\n"):
        yield f"every class at once ({mark.join(some)[:40]!r})", mark.join(some)
    yield "every class in a list", repr(list(some))
    yield "an empty answer", ""


def _wrong(truth: Truth) -> Iterator[tuple[str, list[Any]]]:
    """Each row another class than its own."""
    if truth.classes and not truth.numeric:
        after = dict(zip(truth.classes, [*truth.classes[1:], truth.classes[0]], strict=True))
        yield "a wrong class for each row", [after[label] for label in truth.labels]


def _shuffled(labels: Sequence[Any]) -> list[Any]:
    order = np.random.default_rng(1).permutation(len(labels))
    return [labels[int(row)] for row in order]


def _rolled(labels: Sequence[Any]) -> list[Any]:
    return [*labels[1:], labels[0]]


def _common(labels: Sequence[Any]) -> list[Any]:
    return [value for value, _ in Counter(labels).most_common(_CLASSES)]


def _shares(classes: Sequence[str], answers: Sequence[str | None]) -> Columns:
    """All of a row's share for its answer; equal shares for None."""
    equal = 1 / len(classes)
    return {
        f"p_{name}": [equal if one is None else float(one == name) for one in answers]
        for name in classes
    }


@dataclass(frozen=True)
class _Tries:
    sandbox: Sandbox
    scorer: FrozenScorer
    folder: Path
    objective: Objective

    def problems(self, labels: NDArray[Any]) -> list[HarnessError]:
        """What is wrong with the scorer."""
        try:
            chosen = _sample(labels)
            truth = read_truth(chosen, chosen, self.scorer, which="training")
            lay_out(self.scorer, self.folder / "objects", self.folder)
        except Unscorable as error:
            return [
                self._refused("scorer_fails", error.finding.message, "labels that it can read")
            ]
        if len(set(truth.labels)) < 2:
            return []  # nothing can be told apart; the review of the data says so
        names = truth if truth.classes else _as_classes(truth)
        shares = _shares(names.classes, names.labels)
        # A script takes one form, and nothing says which: that in which the truth has a score.
        found = self._tried(truth, {"prediction": list(truth.labels)}, probabilities=False)
        if isinstance(found[0], str):
            shared = self._tried(names, shares, probabilities=True, labels=truth.labels)
            found = found if isinstance(shared[0], str) else shared
        best, tried, changed = found
        if isinstance(best, str):
            what = f"it gives no score to the right answers: {best}"
            return [self._refused("scorer_fails", what, "a finite number")]
        if changed:
            what = f"{changed[0]} score {changed[1]!r} and then {changed[2]!r}"
            return [self._refused("scorer_not_deterministic", what, "the same score each time")]
        return self._compared(best, tried)

    def _tried(
        self,
        truth: Truth,
        right: Columns,
        *,
        probabilities: bool,
        labels: list[Any] | None = None,
    ) -> tuple[float | str, list[tuple[Try, float]], tuple[str, Any, Any] | None]:
        """(the score of the truth or why there is none, the other scores, what scores otherwise a
        second time)."""
        tries = [
            Try(what="the right answers", predictions=right, kind="rows"),
            # A perfect score may hide what is drawn.
            Try(what="half of the right answers", predictions=_half(right), kind="rows"),
            *tries_of(truth, probabilities=probabilities),
        ]
        asked = truth.labels if labels is None else labels
        first = self._score(asked, tries)
        if isinstance(first[0], str):
            return first[0], [], None
        # The other way round, so that a script which counts its calls is found too.
        second = self._score(asked, tries[::-1])[::-1]
        changed = next(
            (
                (one.what, before, after)
                for one, before, after in zip(tries, first, second, strict=True)
                # Two reasons for no score may differ in words alone.
                if before != after and not (isinstance(before, str) and isinstance(after, str))
            ),
            None,
        )
        scored = zip(tries[2:], first[2:], strict=True)
        others = [(one, value) for one, value in scored if not isinstance(value, str)]
        return first[0], others, changed

    def _compared(self, best: float, tried: list[tuple[Try, float]]) -> list[HarnessError]:
        gain = self.objective.gain
        higher = [pair for pair in tried if gain(pair[1], best) > _rounding(best, pair[1])]
        if higher:
            one, value = max(higher, key=lambda pair: gain(pair[1], best))
            what = f"{one.what} scores {value:.6g}, better than the right answers with {best:.6g}"
            expected = (
                f"the right answers to be best, for the plan says {self.objective.direction}"
            )
            return [self._refused("scorer_wrong_direction", what, expected)]
        equal = [one for one, value in tried if abs(value - best) <= _rounding(best, value)]
        if equal:
            what = f"{equal[0].what} scores {best:.6g}, as much as the right answers"
            more = f" (and {len(equal) - 1} more)" if len(equal) > 1 else ""
            return [self._refused("scorer_rewards_anything", what + more, "less than the truth")]
        worst = min(tried, key=lambda pair: gain(pair[1], best), default=None)
        if worst is None:
            return []
        reached = {
            one.what: (gain(value, worst[1]) / gain(best, worst[1]), one, value)
            for one, value in tried
        }
        constant = max(
            [share for share, one, _ in reached.values() if one.kind == _CONSTANTS], default=0.0
        )
        for share, one, value in reached.values():
            if one.kind == _NONSENSE and share > max(constant, _WELL) + _TIE:
                what = (
                    f"{one.what} scores {value:.6g}, with {best:.6g} for the right answers: better"
                    " than any class for all rows"
                )
                expected = "less than the best constant answer"
                return [self._refused("scorer_rewards_anything", what, expected)]
        return []

    def _score(self, labels: list[Any], tries: Sequence[Try]) -> list[float | str]:
        """A finite number each, or why there is none."""
        task = {
            "scorer": self.scorer.name,
            "script": self.scorer.entry,
            "labels": labels,
            "ids": [f"row-{row}" for row in range(len(labels))],
            "tries": [one.predictions for one in tries],
        }
        output = self.folder / "output"
        output.mkdir(exist_ok=True)
        job, result = self.folder / "job.json", output / "result.json"
        result.unlink(missing_ok=True)
        job.write_text(json.dumps(task), encoding="utf-8")
        program = self.folder / PROGRAM.name
        packages = self.scorer.environment
        python = [sys.executable, "-I", "-S"] if packages is None else with_packages(packages)
        there = (self.folder,) if packages is None else (self.folder, packages.folder)
        done = self.sandbox.run(
            [*python, str(program), str(job), str(result)],
            confinement=Confinement(writable=(output,), read_only=there),
            cwd=output,
            environment={"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TMPDIR": str(output)},
            timeout_s=SECONDS,
        )
        if done.timed_out:
            return [f"it was ended after {SECONDS:g} s"] * len(tries)
        if done.exit_code != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
            return [f"it ended with exit code {done.exit_code}: {lines[-1][:WHY]}"] * len(tries)
        try:
            answers = json.loads(result.read_text("utf-8"))["tries"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            return [f"it left no result ({type(error).__name__})"] * len(tries)
        # The script can write there as well.
        if not isinstance(answers, list) or len(answers) != len(tries):
            return [f"it left no result for each of {len(tries)} tries"] * len(tries)
        return [_number(answer) for answer in answers]

    def _refused(self, code: str, what: str, expected: str) -> PlanError:
        return PlanError(
            f"oracle.scorer: {self.scorer.name}: {what}; expected {expected}.",
            hint="Correct the script, or use a built-in scorer; then run `harness plan check`.",
            code=code,
        )


def _number(answer: Any) -> float | str:
    if isinstance(answer, dict):
        return str(answer.get("why"))
    try:
        number = float(answer)
    except (TypeError, ValueError, OverflowError):
        return "it is no number"
    return number if np.isfinite(number) else f"it is {answer}"


def _rounding(one: float, other: float) -> float:
    return _TIE * max(abs(one), abs(other))


def _half(right: Columns) -> Columns:
    return {
        name: [*values[: len(values) // 2], *_shuffled(values[len(values) // 2 :])]
        for name, values in right.items()
    }


def _sample(labels: NDArray[Any]) -> NDArray[Any]:
    """At most _ROWS rows, at random, of each class at least the first."""
    if len(labels) <= _ROWS:
        return labels
    firsts = np.unique(labels.astype(str), return_index=True)[1][: _ROWS // 2]
    others = np.random.default_rng(1).permutation(len(labels))[: _ROWS - len(firsts)]
    sample: NDArray[Any] = labels[np.unique(np.concatenate([firsts, others]))]
    return sample


def _as_classes(truth: Truth) -> Truth:
    """Numbers as the classes that `p_<class>` columns name."""
    names = [str(int(one)) if float(one).is_integer() else repr(one) for one in truth.labels]
    return replace(truth, labels=names, classes=tuple(dict.fromkeys(names)))
