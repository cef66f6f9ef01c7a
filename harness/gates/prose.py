"""What the text of result.md claims that does not hold."""

import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.artifacts.experiment_files import ResultFile
from harness.artifacts.looked import is_looking, remembered, seen
from harness.domain.findings import Finding
from harness.domain.late import later
from harness.files import canonical_json, sha256_bytes
from harness.ledger.project import Project

if TYPE_CHECKING:
    from harness.gates import claim_facts
else:  # the words of claims take as long to load as all the rest of a gate
    claim_facts = later("harness.gates.claim_facts")

_HERE = Path(__file__).parent
RULES = (_HERE, _HERE.with_name("claims"))
"""Folders of the code that finds; what an older one found is not remembered."""
_EXPERIMENT = re.compile(r"\bexp-\d+")


def prose(
    project: Project,
    experiment: str,
    result: ResultFile | None,
) -> tuple[Finding, ...]:
    """To look, what was found is remembered while all that it rests on stays."""
    if result is None:
        return ()
    claims = [claim.text for claim in result.claims.values()]

    def found() -> tuple[Finding, ...]:
        return claim_facts.prose_findings(project, experiment, result.body, claims)

    if not is_looking():
        return found()
    named = {experiment, *_EXPERIMENT.findall(result.body)}
    files, known = _told_by(project, named)
    kept = remembered(
        f"prose {experiment}",
        files,
        lambda: [one.plain() for one in found()],
        also=[rules(), result.body, claims, known],
    )
    return tuple(map(Finding.from_plain, kept))


@functools.cache
def rules() -> str:
    """One digest of sizes, times and inodes of the code that finds; no file is read."""
    found = (path for folder in RULES for path in folder.glob("*.py"))
    marks = [[path.name, seen(os.lstat(path))] for path in sorted(found)]
    return sha256_bytes(canonical_json(marks))


def _told_by(project: Project, named: Iterable[str]) -> tuple[list[Path], list[Any]]:
    """The files and the records that tell whether a text about these experiments is true."""
    ledger, layout = project.ledger, project.layout
    every = {one.id: one for one in ledger.experiments()}
    wanted = {name for name in named if name in every}
    wanted |= {parent for name in wanted if (parent := every[name].parent) is not None}
    runs = [run for name in sorted(wanted) for run in ledger.runs(name)]
    files = [layout.run(run.experiment, run.id, "metrics") for run in runs]
    files += sorted(layout.root.glob("docs/evidence/*"))
    approved = ledger.plan()
    known = [
        len(every),
        approved and [approved.name, approved.version],
        [[name, every[name].status, ledger.summary(name)] for name in sorted(wanted)],
        [[run.experiment, run.id, run.status, run.seconds] for run in runs],
        [len(ledger.alarms(name)) for name in sorted(wanted)],
        sorted(str(path) for path in layout.root.glob("bench/**/*.py")),
    ]
    return files, known
