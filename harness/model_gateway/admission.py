"""Who may ask the gateway: the sessions that live, each known by a secret of its own."""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.files import sha256_bytes
from harness.model_gateway.service import Proof
from harness.model_gateway.wire import LOGIN, SESSION, Asker, error_body

ASKER = "harness.asker"
"""In the scope of an admitted request."""
_KEY, _HOST, _ORIGIN = b"x-api-key", b"host", b"origin"
_SESSION, _BEARER = SESSION.encode(), b"Bearer "


class Admission:
    """The living sessions of one gateway. Only hashes of their secrets are kept."""

    def __init__(self) -> None:
        self._askers: dict[str, Asker] = {}

    @contextlib.contextmanager
    def admitted(self, asker: Asker) -> Iterator[str]:
        """A new secret, which is the session's API key until the block ends."""
        secret = secrets.token_urlsafe(32)
        known = sha256_bytes(secret.encode())
        self._askers[known] = asker
        try:
            yield secret
        finally:
            del self._askers[known]

    def asker_of(self, secret: bytes) -> Asker | None:
        # Looked up by its hash: how long that takes tells nothing about a secret that is close.
        return self._askers.get(sha256_bytes(secret))


@dataclass(frozen=True)
class Doorkeeper:
    """In front of the gateway's application: a request that it refuses is read no further.

    A page in a browser may reach the port by a name of its own that leads to 127.0.0.1 (DNS
    rebinding): Host and Origin then name another server than this.
    """

    application: ASGIApp
    admission: Admission
    proof: Proof

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        refusal = _foreign(scope)
        keys = _shown(scope, self.proof)
        asker = self.admission.asker_of(keys[0]) if len(keys) == 1 else None
        if refusal is None and asker is None:
            message = "No living session of this model gateway has this key."
            refusal = _refusal(401, "authentication_error", message)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self.application({**scope, ASKER: asker}, receive, send)


def _shown(scope: Scope, proof: Proof) -> list[bytes]:
    """The secrets in the one header by which sessions of this service are known."""
    if proof is Proof.HEADER:
        return _values(scope, _SESSION)
    if proof is Proof.KEY:
        return _values(scope, _KEY)
    logins = _values(scope, LOGIN.encode())
    return [value.removeprefix(_BEARER) for value in logins]


def _foreign(scope: Scope) -> JSONResponse | None:
    """The answer to a request that was meant for another server, or comes from its page."""
    port = scope["server"][1]
    ours = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
    hosts = _values(scope, _HOST)
    if len(hosts) != 1 or hosts[0].lower() not in ours:
        return _refusal(
            403, "permission_error", f"The model gateway is 127.0.0.1:{port}; Host names another."
        )
    origins = _values(scope, _ORIGIN)
    if any(origin.lower().removeprefix(b"http://") not in ours for origin in origins):
        return _refusal(
            403, "permission_error", "The model gateway takes no request of a foreign Origin."
        )
    return None


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _refusal(status: int, kind: str, message: str) -> JSONResponse:
    return JSONResponse(error_body(kind, message), status_code=status)


def asker_in(scope: Scope) -> Asker:
    """Whose request it is, once the doorkeeper has let it in."""
    asker: Asker = scope[ASKER]
    return asker
