"""Teachers behind a service: OpenAI's chat completions, which vLLM and others offer too, and
Anthropic's Messages.

The key goes into a header and nowhere else; never to a service without encryption that is not on
this machine.
"""

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from harness.clock import Clock
from harness.domain.plain_text import one_line
from harness.errors import RunError, UsageError
from harness.teachers.asking import Answer, Question, always
from harness.teachers.lines import object_of

_AGAIN = (408, 409, 429, 500, 502, 503, 504, 529)
_PERHAPS_COMPUTED = (500, 502, 504)
"""The model may have answered, and something on the way lost it."""
_TRIES, _FIRST_WAIT, _LONGEST_WAIT = 6, 1.0, 60.0
_TIMEOUT = 300.0
_LARGEST = 8 << 20
"""Bytes of an answer."""
_VERSION = "2023-06-01"
"""Of Anthropic's interface."""


@dataclass(kw_only=True)
class Endpoint:
    """`form` is `openai` or `anthropic`; `url` the service's address up to `/v1`."""

    form: str
    model: str
    url: str
    key: str | None = field(repr=False)
    clock: Clock
    lost: int = 0
    retries: int = 0
    timeout: float = _TIMEOUT

    def __post_init__(self) -> None:
        require_safe(self.url, has_key=self.key is not None)
        self._client = httpx.Client(timeout=self.timeout, follow_redirects=False)

    def close(self) -> None:
        self._client.close()

    def answer(self, question: Question, may_try: Callable[[int], bool] = always) -> Answer | None:
        began, before = self.clock.monotonic(), self.lost
        wait, told = _FIRST_WAIT, ""
        for attempt in range(1, _TRIES + 1):
            if not may_try(self.lost - before):
                return None
            try:
                status, headers, body = self._post(question)
            except httpx.RequestError as error:
                # Only where no connection was made is it sure that nothing was computed.
                self.lost += not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                told = type(error).__name__
            else:
                if status == 200:
                    return self._read(body, self.clock.monotonic() - began)
                self.lost += status in _PERHAPS_COMPUTED
                told = f"HTTP {status}: {_message(body)}"
                if status not in _AGAIN:
                    break
                wait = max(wait, _asked_wait(headers))
            if attempt < _TRIES:
                self.retries += 1
                self.clock.sleep(min(wait, _LONGEST_WAIT))
                wait *= 2
        raise RunError(
            f"{self.model} at {host_of(self.url)} gave no answer: {told}.",
            hint="Answers so far are kept: the same command goes on from there.",
            code="teacher_unavailable",
        )

    def _read(self, body: bytes, seconds: float) -> Answer:
        try:
            return _answer(self.form, body, seconds)
        except RunError:
            self.lost += 1  # it was computed, whatever it is
            raise

    def _post(self, question: Question) -> tuple[int, Mapping[str, str], bytes]:
        path, headers, content = _request(self.form, self.model, self.key, question)
        address = self.url.rstrip("/") + path
        end = self.clock.monotonic() + self.timeout
        with self._client.stream("POST", address, headers=headers, json=content) as response:
            body = b""
            for part in response.iter_bytes():
                body += part
                if len(body) > _LARGEST:
                    break
                # The client's own limit is for one read: a service may send a byte a minute.
                if self.clock.monotonic() > end:
                    raise httpx.ReadTimeout("The answer took too long.", request=response.request)
            return response.status_code, response.headers, body


def require_safe(url: str, *, has_key: bool) -> None:
    """Raises UsageError for an address that is none, or would get a key in the open."""
    shown = url.rpartition("@")[2]  # what stands before may be a name and a password
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise UsageError(
            f"{shown!r} is no address of a service.",
            hint="E.g. `openai:my-model@http://127.0.0.1:8000/v1`.",
        )
    if has_key and parts.scheme == "http" and not _here(parts.hostname):
        raise UsageError(
            f"A key would go to {parts.hostname} without encryption.",
            hint="Use https, or unset the key's variable.",
            code="key_in_the_open",
        )


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _request(
    form: str, model: str, key: str | None, question: Question
) -> tuple[str, dict[str, str], dict[str, Any]]:
    content: dict[str, Any] = {
        "model": model,
        "max_tokens": question.longest,
        "messages": [{"role": "user", "content": question.text}],
    }
    if form == "anthropic":
        headers = {"anthropic-version": _VERSION} | ({} if key is None else {"x-api-key": key})
        return "/messages", headers, content
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return "/chat/completions", headers, content | {"temperature": 0}


def _answer(form: str, body: bytes, seconds: float) -> Answer:
    row = object_of(body)
    if form == "anthropic":
        text, stop = _of_blocks(row.get("content")), row.get("stop_reason")
        names = ("input_tokens", "output_tokens")
        cut = stop == "max_tokens"
    else:
        choice = _first(row.get("choices"))
        message = choice.get("message")
        text = message.get("content") if isinstance(message, dict) else None
        if isinstance(message, dict) and text is None:
            text = ""  # it only thought, called a tool or refused, and is paid for
        names = ("prompt_tokens", "completion_tokens")
        cut = choice.get("finish_reason") == "length"
    if not isinstance(text, str):
        raise RunError(
            f"The service's answer is no answer of the form {form}: {_message(body)}.",
            hint="Name the form that it speaks: openai or anthropic.",
            code="teacher_answer",
        )
    usage = row.get("usage")
    counts = [_count(usage, name) for name in names]
    return Answer(
        text=text,
        cut=cut,
        input_tokens=counts[0],
        output_tokens=counts[1],
        seconds=round(seconds, 3),
    )


def _of_blocks(blocks: Any) -> str | None:
    if not isinstance(blocks, list):
        return None
    texts = [one.get("text") for one in blocks if isinstance(one, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _first(values: Any) -> dict[str, Any]:
    first = values[0] if isinstance(values, list) and values else None
    return first if isinstance(first, dict) else {}


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else None


def _asked_wait(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def _message(body: bytes) -> str:
    error = object_of(body).get("error")
    told = error.get("message") if isinstance(error, dict) else error
    return one_line(told if isinstance(told, str) else body.decode("utf-8", "replace"), 200)
