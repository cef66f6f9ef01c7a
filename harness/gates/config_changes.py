"""What config.yaml says now and did not say when a run was registered: shown, never judged.

Training had what it said then, so a change of it changes no result; but it may tell another story.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from harness.artifacts.content import decode, linked, read_bytes
from harness.artifacts.front_matter import read_yaml
from harness.artifacts.objects import load_object
from harness.domain.findings import Finding
from harness.domain.records import Run
from harness.errors import HarnessError
from harness.files import sha256_bytes
from harness.gates.findings import finding
from harness.ledger.project import Project
from harness.plans.changes import bounded, field_changes

_MOST = 8


def config_changes(project: Project, experiment: str, counted: Sequence[Run]) -> Iterator[Finding]:
    """One finding for each text that the runs of `counted` had and that says another thing."""
    path = project.layout.experiment(experiment, "config")
    if linked(project.layout.root, path) is not None:
        return
    try:
        data = read_bytes(path)
        now = _read(data)
    except HarnessError:
        return  # the file's own finding says it
    runs: dict[str, list[str]] = {}
    for run in counted:
        if run.config is not None and run.config != sha256_bytes(data):
            runs.setdefault(run.config, []).append(run.id)
    for digest, names in runs.items():
        try:
            before = _read(load_object(project.layout.objects, digest))
            changes = list(field_changes(before, now))
            words = "; ".join(bounded(changes, _MOST, "changes"))
        except HarnessError:
            changes, words = [digest], "what it said is not on this machine"
        if changes:
            yield finding(
                "config_changed",
                f"{project.layout.relative(path)} changed since the registration of"
                f" {', '.join(names)}: {words}.",
                runs=names,
                expected=digest,
            )


def _read(data: bytes) -> dict[str, Any]:
    return read_yaml(decode(data, where="config.yaml"), where="config.yaml").data
