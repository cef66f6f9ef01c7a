"""Answers from a real service: the gateway holds the key and the budget, the CLI holds neither."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx

from harness.model_gateway.costs import MOST_A_SECOND
from harness.model_gateway.dialects import FRAMES, FrameReader
from harness.model_gateway.gateway import GONE, Refusal, Reply
from harness.model_gateway.meter import Meter, Reservation
from harness.model_gateway.service import Dialect, Service
from harness.model_gateway.weather import (
    LASTING,
    MALFORMED,
    MALFORMED_IN_A_ROW,
    OVERLOADED,
    Weather,
    broke_off,
    trouble_in_stream,
    trouble_of,
    unreadable_in_a_row,
)
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
SIGNED = ("host", "content-type")
"""What a signature covers beside the path, the body and the date."""
IDLE_S = 240.0
"""Below the five minutes after which the CLI itself gives a silent stream up."""
NOT_RETURNED = NOT_SENT | {"content-encoding", "set-cookie", "server", "date"}

Observer = Callable[[RecordedRequest, dict[str, Any]], None]
"""Called with each complete answer, as the JSON form of the message."""


class Live:
    """An Answerer that forwards requests to `upstream`, and its answers as they arrive.

    Args:
        service: where requests go, with the headers that the gateway adds to them; they are in no
            other place. A login of the CLI is passed on, and not kept.
        meter: keeps the budget; a request whose worst case exceeds it is refused (402), not sent.
        timeout_s: how long the service may be silent before a request fails (504).
        trust_environment: whether proxies and certificates come from environment variables.
        observe: called with each complete answer.
        idle_s: how long a stream that has begun may be silent before it is cut.
        now: seconds, of which what a cut answer can have cost is counted.
    """

    def __init__(
        self,
        *,
        service: Service,
        meter: Meter,
        timeout_s: float = 600.0,
        trust_environment: bool = True,
        observe: Observer | None = None,
        idle_s: float = IDLE_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.meter, self.weather = meter, Weather()
        self.observe, self.now, self._idle_s = observe, now, idle_s
        self._service = service
        self._upstream = service.url.rstrip("/")
        self._timeout = httpx.Timeout(timeout_s, connect=min(30.0, timeout_s))
        self._trust_environment = trust_environment
        self._client: httpx.AsyncClient | None = None

    async def answer(self, request: RecordedRequest, raw: bytes) -> Reply:
        built = await self._signed(self._built(request, raw))
        _require_readable(request)
        sent = _Sent(self, request, self.meter.reserve(request))
        try:
            response = await self._send(built)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            return sent.unreached(f"The model service cannot be reached: {_named(error)}.")
        except httpx.HTTPError as error:
            # A stream is opened before the model writes: where it never was, nothing is charged.
            words = f"The model service did not answer: {_named(error)}."
            return sent.broken(words, began=not request.stream)
        except BaseException:  # cancelled: whether the service charges is unknown
            sent.cut()
            raise
        kind = response.headers.get("content-type", "")
        if response.status_code == 200 and ("event-stream" in kind or kind.startswith(FRAMES)):
            reader = FrameReader() if kind.startswith(FRAMES) else EventReader()
            stream = _Stream(response, reader, sent.streamed, self._idle_s)
            return Reply(
                body=stream.chunks(), headers=_returned(response.headers), close=stream.close
            )
        try:
            body = await response.aread()
        except httpx.HTTPError as error:
            return sent.broken(f"The model service broke off: {_named(error)}.")
        except BaseException:
            sent.cut()
            raise
        return sent.answered(response, body)

    async def count_tokens(self, request: RecordedRequest, raw: bytes) -> Reply:
        built = await self._signed(self._built(request, raw))
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

    async def _signed(self, built: httpx.Request) -> httpx.Request:
        """In a thread: credentials may be renewed meanwhile. Raises Refusal."""
        if self._service.sign is None:
            return built
        where = f"{built.url.scheme}://{built.url.netloc.decode()}"
        covered = {name: built.headers[name] for name in SIGNED if name in built.headers}
        path = built.url.raw_path.decode()
        added = await asyncio.to_thread(
            self._service.sign, f"{where}{path}", built.content, covered
        )
        built.headers.update(added)
        return built

    async def _send(self, built: httpx.Request) -> httpx.Response:
        client = self._connected()
        return await client.send(built, stream=True, follow_redirects=False)


class _Sent:
    """A request that was sent: however it ends, it is settled once, and its session's weather is
    noted."""

    def __init__(self, live: Live, request: RecordedRequest, reservation: Reservation) -> None:
        self._live, self._request, self._reservation = live, request, reservation
        self._began = live.now()
        self._session = request.asker.session
        live.weather.asked(self._session)

    def unreached(self, words: str) -> Reply:
        """Nothing was sent, and nothing is charged."""
        self._live.meter.release(self._reservation)
        self._live.weather.failed(self._session, broke_off(words))
        return _gateway_error(502, words)

    def broken(self, words: str, *, began: bool = True) -> Reply:
        """`began`: whether the service can have written something."""
        if began:
            self.cut()
        else:
            self._live.meter.release(self._reservation)
        self._live.weather.failed(self._session, broke_off(words))
        return _gateway_error(504, words)

    def cut(self, reader: EventReader | None = None, size: int = 0) -> None:
        """Settled with what it can have cost: the service may have worked on it all the time."""
        written = size + math.ceil((self._live.now() - self._began) * MOST_A_SECOND)
        usage = {} if reader is None else reader.usage
        self._live.meter.settle_cut(self._reservation, usage, written)

    def answered(self, response: httpx.Response, body: bytes) -> Reply:
        """A whole body."""
        headers, status = _returned(response.headers), response.status_code
        if status == 200:
            message = _whole(body)
            if message is None:
                self.cut(size=len(body))
                words = f"the answer is no message: {body[:100].decode('utf-8', 'replace')}"
                self._live.weather.failed(self._session, broke_off(words))
                return _gateway_error(502, words)
            self._took(message)
            return Reply(body=body, headers=headers)
        self._live.meter.release(self._reservation)
        trouble = trouble_of(status, response.headers, body)
        self._live.weather.failed(self._session, trouble)
        if status == OVERLOADED:
            # Of this the CLI gives up after three requests, of any other 5xx after its retries.
            error = _gateway_error(503, trouble.words)
            return Reply(body=error.body, status=503, headers=headers)
        if trouble.fault in LASTING and self._request.login is None:
            # Not the service's status: what lasts is not worth the CLI's retries.
            return _gateway_error(GONE, f"{trouble.fault}: {trouble.words}")
        return Reply(body=body, status=status, headers=headers)

    def streamed(self, reader: EventReader, size: int, broke: str) -> None:
        """The stream has ended; `broke`: why, where it was cut."""
        weather, session, message = self._live.weather, self._session, reader.message()
        if message is not None:
            self._took(message)
        elif reader.error is not None and not reader.usage:
            self._live.meter.release(self._reservation)  # as with a status: it never began
        else:
            self.cut(reader, size)
        if reader.error is not None:
            weather.failed(session, trouble_in_stream(reader.error))
        elif broke:
            weather.failed(session, broke_off(broke))
        elif reader.malformed:
            weather.failed(session, broke_off("the stream holds events that cannot be read"))

    def _took(self, message: dict[str, Any]) -> None:
        live = self._live
        live.weather.answered(self._session, message)
        live.meter.settle(self._reservation, message["usage"])
        if live.observe is not None:
            live.observe(self._request, message)


class _Stream:
    """The answer's events as they arrive; told of once that it has ended, however it ends."""

    def __init__(
        self,
        response: httpx.Response,
        reader: EventReader,
        ended: Callable[[EventReader, int, str], None],
        idle_s: float,
    ) -> None:
        self._response, self._ended, self._idle_s = response, ended, idle_s
        self._reader = reader
        self._closed, self._size, self._broke = False, 0, ""

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            chunks = aiter(self._response.aiter_bytes())
            while True:
                async with asyncio.timeout(self._idle_s):
                    chunk = await anext(chunks)
                self._size += len(chunk)
                self._reader.feed(chunk)
                yield chunk
        except StopAsyncIteration:
            if self._reader.message() is None and self._reader.error is None:
                self._broke = "the stream ended before the answer did"
        except (httpx.HTTPError, TimeoutError) as error:
            self._broke = f"The model service broke off: {_named(error)}."
            if isinstance(self._reader, FrameReader):
                return  # the CLI sees that the frames end
            yield event("error", **error_body("api_error", self._broke))
        finally:
            await self.close()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._ended(self._reader, self._size, self._broke)
        finally:
            await self._response.aclose()


def _require_readable(request: RecordedRequest) -> None:
    """Raises Refusal (malformed_calls) for a session that calls tools in no form that they have."""
    count = unreadable_in_a_row(request.body)
    if count >= MALFORMED_IN_A_ROW:
        raise Refusal(
            f"{count} rounds of tool calls in a row could not be read (role"
            f" {request.asker.role}).",
            hint="Its session ends; the loop gives the step another one.",
            code=MALFORMED,
        )


def _whole(body: bytes) -> dict[str, Any] | None:
    """The message, if it is one that the CLI can read."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
        return None
    content = message.get("content")
    good = isinstance(content, list) and all(
        isinstance(block, dict)
        and (block.get("type") != "tool_use" or (block.get("id") and block.get("name")))
        for block in content
    )
    return message if good else None


def _is_taken(name: str) -> bool:
    return name in CLOUDS_TAKE or name.startswith(CLOUDS_TAKE_LIKE)


def _returned(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in NOT_RETURNED}


def _gateway_error(status: int, message: str) -> Reply:
    return Reply(body=json.dumps(error_body("api_error", message)).encode(), status=status)


def _named(error: Exception) -> str:
    if isinstance(error, httpx.LocalProtocolError):
        # It quotes the header that cannot be sent, which may be the key.
        return f"{type(error).__name__}: a header cannot be sent, perhaps the key's"
    return f"{type(error).__name__} {error}".strip(" .")
