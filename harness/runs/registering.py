"""A run registered before anything of it is launched, with the link token that ties its rows to
it."""

import hashlib
import secrets
from typing import Any

from harness.domain.records import Run
from harness.ledger.project import Project


def register(project: Project, **fields: Any) -> tuple[Run, str]:
    """The run and its link token. The ledger gets the token's SHA-256 only: who reads the ledger
    cannot write rows of the run. `fields` are those of `register_run` without the token. Raises as
    that does."""
    token = secrets.token_hex(16)
    return project.ledger.register_run(
        **fields, token=hashlib.sha256(token.encode()).hexdigest()
    ), token
