"""Compare a statement about an experiment with recomputed scores and logged metrics."""

import re
from collections.abc import Callable, Iterable

from harness.claims import vocabulary as words
from harness.claims.figures import Figure
from harness.claims.known_facts import ClaimKind, KnownExperiment, KnownFacts, KnownScore
from harness.claims.statements import Quantity, Statement
from harness.domain.metric_words import understood
from harness.domain.metrics import METRICS

_SPLIT = re.compile(r"\A(?:validation|valid|val|dev|eval|test|held out) (?!error\b)")
"""A split before a metric's name: training may log the plan's metric as `val/accuracy`."""
_AVERAGES = ("macro", "micro", "weighted")
Answer = tuple[ClaimKind, str]


def missing(what: str) -> Answer:
    return ClaimKind.UNSUPPORTED, what


def of_plan(metric: str | None, experiment: KnownExperiment) -> Callable[[float], float] | None:
    """Converts the plan's metric to the written one; None when that is another metric."""
    name, plan = (
        _SPLIT.sub("", _plain(written))
        for written in (metric or experiment.metric, experiment.metric)
    )
    if name in (plan, "score") or _is_short_for(name, plan, known=experiment.metric in METRICS):
        return lambda value: value
    if words.COMPLEMENT.get(name) == plan:
        return lambda value: 1 - value
    return None


def _is_short_for(name: str, plan: str, *, known: bool) -> bool:
    """People say F1 of f1_macro, and accuracy of balanced_accuracy. A part of another known
    metric's name may be another metric: average_precision, top_5_accuracy."""
    if known:
        return plan in (f"balanced {name}", *(f"{name} {average}" for average in _AVERAGES))
    return plan.endswith(f" {name}") or plan.startswith(f"{name} ")


def _plain(name: str) -> str:
    spaced = re.sub(r"[ _/-]+", " ", name.strip().lower())
    known = understood(name)
    return words.SAME.get(spaced, spaced) if known is None else known.replace("_", " ")


def check_value(statement: Statement, experiment: KnownExperiment, _known: KnownFacts) -> Answer:
    change = of_plan(statement.metric, experiment)
    logged = _logged(statement, experiment)
    if change is None or statement.split == "train":
        return logged or missing(
            f"{experiment.id} has no recomputed or logged {statement.metric or 'value'}"
        )
    figure, before = statement.figure, statement.before
    scores = _scores(statement, experiment)
    tier = next((tier for tier in experiment.tiers if figure.agrees(change(tier))), None)
    if tier is not None and (
        words.THRESHOLD.search(before) or words.TIER_AFTER.match(statement.after)
    ):
        return _of_tier(statement, experiment, tier, scores)
    for split, numbers in experiment.answers.items():
        if statement.split in (None, split) and any(map(figure.agrees, map(change, numbers))):
            return ClaimKind.RECOMPUTED, f"{experiment.id} {split}: as it was told"
    if not scores:
        return missing(
            f"{experiment.id} has no recomputed {experiment.metric} on"
            f" {statement.split or 'any split'}"
        )
    for split, score in scores:
        if why := _agreeing(statement, experiment, score, change):
            return ClaimKind.RECOMPUTED, f"{experiment.id} {split}: {why}"
    if (
        logged is not None
        and logged[0] is ClaimKind.LOGGED
        and words.WHILE_TRAINING.search(statement.sentence.text)
    ):
        return logged
    return ClaimKind.CONTRADICTED, _scores_text(statement, experiment, scores, change)


def _of_tier(
    statement: Statement,
    experiment: KnownExperiment,
    tier: float,
    scores: list[tuple[str, KnownScore]],
) -> Answer:
    """Naming a tier claims nothing; that it was met is a claim."""
    below = [
        name
        for name, score in scores
        if (score.mean < tier) == experiment.maximize and score.mean != tier
    ]
    text = statement.sentence.text
    if below and words.MET.search(text) and not words.NOT_MET.search(text):
        return (
            ClaimKind.CONTRADICTED,
            f"{experiment.id} does not reach the tier {tier:g} on {', '.join(below)}",
        )
    return ClaimKind.RECOMPUTED, "a tier of the plan"


def _scores(statement: Statement, experiment: KnownExperiment) -> list[tuple[str, KnownScore]]:
    wanted = statement.split
    return [
        (name, score)
        for name, score in experiment.scores.items()
        if wanted is None or name == wanted
    ]


def _agreeing(
    statement: Statement,
    experiment: KnownExperiment,
    score: KnownScore,
    change: Callable[[float], float],
) -> str:
    """How the score agrees with the number; empty when it does not."""
    figure, before = statement.figure, statement.before
    mean = change(score.mean)
    if (
        words.BASELINE.search(before)
        and score.baseline is not None
        and figure.agrees(change(score.baseline))
    ):
        return f"trivial predictor {change(score.baseline):.6g}"
    # `above 0.9` is a bound that the mean must keep, not a number that it must round to.
    if way := words.bound(before):
        bound = figure.claim.value / (
            100 if figure.unit == "%" or (figure.claim.value > 1 >= abs(mean)) else 1
        )
        holds = mean >= bound if way > 0 else mean <= bound
        return f"recomputed {mean:.6g}" if holds else ""
    if (
        words.BEST.search(before)
        and score.values
        and re.search(r"\b(?:seeds?|runs?|of)\b", before, re.I)
    ):
        best = max(score.values) if experiment.maximize else min(score.values)
        return (
            f"best of {len(score.values)} seeds {change(best):.6g}"
            if figure.agrees(change(best))
            else ""
        )
    if figure.agrees(mean):
        over = f"the mean over {len(score.values)} seeds" if score.values else "as it was told"
        return f"recomputed {mean:.6g}, {over}"
    of_one = words.SEED_VALUE.search(before) or _in_a_list_of_seeds(statement, len(score.values))
    if of_one and any(figure.agrees(change(value)) for value in score.values):
        return "recomputed, of one seed"
    return ""


def _in_a_list_of_seeds(statement: Statement, seeds: int) -> bool:
    """Whether the number is in a list with one number per seed: `0.604, 0.611 and 0.615`."""
    text, place = statement.sentence.text, statement.figure.start
    if not re.search(r"\bseeds?\b", text, re.I):
        return False
    lists = re.finditer(
        r"\d*\.?\d+(?: ?%)?(?:(?:\s*(?:,|/)\s*|,?\s+and\s+)\d*\.?\d+(?: ?%)?)+", text
    )
    around = next((match.group() for match in lists if match.start() <= place < match.end()), "")
    return seeds > 1 and len(re.findall(r"\d*\.?\d+", around)) == seeds


def _scores_text(
    statement: Statement,
    experiment: KnownExperiment,
    scores: Iterable[tuple[str, KnownScore]],
    change: Callable[[float], float],
) -> str:
    parts = [f"{split} {change(score.mean):.6g}" for split, score in scores]
    hint = ""
    for split, score in experiment.scores.items():
        if statement.split not in (None, split) and statement.figure.agrees(change(score.mean)):
            hint = f"; it is the value on {split}"
        elif any(statement.figure.agrees(change(value)) for value in score.values):
            hint = f"; it is one of {len(score.values)} seeds on {split}"
    return f"{experiment.id} has {experiment.metric} {', '.join(parts)} recomputed{hint}"


def _logged(statement: Statement, experiment: KnownExperiment) -> Answer | None:
    """Compare with the logged rows; None when no such metric was logged."""
    name = _plain(statement.metric or experiment.metric)
    keys = [
        key
        for key in experiment.logged
        if _plain(key) == name or set(name.split()) <= set(_plain(key).split())
    ]
    if statement.split is not None:
        short = {"validation": ("val", "dev"), "train": ("train",), "held_out": ("test", "held")}[
            statement.split
        ]
        keys = [
            key
            for key in keys
            if any(part in key.lower() for part in short) or _plain(key) == name
        ]
    if not keys:
        return None
    for key in keys:
        if any(
            statement.figure.agrees(value) or statement.figure.near(value)
            for value in experiment.logged[key]
        ):
            return ClaimKind.LOGGED, f"{experiment.id}: metrics.jsonl has it as {key}"
    last = ", ".join(
        f"{key} ended at {experiment.logged[key][-1]:.6g}"
        for key in keys[:3]
        if experiment.logged[key]
    )
    return ClaimKind.CONTRADICTED, f"{experiment.id}: no row has it; {last}"


def _difference(statement: Statement, experiment: KnownExperiment, known: KnownFacts) -> Answer:
    if of_plan(statement.metric, experiment) is None:
        return missing(f"{experiment.id} has no recomputed {statement.metric}")
    other = known.experiments.get(statement.other or experiment.parent or "")
    if statement.other is not None and other is None:
        return missing(f"{statement.other} is not in the ledger")
    seen = []
    for split, score in _scores(statement, experiment):
        theirs = other.scores.get(split) if other is not None else None
        reference = (
            theirs.mean if theirs is not None else (score.baseline if other is None else None)
        )
        if reference is None:
            continue
        # Writers mean points, percent of the parent's score, or percent of its error.
        gain = (score.mean - reference) * (1 if experiment.maximize else -1)
        relative = abs(gain / reference) if reference else 0.0
        error = (
            abs(gain / (1 - reference))
            if 0 <= reference < 1 and "error" in statement.sentence.text.lower()
            else 0.0
        )
        seen.append(f"{gain:+.6g} on {split} to {other.id if other else 'the trivial predictor'}")
        right_way = (gain < 0) == statement.worse or not experiment.maximize or error > 0
        if right_way and (
            statement.figure.agrees_points(abs(gain))
            or _relative(statement.figure, relative, error)
        ):
            return ClaimKind.RECOMPUTED, f"{experiment.id}: {seen[-1]}"
    if not seen:
        return missing(
            f"{experiment.id} and what it is compared with have no recomputed scores on one split"
        )
    return ClaimKind.CONTRADICTED, f"{experiment.id}: recomputed {'; '.join(seen)}"


def _relative(figure: Figure, *shares: float) -> bool:
    return figure.unit == "%" and any(figure.near(100 * share) for share in shares)


def _spread(statement: Statement, experiment: KnownExperiment, _known: KnownFacts) -> Answer:
    seen = []
    for split, score in _scores(statement, experiment):
        halves = [] if score.interval is None else [(score.interval[1] - score.interval[0]) / 2]
        widths = [width for width in (score.spread, *halves) if width is not None]
        seen += [f"{split} {width:.3g}" for width in widths]
        if any(
            statement.figure.agrees_points(width) or statement.figure.near(width)
            for width in widths
        ):
            return (
                ClaimKind.RECOMPUTED,
                f"{experiment.id} {split}: spread over seeds, or half the interval",
            )
    if not seen:
        return missing(f"{experiment.id} has no recomputed spread")
    return (
        ClaimKind.CONTRADICTED,
        f"{experiment.id}: spread over seeds, half of the interval: {', '.join(seen)}",
    )


def _interval(statement: Statement, experiment: KnownExperiment, _known: KnownFacts) -> Answer:
    seen = []
    for split, score in _scores(statement, experiment):
        if score.interval is not None:
            seen.append(f"{split} {score.interval[0]:.6g} to {score.interval[1]:.6g}")
            if any(statement.figure.agrees(end) for end in score.interval):
                return ClaimKind.RECOMPUTED, f"{experiment.id}: {seen[-1]}"
    if not seen:
        return missing(f"{experiment.id} has no recomputed interval")
    return ClaimKind.CONTRADICTED, f"{experiment.id}: the interval is {', '.join(seen)}"


def _counts(statement: Statement, experiment: KnownExperiment, _known: KnownFacts) -> Answer:
    of_split = _scores(statement, experiment)
    if statement.quantity is Quantity.RUNS:
        truth, what = {experiment.launches}, "registered runs"
    elif statement.quantity is Quantity.SEEDS:
        seeds = experiment.scored_seeds
        truth = {seeds.get(split, len(score.values) or 1) for split, score in of_split} or {
            count for split, count in seeds.items() if statement.split in (None, split)
        }
        what = "scored seeds"
    else:
        truth, what = {score.rows for _, score in of_split}, f"rows on {statement.split}"
    if not truth:
        return missing(f"{experiment.id} has no {what}")
    agrees = int(statement.figure.claim.value) in truth
    shown = " or ".join(map(str, sorted(truth)))
    return (
        ClaimKind.RECOMPUTED if agrees else ClaimKind.CONTRADICTED,
        f"{experiment.id} has {shown} {what}",
    )


CHECKS: dict[Quantity, Callable[[Statement, KnownExperiment, KnownFacts], Answer]] = {
    Quantity.VALUE: check_value,
    Quantity.DIFFERENCE: _difference,
    Quantity.SPREAD: _spread,
    Quantity.INTERVAL: _interval,
    Quantity.SEEDS: _counts,
    Quantity.ROWS: _counts,
    Quantity.RUNS: _counts,
}
