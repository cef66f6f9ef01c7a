"""What the programs in bench/ share: writing what they measured to docs/evidence/NAME.json."""

import argparse
import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "evidence"


def wants_record() -> bool:
    """Whether the program was called with `--record`."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--record", action="store_true")
    return bool(parser.parse_known_args()[0].record)


def record(
    name: str, command: str, figures: Mapping[str, float | str], *, seed: int | None = None
) -> Path:
    """Write the figures with the command that gives them again, the day, the version and the
    machine."""
    document = {
        "name": name,
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "version": version("experiment-harness"),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "seed": seed,
        "figures": dict(figures),
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    print(f"recorded {path.name}")
    return path
