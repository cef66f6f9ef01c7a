"""The one loopback Messages endpoint of a driver's sessions; an Answerer behind it answers."""

import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.domain.plain_text import one_line
from harness.errors import GatewayError
from harness.model_gateway.admission import Admission, Doorkeeper, asker_in
from harness.model_gateway.dialects import asked, counts_tokens, is_plain
from harness.model_gateway.service import Dialect, Service
from harness.model_gateway.weather import (
    LONGEST_WORDS,
    MALFORMED,
    Fault,
    Trouble,
    Weather,
)
from harness.model_gateway.wire import (
    LOGIN,
    Asker,
    Login,
    RecordedRequest,
    SessionKey,
    error_body,
    pairs,
    read_request,
)

START_S = 20.0
STOP_S = 10.0
RETRIES = 10
"""How often the CLI repeats a request after an error of a real service."""
MOST_BYTES = 32 << 20
"""Of one request, as the service itself has it."""
LONGEST_REASON = 4000
"""Characters kept of why a request was refused: a request may put words of its own into it."""
BUDGET_SPENT = "budget_spent"
"""The code of a Refusal for the budget."""
_FAULTS = {MALFORMED: Fault.MALFORMED, Fault.KEY: Fault.KEY, Fault.PASSING: Fault.PASSING}
"""The code of a Refusal -> what it counts as."""
GONE = 410
"""Of what no further request changes. After a 400 or 422 the CLI asks up to five times more, each
time without another of its beta features; of 401 and 403 it says "Failed to authenticate"."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer on its way: a whole body, or chunks as they come."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None
    """Called when the answer has ended, even if the client left before the first chunk; a second
    call does nothing."""


class Refusal(GatewayError):
    """This request gets no answer; later ones may. By its code it counts as a Fault, by default as
    one of the session. The CLI retries none but `service_unavailable`."""

    code = "request_refused"


class Answerer(Protocol):
    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        """Answer one request. Raises Refusal for this one; any other GatewayError ends the gateway
        for good."""
        ...

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply: ...

    async def close(self) -> None:
        """Called once, in the gateway's event loop, when it stops."""
        ...


class Gateway:
    """Serves one Answerer on 127.0.0.1 from its own thread, to many sessions at once.

    It takes requests of the sessions that are `admitted`; others are refused (401) and change
    nothing. Of a request nothing is kept once it is answered. `failure` is why the gateway has
    ended: from then on it refuses every request with that reason (410). `refused` is the newest
    refusal of a single request (410; 503 where asking again may help), `over_budget` the newest
    refusal for the budget (402). `retries` is how often the CLI should repeat a request after an
    error. `foreseen`: the only sessions that it can answer (role, experiment, attempt); None: any.
    `weather`: what became of each session's newest request.
    """

    def __init__(
        self,
        answerer: Answerer,
        *,
        retries: int = RETRIES,
        foreseen: frozenset[SessionKey] | None = None,
        service: Service | None = None,
        weather: Weather | None = None,
    ) -> None:
        self.answerer, self.retries, self.foreseen = answerer, retries, foreseen
        self.weather = weather or Weather()
        self.service = service or Service()
        self._admission = Admission()
        self.failure: str | None = None
        self.refused: str | None = None
        self.over_budget: str | None = None
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Gateway":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        if self._socket is None:
            raise GatewayError("The model gateway is closed.", hint="Call start() first.")
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """What the CLI gets as ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self.port}"

    def admitted(self, asker: Asker) -> AbstractContextManager[str]:
        """A secret that is the session's API key here until the block ends. Nobody else gets it."""
        return self._admission.admitted(asker)

    def start(self) -> str:
        """Open the gateway on a free port and return its URL once it answers. Raises GatewayError
        if it does not start."""
        if self._thread is not None:
            return self.url
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        config = uvicorn.Config(
            self._application(),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="model-gateway", daemon=True
        )
        self._thread.start()
        waiting = threading.Event()
        for _ in range(int(START_S / 0.01)):
            if self._server.started:
                return self.url
            if not self._thread.is_alive():
                break
            waiting.wait(0.01)
        self.stop()
        raise GatewayError(
            "The model gateway did not start.",
            hint="Try again; the machine may be busy.",
        )

    def stop(self) -> None:
        """Close the gateway; open streams are cut after two seconds. A second call does nothing."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.should_exit = True
            thread.join(STOP_S)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _application(self) -> ASGIApp:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            await self.answerer.close()

        routed = Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/{rest:path}", self._other, methods=["POST"]),
            ],
            exception_handlers={Exception: self._broken, 404: _not_found, 405: _not_found},
            lifespan=lifespan,
        )
        return Doorkeeper(routed, self._admission, self.service.proof)

    async def _messages(self, http: Request) -> Response:
        raw = await _body(http)
        if raw is None:
            return _too_large()
        request = self._request(http, raw)
        if request is None:
            return _no_request()
        if self.failure is not None:
            return self._ended()
        try:
            return _response(await self.answerer.answer(request, raw))
        except Refusal as refusal:
            self.refused = str(refusal)[:LONGEST_REASON]
            if refusal.code == BUDGET_SPENT:
                self.over_budget = self.refused
            fault = _FAULTS.get(refusal.code, Fault.REQUEST)
            trouble = Trouble(fault=fault, words=one_line(self.refused, LONGEST_WORDS))
            self.weather.failed(request.asker.session, trouble)
            return _refused(refusal)
        except GatewayError as error:
            return self._ended(str(error))

    async def _count_tokens(self, http: Request) -> Response:
        raw = await _body(http)
        if raw is None:
            return _too_large()
        request = self._request(http, raw)
        if request is None:
            return _no_request()
        try:
            return _response(await self.answerer.count_tokens(request, raw))
        except GatewayError as error:
            return _refused(error)

    async def _other(self, http: Request) -> Response:
        """The paths of another dialect, where the service has one."""
        dialect, path = self.service.dialect, _path(http)
        if dialect is not Dialect.MESSAGES and not is_plain(path):
            return _no_path()
        if counts_tokens(dialect, path):
            return await self._count_tokens(http)
        if asked(dialect, path, {}) is None:
            return await _not_found(http, LookupError())
        return await self._messages(http)

    def _request(self, http: Request, raw: bytes) -> RecordedRequest | None:
        body, path = _read(raw), _path(http)
        if body is None:
            return None
        headers = pairs(http.headers.raw)
        login = None
        if self.service.passes_login and LOGIN in headers:
            login = Login(headers[LOGIN])
        return read_request(
            asker_in(http.scope),
            headers,
            asked(self.service.dialect, path, body) or body,
            len(raw),
            http.scope["query_string"].decode("latin-1"),
            path=path,
            login=login,
        )

    async def _broken(self, _: Request, error: Exception) -> Response:
        ours = isinstance(error, GatewayError)
        return self._ended(
            str(error) if ours else f"The model gateway failed: {type(error).__name__}: {error}."
        )

    def _ended(self, reason: str | None = None) -> Response:
        if self.failure is None:
            self.failure = reason and reason[:LONGEST_REASON]
        return _error(GONE, "api_error", f"The model gateway has ended: {self.failure}")


async def _body(http: Request) -> bytes | None:
    """None when it is larger than the service would take."""
    parts = bytearray()
    async for chunk in http.stream():
        parts += chunk
        if len(parts) > MOST_BYTES:
            return None
    return bytes(parts)


def _path(http: Request) -> str:
    """As it was sent: a model's name in it may be quoted."""
    raw: bytes = http.scope.get("raw_path") or http.scope["path"].encode()
    return raw.decode("latin-1").partition("?")[0]


def _read(raw: bytes) -> dict[str, Any] | None:
    try:
        body: Any = json.loads(raw, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    # A repeated key would let the meter bound one value while the service charges for the other.
    unique = dict(members)
    if len(unique) != len(members):
        raise ValueError("a key is repeated")
    return unique


async def _not_found(http: Request, _: Exception) -> Response:
    return _error(
        404, "not_found_error", f"The model gateway has no {http.method} {http.url.path}."
    )


def _too_large() -> Response:
    message = f"The request is larger than {MOST_BYTES} bytes."
    return _error(413, "request_too_large", message)


def _no_request() -> Response:
    message = "The body is not a JSON object, or repeats a key."
    return _error(400, "invalid_request_error", message)


def _no_path() -> Response:
    message = "The path has an empty segment, `.`, `..` or a character that no model's path has."
    return _error(400, "invalid_request_error", message)


def _refused(refusal: GatewayError) -> Response:
    if refusal.code == BUDGET_SPENT:
        return _error(402, "billing_error", str(refusal))
    if refusal.code == Fault.PASSING:
        return _error(503, "api_error", str(refusal))
    return _error(GONE, "api_error", str(refusal))


def _error(status: int, kind: str, message: str) -> Response:
    return JSONResponse(error_body(kind, message), status_code=status)


def _response(reply: Reply) -> Response:
    headers = {"content-type": "application/json", **reply.headers}
    if isinstance(reply.body, bytes):
        return Response(reply.body, status_code=reply.status, headers=headers)
    return _Streaming(reply.body, reply.status, headers, reply.close)


class _Streaming(StreamingResponse):
    """Closes its reply however it ends: if the client is gone already, the chunks are never started
    and cannot close it themselves."""

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        status: int,
        headers: dict[str, str],
        close: Callable[[], Awaitable[None]] | None,
    ) -> None:
        super().__init__(chunks, status_code=status, headers=headers)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._close is not None:
                await self._close()
