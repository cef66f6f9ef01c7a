"""The torchft manager of one replica: it says what it waits for, and heals without pickles."""

import os
import time
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed._serialization import _streaming_load
from torchft import Manager, ProcessGroupGloo, ProcessGroupNCCL
from torchft.checkpointing.http_transport import HTTPTransport

from harness.domain.distributed import DiLoCoConfig
from harness.errors import RunError
from harness.training.replicas.standing import State

Tell = Callable[[State], None]
HOST = "127.0.0.1"
_TRY_S = 10.0
"""A wait for a quorum is cut into tries of so long: between two it is seen whether the crew is
still there, and whether the wait is over."""
_PAUSE_S = 0.2


class _Transport(HTTPTransport[dict[str, Any]]):  # type: ignore[misc] # the library is not followed
    """torchft loads what it fetches with pickle, which runs code of whoever answers. This one takes
    tensors and plain values only. Its port is open on all interfaces, as torchft has it."""

    def __init__(self, timeout: timedelta, tell: Tell) -> None:
        super().__init__(timeout=timeout, num_chunks=0)
        self._tell = tell

    @classmethod
    def _load_from_address(cls, address: str, timeout: timedelta) -> object:
        seconds = timeout.total_seconds()
        with urllib.request.urlopen(address, timeout=seconds) as stream:
            return _streaming_load(stream, weights_only=True)

    def address(self) -> str:
        # Not the machine's name, which need not lead to the loopback.
        return f"http://{HOST}:{self._server.socket.getsockname()[1]}/checkpoint/"

    def recv_checkpoint(
        self, src_rank: int, metadata: str, step: int, timeout: timedelta
    ) -> dict[str, Any]:
        self._tell(State.HEALING)
        state: dict[str, Any] = super().recv_checkpoint(src_rank, metadata, step, timeout)
        return state


class ReplicaManager(Manager):  # type: ignore[misc]
    """Waits for a quorum as long as the configuration says, also while the lighthouse is away."""

    def __init__(
        self,
        config: DiLoCoConfig,
        *,
        replica: int,
        lighthouse: str,
        on_cards: bool,
        tell: Tell,
        load: Callable[[Any], None],
        save: Callable[[], Any],
    ) -> None:
        timeout = timedelta(seconds=config.timeout_s)
        group = ProcessGroupNCCL if on_cards else ProcessGroupGloo
        self._tell, self._waiting_s = tell, config.waiting_s
        self._parent = os.getppid()
        # One a replica: torchft keeps the addresses of a replica's own processes in it.
        self._own_store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
        super().__init__(
            pg=group(timeout=timeout),
            load_state_dict=load,
            state_dict=save,
            min_replica_size=config.minimum_replicas,
            use_async_quorum=False,  # DiLoCo's own condition
            timeout=timeout,
            quorum_timeout=timedelta(seconds=min(_TRY_S, config.waiting_s)),
            connect_timeout=timeout,
            rank=0,
            world_size=1,
            store_addr=HOST,
            store_port=self._own_store.port,
            lighthouse_addr=lighthouse,
            replica_id=f"replica_{replica}",
            hostname=HOST,
            checkpoint_transport=_Transport(timeout, tell),
            init_sync=False,  # the weights are the same, which every round checks
            quorum_retries=3,
        )

    def start_quorum(self, *args: Any, **more: Any) -> None:
        """Raises RunError (quorum_missing) after the configuration's time."""
        self._tell(State.WAITING)
        began = time.monotonic()
        while True:
            try:
                super().start_quorum(*args, **more)
                break
            except (TimeoutError, RuntimeError) as error:
                self._go_on(time.monotonic() - began, error)
        self._tell(State.TRAINING)

    def wait_for(self, path: Path) -> None:
        """Until the file is there. Raises RunError as `start_quorum`."""
        began = time.monotonic()
        while not path.exists():
            self._go_on(time.monotonic() - began, TimeoutError("not all replicas are there"))

    def _go_on(self, waited: float, error: Exception) -> None:
        if os.getppid() != self._parent:
            raise RunError(
                "What started this replica is gone.",
                hint="Start the training again; it goes on where it was.",
                code="crew_gone",
            ) from error
        if waited > self._waiting_s:
            raise RunError(
                f"No quorum in {waited:.0f} s: {error}",
                hint="Look at the other replicas and the lighthouse; distributed.minimum_replicas"
                " and distributed.waiting_s say what is waited for.",
                code="quorum_missing",
            ) from error
        # torchft keeps a failed try, and would raise it again.
        self._quorum_future = None
        time.sleep(_PAUSE_S)
