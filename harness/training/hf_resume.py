"""Where `transformers.Trainer` goes on: `train(resume_from_checkpoint=whole_checkpoint(log.checkpoint_dir))`."""

import json
from pathlib import Path

_STATE = "trainer_state.json"
"""What the trainer writes last into a checkpoint."""


def whole_checkpoint(folder: Path) -> str | None:
    """The newest `checkpoint-N` in `folder` that was written to its end; None where there is none.

    transformers' own `get_last_checkpoint` takes the highest number, also of a save that was killed in its middle.
    """
    found = []
    for state in folder.glob(f"checkpoint-*/{_STATE}"):
        number = state.parent.name.removeprefix("checkpoint-")
        try:
            step = json.loads(state.read_text("utf-8"))["global_step"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if number == str(step):
            found.append((step, state.parent))
    return str(max(found)[1]) if found else None
