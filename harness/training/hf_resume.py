"""Where `transformers.Trainer` goes on:
`train(resume_from_checkpoint=whole_checkpoint(log.checkpoint_dir))`."""

import json
from pathlib import Path
from typing import Any

_PARTS = {
    "optimizer": ("optimizer.pt", "optimizer.bin", "optimizer_0", "global_step*", "*/optimizer.pt"),
    "scheduler": ("scheduler.pt", "global_step*"),
    "random numbers": ("rng_state*.pth",),
}
"""What the trainer puts back where it is there, without a word where it is not."""
_STATE = "trainer_state.json"
"""What the trainer writes last into a checkpoint."""


def not_restored(args: Any, step: int) -> list[str]:
    """What a trainer that went on at `step` with these TrainingArguments does not have as it was,
    by name."""
    folder = Path(args.output_dir) / f"checkpoint-{step}"
    if not folder.is_dir():
        return [f"what the checkpoint of step {step} holds (it is not in output_dir)"]
    missing = [
        name for name, files in _PARTS.items() if not any(any(folder.glob(file)) for file in files)
    ]
    if args.ignore_data_skip:
        missing.append("data order (ignore_data_skip)")
    if args.dataloader_num_workers > 0:
        missing.append("random numbers inside the loader's workers")
    if args.device.type == "cuda" and not args.full_determinism:
        missing.append("order of sums on the GPU (full_determinism is off)")
    return missing


def epochs_of(checkpoint: Path) -> float | None:
    """How many epochs `checkpoint` has seen, by the trainer's own state in it; None when that
    cannot be read."""
    try:
        epochs = json.loads((checkpoint / _STATE).read_text("utf-8"))["epoch"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return epochs if isinstance(epochs, int | float) else None


def whole_checkpoint(folder: Path) -> str | None:
    """The newest `checkpoint-N` in `folder` that was written to its end; None where there is none.

    transformers' own `get_last_checkpoint` takes the highest number, also of a save that was killed
    in its middle.
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
