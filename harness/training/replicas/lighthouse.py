"""The lighthouse: torchft's server that tells the replicas of one another. On the loopback only.

python -m harness.training.replicas.lighthouse PORT MINIMUM JOIN_MS HEARTBEAT_MS
"""

import os
import sys
import time

from torchft.coordination import LighthouseServer

_TICK_MS = 10


def main(words: list[str]) -> None:
    port, minimum, join, heartbeat = (int(word) for word in words)
    server = LighthouseServer(
        bind=f"127.0.0.1:{port}",
        min_replicas=minimum,
        join_timeout_ms=join,
        quorum_tick_ms=_TICK_MS,
        heartbeat_timeout_ms=heartbeat,
    )
    parent = os.getppid()
    while os.getppid() == parent:  # it does not outlive its crew
        time.sleep(0.5)
    server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
