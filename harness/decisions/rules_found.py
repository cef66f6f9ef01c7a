"""The rule as data that would have caught a failure, where its facts name one."""

import shlex
from collections.abc import Callable, Mapping

from harness.domain.rules import Form, Rule, read_rule
from harness.errors import UsageError
from harness.gates.prior_rules import read_config
from harness.ledger.project import Project
from harness.plans.approved import plan_of
from harness.projections.post_mortems import PostMortem, post_mortems

RATES = ("lr", "learning_rate", "base_lr", "max_lr", "peak_lr")
SIZES = ("batch_size", "per_device_train_batch_size", "train_batch_size", "batch")
_TOO_FAST = ("non_finite", "divergence", "gradient_blow_up")


def rule_found(project: Project, failed: PostMortem) -> Rule | None:
    """None where the facts name no value, path or command to enforce."""
    find = _FINDERS.get(failed.code)
    rule = None if find is None else find(project, failed)
    if rule is None:
        return None
    try:  # a path or a command may be one that the form cannot hold
        return rule if read_rule(rule.words) == rule else None
    except UsageError:
        return None


def _below(names: tuple[str, ...]) -> Callable[[Project, PostMortem], Rule | None]:
    def find(project: Project, failed: PostMortem) -> Rule | None:
        value = _value(project, failed.experiment, names)
        if value is None:
            return None
        key, failing = value
        return None if _went_well(project, failed, key, failing) else _rule(key, failing)

    return find


def _rule(key: str, failing: float) -> Rule:
    return Rule(form=Form.BELOW, subject=key, bound=failing)


def _value(project: Project, experiment: str, names: tuple[str, ...]) -> tuple[str, float] | None:
    for key, value in read_config(project, experiment).items():
        if key.rpartition(".")[2] not in names or isinstance(value, bool):
            continue
        if isinstance(value, int | float) and value > 0:
            return key, float(value)
    return None


def _went_well(project: Project, failed: PostMortem, key: str, failing: float) -> bool:
    """Whether another experiment had as much or more and did not fail so: then the value alone is
    not why."""
    for other in project.ledger.experiments():
        value = read_config(project, other.id).get(key)
        if other.id == failed.experiment or not isinstance(value, int | float):
            continue
        codes = {one.code for one in post_mortems(project.ledger, [other.id])}
        if value >= failing and failed.code not in codes and project.ledger.verdicts(other.id):
            return True
    return False


def _changed_path(project: Project, failed: PostMortem) -> Rule | None:
    """The first path in the project that the verdict's finding names."""
    for verdict in project.ledger.verdicts(failed.experiment):
        for finding in verdict.findings:
            path = finding.data.get("path")
            if (verdict.id, finding.code) == (failed.shown_by, failed.code) and path:
                return Rule(form=Form.PATH, subject=str(path))
    return None


def _command(project: Project, failed: PostMortem) -> Rule | None:
    """What a run was that wrote no row: the command that it had instead of the plan's."""
    entry = plan_of(project, project.ledger.experiment(failed.experiment)).content
    of_plan = shlex.split(entry["training"]["entry"])
    for run in project.ledger.runs(failed.experiment):
        words = list(run.argv)
        bypassed = any(finding.code == failed.code for finding in run.findings)
        if bypassed and len(words) > 1 and words[: len(of_plan)] != of_plan:
            return Rule(form=Form.COMMAND, subject=f"*{' '.join(words[1:])}*")
    return None


_FINDERS: Mapping[str, Callable[[Project, PostMortem], Rule | None]] = {
    **dict.fromkeys(_TOO_FAST, _below(RATES)),
    "out_of_memory": _below(SIZES),
    "protected_path_changed": _changed_path,
    "tampering_noticed": _changed_path,
    "split_changed": _changed_path,
    "run_logger_bypassed": _command,
}
"""Code -> how its rule is found. The others have a lesson only, which a person words."""
