"""The engine of this machine: a process for each seed, which leases its GPUs itself."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.commands import ledger_access
from harness.domain.launch_options import LOCAL
from harness.process import end_group, module_command, start
from harness.runs.environment import devices
from harness.runs.launchers.on_node import Watch
from harness.runs.leases import require_cards

MODULE = "harness.runs.launchers.cards"


class CardsEngine:
    """An Engine. Other experiments lease from the same GPUs, so a seed may wait for one."""

    name = LOCAL

    def __init__(
        self, options: Mapping[str, Any], *, inherited: Mapping[str, str], state: Path
    ) -> None:
        self._access = ledger_access(inherited)
        self.gpus = int(options["gpus"])
        names = devices(inherited)
        require_cards(self.gpus, names)
        self.most: int | None = len(names) // self.gpus

    def submit(self, watch: Watch, *, title: str, minutes: float) -> "_Process":
        words = module_command(MODULE, watch.folder, *watch.words)
        return _Process(
            start(
                words,
                cwd=Path(watch.folder),
                environment={**watch.environment, **self._access},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def start(self, environment: Mapping[str, str]) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class _Process:
    process: subprocess.Popen[bytes]
    job: str = ""

    def lost(self) -> bool:
        return self.process.poll() is not None

    def said(self) -> str:
        return f"exit code {self.process.poll()}"

    def cancel(self) -> None:
        end_group(self.process, grace=5.0)


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    sys.exit(Watch(rest, os.environ, Path(folder))() != 0)
