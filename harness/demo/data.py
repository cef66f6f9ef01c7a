"""The demo's data: freshly drawn MNIST-1D. Only this module needs the `train` extra."""

import importlib.util
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness.domain.commands import for_helpers
from harness.errors import TRAIN, MissingExtraError, RunError
from harness.process import module_command

NEEDED = ("torch", "mnist1d")
TRAIN_SEED, VALIDATION_SEED = 42, 43
_SEED_LIMIT = 2**32


def require_train_extra() -> None:
    """Raises MissingExtraError if torch or mnist1d is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"The demo trains real networks and needs {' and '.join(missing)}, which the base"
            " install does not contain.",
            hint=f"Install it: {TRAIN} (in a clone: `make setup`), then `harness demo` again.",
        )


def write_tables(folder: Path, *, held_out_seed: int, environment: Mapping[str, str]) -> None:
    """Write train.npz (4,000 rows), validation.npz and held_out.npz (1,000 each) into `folder`.

    Training and validation rows are the same in every demo. `held_out_seed` is reduced to 32 bits
    and never equals their seeds. Raises MissingExtraError, or RunError when the generator failed.
    """
    require_train_extra()
    folder.mkdir(parents=True, exist_ok=True)
    seed = held_out_seed % _SEED_LIMIT
    if seed in (TRAIN_SEED, VALIDATION_SEED):
        seed += 2
    words = [str(folder.resolve()), str(TRAIN_SEED), str(VALIDATION_SEED), str(seed)]
    done = subprocess.run(
        module_command("harness.demo.generate", *words),
        env={**for_helpers(environment), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no error output"]
        raise RunError(
            f"The MNIST-1D generator failed with exit code {done.returncode}: {last[0]}.",
            hint=(
                "Check the disk and the `mnist1d` package, then run the demo again in an empty"
                " folder."
            ),
        )
