"""Answers from a real service: the gateway holds the key and the budget, the CLI holds neither."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx

from harness.model_gateway.dialects import FRAMES, FrameReader
from harness.model_gateway.gateway import Refusal, Reply
from harness.model_gateway.meter import Meter, Reservation
from harness.model_gateway.service import Dialect, Service
from harness.model_gateway.wire import KEYS, EventReader, RecordedRequest, error_body, event

NOT_SENT = KEYS | {
    "host",
    "content-length",
    "accept-encoding",
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "origin",
}
CLOUDS_TAKE = frozenset({"accept", "content-type", "user-agent", "x-app"})
CLOUDS_TAKE_LIKE = ("anthropic-", "x-claude-code-", "x-stainless-")
"""What a session's own headers may tell Bedrock and Vertex: by others the service's tier, its speed
or who pays is chosen, and the meter knows one price. A person's own are the service's."""
NOT_RETURNED = NOT_SENT | {"content-encoding", "set-cookie", "server", "date"}

Observer = Callable[[RecordedRequest, dict[str, Any]], None]
"""Called with each complete answer, as the JSON form of the message."""


class Live:
    """An Answerer that forwards requests to `upstream`, and its answers as they arrive.

    Args:
        service: where requests go, with the headers that the gateway adds to them; they are in no
            other place. A login of the CLI is passed on, and not kept.
        meter: keeps the budget; a request whose worst case exceeds it is refused (400), not sent.
        timeout_s: how long the service may be silent before a request fails (504).
        trust_environment: whether proxies and certificates come from environment variables.
        observe: called with each complete answer.
    """

    def __init__(
        self,
        *,
        service: Service,
        meter: Meter,
        timeout_s: float = 600.0,
        trust_environment: bool = True,
        observe: Observer | None = None,
    ) -> None:
        self.meter = meter
        self._service = service
        self._upstream = service.url.rstrip("/")
        self._timeout = httpx.Timeout(timeout_s, connect=min(30.0, timeout_s))
        self._trust_environment = trust_environment
        self._observe = observe
        self._client: httpx.AsyncClient | None = None

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        built = self._built(request, raw)
        reservation = self.meter.reserve(request)
        try:
            response = await self._send(built)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            self.meter.release(reservation)
            return _gateway_error(502, f"The model service cannot be reached: {_named(error)}.")
        except httpx.HTTPError as error:
            self.meter.settle(reservation, None)  # the service may have worked on it
            return _gateway_error(504, f"The model service did not answer: {_named(error)}.")
        except BaseException:  # cancelled: whether the service charges is unknown
            self.meter.settle(reservation, None)
            raise
        headers = _returned(response.headers)
        kind = response.headers.get("content-type", "")
        if "event-stream" in kind or kind.startswith(FRAMES):
            stream = _Stream(
                response,
                FrameReader() if kind.startswith(FRAMES) else EventReader(),
                lambda message: self._settle(request, reservation, response.status_code, message),
            )
            return Reply(
                body=stream.chunks(),
                status=response.status_code,
                headers=headers,
                close=stream.close,
            )
        try:
            body = await response.aread()
        except httpx.HTTPError as error:
            self.meter.settle(reservation, None)
            return _gateway_error(504, f"The model service broke off: {_named(error)}.")
        except BaseException:
            self.meter.settle(reservation, None)
            raise
        self._settle(request, reservation, response.status_code, _whole(body))
        return Reply(body=body, status=response.status_code, headers=headers)

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        built = self._built(request, raw)
        try:
            response = await self._send(built)
            body = await response.aread()
        except httpx.HTTPError as error:
            return _gateway_error(502, f"The model service cannot be reached: {_named(error)}.")
        return Reply(body=body, status=response.status_code, headers=_returned(response.headers))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            limits = httpx.Limits(max_connections=100)
            self._client = httpx.AsyncClient(
                timeout=self._timeout, limits=limits, trust_env=self._trust_environment
            )
        return self._client

    def _built(self, request: RecordedRequest, raw: bytes) -> httpx.Request:
        """What is sent. Raises Refusal for what no service can get."""
        cloud = self._service.dialect is not Dialect.MESSAGES
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in NOT_SENT and (not cloud or _is_taken(name))
        }
        # Uncompressed, since the events are read on their way through.
        headers |= {**self._service.headers, "accept-encoding": "identity"}
        if request.login is not None:
            headers |= request.login.header()
        url = self._upstream + request.path
        if request.query and not cloud:  # the clouds' CLI asks with none
            url += f"?{request.query}"
        client = self._connected()
        try:
            return client.build_request("POST", url, content=raw, headers=headers)
        except (ValueError, httpx.InvalidURL):
            raise Refusal(
                "The request cannot be sent: a header or its address has a character that HTTP"
                " has not.",
                hint="Correct the header; if every request is refused, the key.",
            ) from None  # the error quotes the value, which may be the key

    async def _send(self, built: httpx.Request) -> httpx.Response:
        client = self._connected()
        return await client.send(built, stream=True, follow_redirects=False)

    def _settle(
        self,
        request: RecordedRequest,
        reservation: Reservation,
        status: int,
        message: dict[str, Any] | None,
    ) -> None:
        """Settle the reservation and call the observer; an incomplete message costs the worst
        case."""
        if status != 200:
            self.meter.release(reservation)
            return
        self.meter.settle(reservation, None if message is None else message["usage"])
        if message is not None and self._observe is not None:
            self._observe(request, message)


class _Stream:
    """The answer's events as they arrive; settled and closed once, however it ends."""

    def __init__(
        self,
        response: httpx.Response,
        reader: EventReader,
        settle: Callable[[dict[str, Any] | None], None],
    ) -> None:
        self._response, self._settle = response, settle
        self._reader = reader
        self._closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_bytes():
                self._reader.feed(chunk)
                yield chunk
        except httpx.HTTPError as error:
            if isinstance(self._reader, FrameReader):
                return  # the CLI sees that the frames end
            yield event(
                "error",
                **error_body("api_error", f"The model service broke off: {_named(error)}."),
            )
        finally:
            await self.close()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # An answer that broke off has no message: it is settled with its worst case, since the
        # service may charge for what it generated.
        try:
            self._settle(self._reader.message())
        finally:
            await self._response.aclose()


def _whole(body: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(body)
    except ValueError:
        return None
    return (
        message if isinstance(message, dict) and isinstance(message.get("usage"), dict) else None
    )


def _is_taken(name: str) -> bool:
    return name in CLOUDS_TAKE or name.startswith(CLOUDS_TAKE_LIKE)


def _returned(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in NOT_RETURNED}


def _gateway_error(status: int, message: str) -> Reply:
    return Reply(body=json.dumps(error_body("api_error", message)).encode(), status=status)


def _named(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.LocalProtocolError):
        # It quotes the header that cannot be sent, which may be the key.
        return f"{type(error).__name__}: a header cannot be sent, perhaps the key's"
    return f"{type(error).__name__} {error}".strip()
