"""Requests and streams as Bedrock and Vertex have them, for the meter: the model stands in the
path, and Bedrock's events come in frames of their own."""

import base64
import binascii
import json
import re
import struct
from typing import Any
from urllib.parse import unquote

from harness.model_gateway.service import Dialect
from harness.model_gateway.wire import EventReader

FRAMES = "application/vnd.amazon.eventstream"
_PRELUDE = struct.Struct(">III")
_CHECKSUM = 4
_LARGEST = 32 << 20
_PATHS = {
    Dialect.BEDROCK: re.compile(
        r"/model/(?P<model>[^/]+)/(?P<verb>invoke|invoke-with-response-stream)\Z"
    ),
    Dialect.VERTEX: re.compile(
        r"(?:/v1)?/projects/[^/]+/locations/[^/]+/publishers/anthropic/models"
        r"/(?P<model>[^/:]+):(?P<verb>rawPredict|streamRawPredict)\Z"
    ),
}
_STREAMS = ("invoke-with-response-stream", "streamRawPredict")
_COUNTS = {
    Dialect.BEDROCK: re.compile(r"/model/[^/]+/count-tokens\Z"),
    Dialect.VERTEX: re.compile(
        r"(?:/v1)?/projects/[^/]+/locations/[^/]+/publishers/anthropic/models"
        r"/count-tokens:rawPredict\Z"
    ),
}
# Letters of models (also as an ARN), projects and regions; no segment is empty, `.` or `..`.
_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.:@-]+)+\Z")


def asked(dialect: Dialect, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The body as the Messages API has it; None where the path asks for no message."""
    pattern = _PATHS.get(dialect)
    found = None if pattern is None else pattern.match(path)
    if found is None:
        return None
    return {
        **body,
        "model": unquote(found["model"]),
        "stream": found["verb"] in _STREAMS,
    }


def counts_tokens(dialect: Dialect, path: str) -> bool:
    pattern = _COUNTS.get(dialect)
    return pattern is not None and pattern.match(path) is not None


def is_plain(path: str) -> bool:
    """Whether everyone on the way to the service reads `path` as the patterns here do: nothing in
    it can be resolved, cut off or unquoted into another path."""
    return _PLAIN.match(unquote(path)) is not None


class FrameReader(EventReader):
    """Reads the frames in which Bedrock sends the events of an answer."""

    # Each frame: its length, that of its headers, a checksum, headers, payload, a checksum. The
    # payload is JSON whose `bytes` hold one event.

    def __init__(self) -> None:
        super().__init__()
        self._waiting = b""

    def feed(self, chunk: bytes) -> None:
        self._waiting += chunk
        while len(self._waiting) >= _PRELUDE.size:
            whole, headers, _ = _PRELUDE.unpack_from(self._waiting)
            least = _PRELUDE.size + headers + _CHECKSUM
            if not least <= whole <= _LARGEST:
                self._waiting, self.malformed = b"", True
                return
            if len(self._waiting) < whole:
                return
            start = _PRELUDE.size + headers
            payload = self._waiting[start : whole - _CHECKSUM]
            self._waiting = self._waiting[whole:]
            self._event(payload)

    def _event(self, payload: bytes) -> None:
        try:
            inner = json.loads(payload)["bytes"]
            data = json.loads(base64.b64decode(inner))
        except (ValueError, KeyError, TypeError, binascii.Error):
            self.malformed = True
            return
        if isinstance(data, dict):
            self.take(data)
