"""Ray: a task for the supervisor of each seed, on a cluster or on one that is started here."""

import contextlib
import importlib
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.launch_options import RAY
from harness.errors import MissingExtraError, RunError
from harness.files import atomic_write, make_folder
from harness.process import OURS, identity, is_same_alive
from harness.runs.launchers.on_node import Watch
from harness.runs.launchers.placed import PlacedLauncher

_RESTARTS = 3
_ANSWERS_S = 10.0
_CLUSTER = "ray-cluster.json"
_LOOPBACK = "127.0.0.1"
_TOKEN = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""A cluster asks for its token; where none of these says it, it lies below HOME."""


class RayEngine:
    """An Engine. Without `address` in `[launchers.ray]`: the cluster of the loop that this process
    belongs to, else one of its own, which speaks on the loopback and ends with it."""

    name = RAY
    most: int | None = None
    gpus = 0

    def __init__(
        self, options: Mapping[str, Any], *, inherited: Mapping[str, str], state: Path
    ) -> None:
        self._options, self._state = options, state
        self._ray: Any = None
        self._aside = contextlib.ExitStack()

    def submit(self, watch: Watch, *, title: str, minutes: float) -> "_Task":
        ray = self._connected(watch.environment)
        task = ray.remote(_supervise).options(
            name=title,
            num_cpus=self._options.get("cpus", 1),
            num_gpus=self._options.get("gpus", 0),
            max_retries=int(self._options.get("restarts", _RESTARTS)),
        )
        return _Task(ray, task.remote(watch), Path(watch.folder))

    def start(self, environment: Mapping[str, str]) -> None:
        """A cluster that others may use while this process lives, or that of `address`."""
        ray = self._connected(environment)
        about = {"address": ray.get_runtime_context().gcs_address, "owner": identity()}
        atomic_write(self._state / _CLUSTER, json.dumps(about), mode=0o600)

    def close(self) -> None:
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = None
            self._aside.close()

    def _connected(self, environment: Mapping[str, str]) -> Any:
        if self._ray is None:
            address = self._options.get("address") or _shared(self._state)
            own = {
                "include_dashboard": False,
                "_node_ip_address": _LOOPBACK,
                "num_cpus": os.cpu_count(),
            }
            alone = not address or address.startswith((_LOOPBACK, "localhost"))
            folder = self._state / "placements"
            make_folder(folder)
            try:
                with _only(environment, alone=alone), contextlib.chdir(folder):
                    ray = _ray()
                    _require_listener(address)
                    ray.init(
                        address=address or "local",
                        log_to_driver=False,
                        logging_level="ERROR",
                        configure_logging=True,
                        **({} if address else own),
                    )
            except Exception as error:
                # A node that does not start in time is a plain Exception of Ray's.
                if type(error) is Exception or isinstance(error, _REFUSALS):
                    raise _refused(address, error) from error
                raise
            self._ray = ray
            # Of a worker that died Ray prints where a program reads our answer.
            self._aside.enter_context(contextlib.redirect_stdout(sys.stderr))
        return self._ray


def _require_listener(address: str | None) -> None:
    """Raises OSError where nobody listens: Ray asks for minutes, then ends its own process."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_S).close()


_REFUSALS = (OSError, RuntimeError, ValueError)


def _refused(address: str | None, error: Exception) -> RunError:
    if not address:
        return RunError(
            f"Ray did not start a cluster here: {error}.",
            hint="Try again when the machine has less to do; or start one with `ray start --head`"
            " and name its `address` in [launchers.ray] of config.toml.",
            code="ray_refused",
        )
    return RunError(
        f"Ray cannot be reached at {address}: {error}.",
        hint="Look at `address` of [launchers.ray] in config.toml, and `ray status`.",
        code="ray_refused",
    )


@dataclass(frozen=True)
class _Task:
    ray: Any
    reference: Any
    folder: Path

    @property
    def job(self) -> str:
        return str(self.reference.task_id().hex())

    def lost(self) -> bool:
        done, _ = self.ray.wait([self.reference], timeout=0)
        return bool(done)

    def said(self) -> str:
        try:
            self.ray.get(self.reference, timeout=0)
        except self.ray.exceptions.RayError as error:
            return str(error)
        return ""

    def cancel(self) -> None:
        with contextlib.suppress(self.ray.exceptions.RayError):
            self.ray.cancel(self.reference)


class RayLauncher(PlacedLauncher):
    """A task ends with its worker, and its supervisor with it."""

    def is_gone(self, job: str) -> bool:
        return False  # only who submitted the task can ask for it; the seed's lock says more

    def end_job(self, job: str) -> None:
        pass


def _supervise(watch: Watch) -> int:
    return watch(_ray().get_runtime_context().get_task_id() or "")


def _shared(state: Path) -> str | None:
    """The cluster that a living process of ours holds, for the ones that it started."""
    try:
        about = json.loads((state / _CLUSTER).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return str(about["address"]) if is_same_alive(about["owner"]) else None


@contextlib.contextmanager
def _only(environment: Mapping[str, str], *, alone: bool) -> Iterator[None]:
    """The workers of a cluster that is started here get this environment, and no key of ours."""
    before = dict(os.environ)
    kept = {name: before[name] for name in ("PATH", *OURS, *_TOKEN) if name in before}
    ours = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONSAFEPATH": "1"}
    if alone:  # Ray's own word for a cluster of this machine: all of it listens on the loopback
        ours["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    values = {**environment, **ours, **kept}
    if _has_token(values):  # a client that is not told so sends none
        values.setdefault(_TOKEN[0], "token")
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _has_token(values: Mapping[str, str]) -> bool:
    _, token, path = (values.get(name) for name in _TOKEN)
    below_home = Path(values.get("HOME", "")) / ".ray/auth_token"
    return bool(token) or Path(path or below_home).is_file()


def _ray() -> Any:
    try:
        return importlib.import_module(RAY)
    except ImportError as error:
        raise MissingExtraError(
            "The launcher ray needs Ray.",
            hint="`pip install 'experiment-harness[ray]'`, from where the harness came.",
        ) from error
