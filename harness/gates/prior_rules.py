"""What active priors ask of an experiment: values of its config.yaml, and files in its folder."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.artifacts.content import linked, read_text
from harness.artifacts.front_matter import read_yaml
from harness.domain.findings import Finding
from harness.domain.rules import Form, Rule, read_rule
from harness.errors import HarnessError
from harness.gates.findings import finding
from harness.ledger.facts import Prior
from harness.ledger.project import Project


def taught(project: Project, experiment: str) -> Iterator[Finding]:
    """One finding for each rule that does not hold; a key that config.yaml lacks holds it."""
    rules = [
        (prior, read_rule(prior.enforces))
        for prior in project.ledger.priors(standing=True)
        if prior.enforces is not None
    ]
    asked = [(prior, rule) for prior, rule in rules if not rule.form.denies]
    config = read_config(project, experiment) if asked else {}
    for prior, rule in asked:
        wrong = _wrong(project, experiment, config, rule)
        if wrong:
            yield _finding(prior, rule, wrong)


def read_config(project: Project, experiment: str) -> Mapping[str, Any]:
    """Dotted key -> value of config.yaml; empty where it cannot be read, which other findings
    say."""
    path = project.layout.experiment(experiment, "config")
    try:
        if linked(project.layout.root, path) is not None:
            return {}
        return dict(_flat(read_yaml(read_text(path), where=path.name).data, ""))
    except HarnessError:
        return {}


def _flat(value: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, one in value.items():
        name = f"{above}{key}"
        if isinstance(one, Mapping):
            yield from _flat(one, f"{name}.")
        else:
            yield name, one


def _wrong(project: Project, experiment: str, config: Mapping[str, Any], rule: Rule) -> str:
    """Empty where the rule holds."""
    if rule.form is Form.FILE:
        there = (project.layout.experiment(experiment) / rule.subject).is_file()
        return "" if there else f"{rule.subject} is not in the folder of {experiment}"
    if rule.subject not in config or rule.holds(config[rule.subject]):
        return ""
    return f"{rule.subject} is {config[rule.subject]!r:.80}, not {rule.form} {rule.bound:g}"


def _finding(prior: Prior, rule: Rule, wrong: str) -> Finding:
    return finding(
        "prior_not_held",
        f"{wrong}, as {prior.id} asks: {prior.lesson}",
        prior=prior.id,
        enforces=rule.words,
    )
