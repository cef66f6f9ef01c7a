"""Do training data, judge and teacher share a model family with what is trained? Computed from the
rows' provenance."""

import re

from harness.errors import HarnessError
from harness.ledger.project import Project
from harness.posttrain.fingerprints import rows_of
from harness.posttrain.problems import Problem, problem
from harness.posttrain.registry import known_models
from harness.posttrain.spec import Spec

_MAKERS = ("teacher", "judge", "generator")


def family_warnings(project: Project, spec: Spec) -> list[Problem]:
    """One a family that more than one of {the trained model, each maker that a row's `provenance`
    names} belongs to. An id of the registry has its family there; of another id the first part of
    its name is taken. Generations of one maker's models are relatives: llama, llama3 and Llama-3.2
    count as one."""
    try:
        _, rows = rows_of(project.layout.root / spec.dataset["path"])
    except HarnessError:
        return []
    families = {
        identifier: _stem(model.family)
        for identifier, model in known_models(project.layout).items()
    }
    found: dict[str, set[str]] = {_stem(str(spec.model["family"])): {"trained model"}}
    for row in rows:
        provenance = row.get("provenance")
        makers = provenance if isinstance(provenance, dict) else {}
        for maker in _MAKERS:
            name = makers.get(maker)
            if isinstance(name, str) and name.strip():
                found.setdefault(families.get(name) or _family(name), set()).add(maker)
    return [
        problem(
            "provenance",
            "makers of different families",
            family,
            f"shared by {', '.join(sorted(roles))}",
        )
        for family, roles in sorted(found.items())
        if len(roles) > 1
    ]


def _family(name: str) -> str:
    return _stem(name.rsplit("/", 1)[-1])


def _stem(name: str) -> str:
    """The letters that a name begins with; of one that begins with none its first part."""
    found = re.match(r"[a-z]+", name.lower())
    return found.group() if found else name.split("-", 1)[0]
