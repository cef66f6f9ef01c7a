"""The launcher of a run whose supervisor an engine placed: on its node a local one; seen from
another machine, what the engine says of the job."""

from abc import abstractmethod
from typing import Any

from harness.process import boot_id
from harness.runs.launchers.launcher import Handle, KilledProcesses
from harness.runs.launchers.local import LocalLauncher


class PlacedLauncher(LocalLauncher):
    """A Launcher. Its handle is that of a local one, with `placed`: {engine, job, host, ...}."""

    def kill(self, handle: Handle, token_sha256: str) -> KilledProcesses:
        if _is_here(handle):
            return super().kill(handle, token_sha256)
        # The run lost its supervisor: nothing of the job may go on.
        self.end_job(_job(handle))
        left = 0 if self.is_gone(_job(handle)) else 1
        return KilledProcesses(count=0, left=left)

    def lost(self, handle: Handle) -> bool:
        return super().lost(handle) if _is_here(handle) else self.is_gone(_job(handle))

    @abstractmethod
    def is_gone(self, job: str) -> bool:
        """Whether the engine runs nothing of the job any more."""

    @abstractmethod
    def end_job(self, job: str) -> None: ...


def _is_here(handle: Handle) -> bool:
    here = boot_id()
    return bool(handle.get("boot", here) == here)


def _job(handle: Handle) -> str:
    placed: dict[str, Any] = handle.get("placed") or {}
    return str(placed.get("job") or "")
