"""Progress lines of long verbs: one line an event, on stderr, without escape codes."""

import sys
from collections.abc import Mapping
from typing import Any


def print_event(event: Mapping[str, Any]) -> None:
    """Print `event["text"]`; the rest of an event is for programs."""
    sys.stderr.write(f"{event['text']}\n")
    sys.stderr.flush()
