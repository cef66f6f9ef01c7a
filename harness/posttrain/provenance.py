"""Do training data, judge and teacher share a model family with what is trained? Computed from the rows' provenance."""

from harness.errors import HarnessError
from harness.posttrain.fingerprints import rows_of
from harness.posttrain.problems import Problem, problem
from harness.posttrain.registry import known_models
from harness.posttrain.spec import Spec
from harness.project.context import Project

_MAKERS = ("teacher", "judge", "generator")


def family_warnings(project: Project, spec: Spec) -> list[Problem]:
    """One a family that more than one of {the trained model, each maker that a row's `provenance` names} belongs to. An
    id of the registry has its family there; of another id the first part of its name is taken."""
    try:
        _, rows = rows_of(project.layout.root / spec.dataset["path"])
    except (HarnessError, ValueError):
        return []
    families = {identifier: model.family for identifier, model in known_models(project.layout).items()}
    found: dict[str, set[str]] = {str(spec.model["family"]): {"trained model"}}
    for row in rows:
        provenance = row.get("provenance")
        makers = provenance if isinstance(provenance, dict) else {}
        for maker in _MAKERS:
            name = makers.get(maker)
            if isinstance(name, str) and name.strip():
                found.setdefault(families.get(name) or _family(name), set()).add(maker)
    return [
        problem("provenance", "makers of different families", family, f"shared by {', '.join(sorted(roles))}")
        for family, roles in sorted(found.items())
        if len(roles) > 1
    ]


def _family(name: str) -> str:
    return name.rsplit("/", 1)[-1].split("-", 1)[0].lower()
