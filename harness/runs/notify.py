"""Tells a person what the loop waits for or met: by a command, by a webhook.

Each notice goes on its way in a thread of its own: nothing waits for it but the end. A failure is
told, and ends nothing.
"""

import os
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from harness.clock import iso
from harness.detectors.alarm import PREDICT_FAILS
from harness.domain.commands import for_helpers
from harness.domain.notices import Notice, Notify, host_of
from harness.domain.plain_text import one_line
from harness.errors import ConfigError
from harness.files import pretty_json
from harness.ledger.project import Project
from harness.process import SYSTEM_FOLDERS, run

SECONDS = 10.0
"""For the command, and for the whole POST."""
MOST_ALARMS = 5
"""Of one run that are told: what follows is in the run's page."""
_SAID = 200

Tell = Callable[[str], None]


# Without a handler for redirects: what is told is for the named server alone.
_OPENER = OpenerDirector()
for _handler in (
    ProxyHandler(),
    HTTPHandler(),
    HTTPSHandler(),
    HTTPDefaultErrorHandler(),
    HTTPErrorProcessor(),
):
    _OPENER.add_handler(_handler)


class Notifier:
    """The notices of one process; nothing without `notify` in an approved config.toml."""

    def __init__(self, project: Project, tell: Tell) -> None:
        self._project, self._tell = project, tell
        self._notify = _approved(project)
        self._threads: list[threading.Thread] = []
        self._problems: list[str] = []

    def send(self, notice: Notice, text: str, **more: Any) -> None:
        """`more`: what the document says beside event, time, project and text."""
        self.send_any((notice,), text, **more)

    def send_any(self, notices: tuple[Notice, ...], text: str, **more: Any) -> None:
        """Once, when one of `notices` is wanted; the document has the first one's name."""
        notify = self._notify
        if notify is None or notify.on.isdisjoint(notices):
            return
        self._start(notify, self._document(notices[0].value, text, more))

    def trial(self) -> list[str]:
        """Send one notice by every way, whatever `on` says, and wait for it; what went wrong.
        Raises ConfigError (no_notify) where no approved config.toml names a way."""
        notify = self._notify
        if notify is None:
            raise ConfigError(
                "No approved .harness/config.toml has `notify`: nobody would be told.",
                hint="Write it there (docs/formats.md), then `harness plan approve`.",
                code="no_notify",
            )
        text = "a trial: this is how the harness tells you"
        self._deliver(notify, self._document("trial", text, {"next": "harness status"}))
        problems, self._problems = self._problems, []
        return problems

    @property
    def ways(self) -> list[str]:
        return [] if self._notify is None else self._notify.words

    def _document(self, event: str, text: str, more: Mapping[str, Any]) -> bytes:
        settings = self._project.settings
        document = {
            "event": event,
            "at": iso(self._project.clock.now()),
            "project": settings.project_id,
            "folder": str(settings.root),
            "text": one_line(text),
            **more,
        }
        return pretty_json(document).encode()

    def close(self) -> None:
        """Wait for what is on its way, then tell what failed."""
        for thread in self._threads:
            thread.join(2 * SECONDS + 1)
        self._threads = []
        problems, self._problems = self._problems, []
        for problem in problems:
            self._tell(f"notify: {problem}; the work goes on")

    def _start(self, notify: Notify, data: bytes) -> None:
        thread = threading.Thread(
            target=self._deliver,
            args=(notify, data),
            name="notify",
            daemon=True,
        )
        thread.start()
        self._threads.append(thread)

    def _deliver(self, notify: Notify, data: bytes) -> None:
        for problem in (_run(notify, data), _posted(notify, data)):
            if problem is not None:
                self._problems.append(one_line(problem))


class AlarmNotices:
    """The alarms of one run: one notice a code, the first few of them."""

    def __init__(self, notifier: Notifier, run: str) -> None:
        self._notifier, self.run = notifier, run
        self._told: set[str] = set()

    def tell(self, alarm: Mapping[str, Any]) -> None:
        """`alarm` as Alarm.plain gives it; ends of alarms tell nothing, and of notes only that
        predict fails: what is trained meanwhile could not be scored."""
        code = alarm["code"]
        if alarm["recovered"] or (alarm["severity"] == "note" and code != PREDICT_FAILS):
            return
        if code in self._told or len(self._told) >= MOST_ALARMS:
            return
        self._told.add(code)
        experiment = self.run.partition("/")[0]
        self._notifier.send(
            Notice.ALARM,
            f"{self.run}: {alarm['severity']} {code}: {alarm['message']}",
            experiment=experiment,
            run=self.run,
            alarm=dict(alarm),
            next=f"harness experiment show {experiment}",
        )


def _approved(project: Project) -> Notify | None:
    """As a person approved it: before a plan stands, nobody has."""
    layout = project.layout
    try:
        approved = layout.approved_config.read_bytes()
        now = layout.project("config_toml").read_bytes()
    except OSError:
        return None
    return project.settings.notify if approved == now else None


def _run(notify: Notify, data: bytes) -> str | None:
    """What went wrong."""
    if not notify.command:
        return None
    # Programs of the system and the whole path that a person wrote, in no folder of the project.
    environment = for_helpers(os.environ)
    environment["PATH"] = os.pathsep.join(SYSTEM_FOLDERS)
    home = environment.get("HOME", os.sep)
    name = notify.command[0]
    try:
        done = run(
            notify.command,
            cwd=Path(home),
            environment=environment,
            seconds=SECONDS,
            stdin=data,
            most_bytes=1 << 16,
        )
    except OSError as error:
        return f"{name} cannot be started: {error.strerror}"
    if done.timed_out:
        return f"{name} took longer than {SECONDS:g} s and was ended"
    if done.code != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        last = said.splitlines()[-1][:_SAID] if said else "nothing on stderr"
        return f"{name} ended with exit code {done.code}: {last}"
    return None


def _posted(notify: Notify, data: bytes) -> str | None:
    """What went wrong; an address may hold a secret, so only its host is named."""
    if notify.webhook is None:
        return None
    address, said = notify.webhook, []
    # The limit of a socket is for each of its operations: a server that sends a byte now and then
    # would keep it for hours. What is late is left to itself, and ends with the process.
    thread = threading.Thread(target=lambda: said.append(_post(address, data)), daemon=True)
    thread.start()
    thread.join(SECONDS)
    return said[0] if said else f"{host_of(address)} took longer than {SECONDS:g} s"


def _post(address: str, data: bytes) -> str | None:
    host = host_of(address)
    request = Request(
        address,
        data=data,
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with _OPENER.open(request, timeout=SECONDS / 2) as answer:
            answer.read(1)
    except HTTPError as error:
        error.close()
        return f"{host} answered {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)
        return f"{host} was not reached: {type(why).__name__}"
    return None
