"""States of rounds on disk: whole or not at all, loaded without pickles."""

import os
from pathlib import Path
from typing import Any

import torch

from harness.errors import NotFoundError, UsageError
from harness.training.replicas.standing import kept_rounds


def keep_round(path: Path, state: Any, *, keep: int | None = None) -> Path:
    """Write it; of files like it only the newest `keep` stay. Raises OSError."""
    new = path.with_suffix(".new")
    torch.save(state, new)
    os.replace(new, path)
    if keep is not None:
        for number in sorted(kept_rounds(path.parent))[:-keep]:
            (path.parent / f"round-{number}.pt").unlink(missing_ok=True)
    return path


def kept_round(path: Path) -> Any:
    """Raises NotFoundError, UsageError (round_unreadable)."""
    try:
        return torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise NotFoundError(
            f"There is no {path.name} in {path.parent}.",
            hint="Start the training anew.",
            code="round_missing",
        ) from None
    except (RuntimeError, EOFError, ValueError) as error:
        raise UsageError(
            f"{path} is no kept round: {str(error).splitlines()[0]}",
            hint="Remove it; the training then goes on from the round before.",
            code="round_unreadable",
        ) from error
