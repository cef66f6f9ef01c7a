"""The judge outside the sandbox of `harness claude`, for hooks that run inside it.

There receipts are the judge's to append: the folder is read-only inside, so no session rewrites
what it left, nor what others did.
"""

from __future__ import annotations

import os

from harness.guard.policy.json_text import dumps

try:  # `socket` itself imports `enum` and `selectors`, which take longer than the call
    import _socket as socket  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    import socket  # type: ignore[no-redef, unused-ignore]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET, CLIENT, SANDBOX = "HARNESS_JUDGE", "HARNESS_CLIENT", "HARNESS_JUDGE_SANDBOX"
BESIDE = "HARNESS_JUDGE_BESIDE"
"""Set by `harness claude` for all that runs inside: the judge's socket, what `harness` is there,
the kind of sandbox, and who else was at work as the session began."""
_DONE = b"x\0\0\0\x010"
"""The frame that says: exit code 0. See harness/judge/client.py."""


def is_inside() -> bool:
    """Whether this hook runs in the sandbox of `harness claude`."""
    return bool(os.environ.get(SOCKET))


def asked_there(snapshot: dict[str, Any]) -> dict[str, list[list[str]]]:
    """What differs in the policy inside: a person's verb that the judge puts to the person there is
    theirs to refuse."""
    asked = snapshot.get("asked_verbs")
    verbs = snapshot.get("human_verbs")
    if not is_inside() or not isinstance(asked, list) or not isinstance(verbs, list):
        return {}
    return {"human_verbs": [verb for verb in verbs if verb not in asked]}


def hand_over(line: dict[str, Any]) -> None:
    """Let the judge append a receipt of this project. Raises OSError when it does not."""
    asked = dumps({"receipt": line}).encode("ascii")
    place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        place.connect(os.environ[SOCKET])
        data = b"r" + len(asked).to_bytes(4, "big") + asked
        while data:
            data = data[place.send(data) :]
        answer = b""
        while block := place.recv(64):
            answer += block
    finally:
        place.close()
    if answer != _DONE:
        raise OSError(f"the judge of this session did not take a receipt ({answer!r})")
