"""A tool's work in a thread of its own: however long it blocks, the driver hears its session, and
the watchdog works."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

import anyio


async def in_own_thread(call: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """What `call` returns or raises, in an event loop of its own. Where the caller is cancelled it
    goes on by itself: a thread cannot be ended, and keeps no process from ending."""
    answer: Future[dict[str, Any]] = Future()
    answer.set_running_or_notify_cancel()

    def work() -> None:
        try:
            answer.set_result(anyio.run(call))
        except BaseException as error:  # noqa: BLE001  told where it is awaited
            answer.set_exception(error)

    threading.Thread(target=work, name="tool", daemon=True).start()
    return await asyncio.wrap_future(answer)
