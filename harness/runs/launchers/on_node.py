"""What an engine starts on a node: the supervisor of one seed, watched until it ends.

Both sides speak through files of one folder, which they share: `began` (who runs it, how often it
was started), `cancel` (end it), `ended` (its exit code). An engine that starts it anew after its
node was lost, or was needed for others, finds there that it was started before.
"""

import importlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.files import atomic_write
from harness.process import boot_id

BEGAN, CANCEL, ENDED = "began", "cancel", "ended"
LOG, ANSWER = "log", "answer"
_GIVEN = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
)
"""What the node says of its devices; all else is the environment of who asked."""
_JOBS = ("SLURM_JOB_ID", "SUBMITIT_LOCAL_JOB_ID")
_LOOK_S = 0.1
_CANCELLED = 130


class Watch:
    """Pickled by its module's name: the node imports the same package."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.words, self.environment = list(words), dict(environment)
        self.folder = str(folder)
        self.ending = False

    def __call__(self, job: str | None = None) -> int:
        """The supervisor's exit code."""
        folder = Path(self.folder)
        if (folder / ENDED).exists():
            return int((folder / ENDED).read_text("ascii"))
        if (folder / CANCEL).exists():
            return _CANCELLED
        self._begin(folder, job)
        # A supervisor that was started before may still be writing its answer.
        (folder / ANSWER).unlink(missing_ok=True)
        with (
            (folder / ANSWER).open("wb") as answer,
            (folder / LOG).open("ab") as log,
        ):
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                [*self.words, "--below", str(os.getpid())],
                cwd=folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=log,
                start_new_session=True,
            )
        with self._signals():
            code = self._followed(folder)
        if self.ending:  # the engine may start it again
            raise SystemExit(128 + signal.SIGTERM)
        atomic_write(folder / ENDED, str(code), durable=False)
        return code

    def checkpoint(self, *_words: Any) -> Any:
        """Called by submitit when the node is needed for others: the training ends as it does at a
        TERM, and the same supervisor is submitted again. None: it was cancelled."""
        self._process.terminate()
        self._process.wait()
        if (Path(self.folder) / CANCEL).exists():
            return None
        again = Watch(self.words, self.environment, Path(self.folder))
        return importlib.import_module("submitit.helpers").DelayedSubmission(again)

    def _begin(self, folder: Path, job: str | None) -> None:
        known = next((os.environ[name] for name in _JOBS if name in os.environ), "")
        before = began(folder)
        about = {
            "job": job or known,
            "host": socket.gethostname(),
            "boot": boot_id(),
            "starts": 1 + (before or {}).get("starts", 0),
        }
        atomic_write(folder / BEGAN, json.dumps(about), durable=False)

    def _environment(self) -> dict[str, str]:
        here = {name: os.environ[name] for name in _GIVEN if name in os.environ}
        return {**self.environment, **here}

    def _followed(self, folder: Path) -> int:
        told = False
        while (code := self._process.poll()) is None:
            if not told and (folder / CANCEL).exists():
                told = True
                self._process.terminate()
            time.sleep(_LOOK_S)
        return code

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """A TERM of the engine is handed on: Slurm sends it before it takes a node away."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._told)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _told(self, _number: int, _frame: object) -> None:
        self.ending = True
        self._process.terminate()


def began(folder: Path) -> dict[str, Any] | None:
    """{job, host, boot, starts}, or None before it began."""
    try:
        about = json.loads((folder / BEGAN).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return about if isinstance(about, dict) else None
