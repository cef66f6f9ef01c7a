"""A tool's work in a thread of its own: one that blocks does not block the driver or the watchdog,
unless it hangs inside a transaction of the ledger, for which both wait."""

import asyncio
import threading
from typing import Any

from harness.driver.tool_server import Handler


async def in_own_thread(handler: Handler, arguments: dict[str, Any]) -> dict[str, Any]:
    """What `handler` returns or raises, in an event loop of its own. Where the caller is cancelled
    what blocks goes on by itself: a thread cannot be ended, and keeps no process from ending. What
    it does after the end of its session is refused: see Ledger.of_session."""

    async def work() -> dict[str, Any]:
        return await handler(arguments)

    loop = asyncio.new_event_loop()
    threading.Thread(target=_serve, args=(loop,), name="tool", daemon=True).start()
    answer = asyncio.run_coroutine_threadsafe(work(), loop)
    answer.add_done_callback(lambda _answer: loop.call_soon_threadsafe(loop.stop))
    return await asyncio.wrap_future(answer)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
