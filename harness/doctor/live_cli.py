"""Starts the CLI itself, with the project's settings, against a scripted model.

The model asks for one Write that must be denied. It is not permitted either, so a broken guard
writes nothing. Environment, folders, transcript and receipts are temporary.
"""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.doctor.claude_cli import find_clis
from harness.doctor.probe_process import Ended, clean_environment, run, temporary_folder
from harness.doctor.report import INSTALL, DoctorCheck, broken, doctor_check, good, note
from harness.doctor.start_hooks import remove_receipts
from harness.doctor.subject import DoctorSubject
from harness.errors import GatewayError
from harness.model_gateway.gateway import Gateway
from harness.model_gateway.scenario import (
    Scenario,
    ScenarioSession,
    ScenarioToolCall,
    ScenarioTurn,
)
from harness.model_gateway.scripted import Scripted
from harness.model_gateway.wire import Asker

_PROBE = "doctor"
_LONGEST_S = 120.0
_BY_HOOK = "PreToolUse:Write hook error"
_INVALID = re.compile(r"Invalid setting skipped[^:]*: (.*)")
"""Only in the debug log does CLI 2.1.332 name the value that makes it skip a file's hooks."""


@doctor_check
def cli_denies(subject: DoctorSubject) -> DoctorCheck:
    """Whether the CLI, started here, denies a write to the policy snapshot by our hook."""
    clis = find_clis(subject.environment, subject.home)
    if not clis:
        return note("No Claude Code CLI was found, so none was started.")
    program = clis[0].program
    session = str(uuid.uuid4())
    try:
        with (
            temporary_folder() as folder,
            Gateway(Scripted(_scenario(subject.folder))) as gateway,
            gateway.admitted(Asker(role=_PROBE)) as key,
        ):
            log = folder / "debug.log"
            ended = run(
                [str(program), *_options(subject, session, log)],
                cwd=subject.folder,
                environment={
                    **clean_environment(folder, subject.environment),
                    "ANTHROPIC_BASE_URL": gateway.url,
                    "ANTHROPIC_API_KEY": key,
                    "CLAUDE_CODE_MAX_RETRIES": "0",
                },
                timeout_s=_LONGEST_S,
            )
            return _judge(program, ended, _invalid_settings(log), gateway.failure)
    except (OSError, GatewayError) as error:
        return note(f"{program} could not be started against the scripted model: {error}.")
    finally:
        remove_receipts(subject, session)


def _scenario(folder: Path) -> Scenario:
    call = ScenarioToolCall(
        name="Write", input={"file_path": str(folder / ".harness/policy.json"), "content": ""}
    )
    turns = (ScenarioTurn(tools=(call,)), ScenarioTurn(text="done"))
    return Scenario(sessions=(ScenarioSession(role=_PROBE, turns=turns),))


def _options(subject: DoctorSubject, session: str, log: Path) -> list[str]:
    plugin = [] if subject.plugin is None else ["--plugin-dir", str(subject.plugin)]
    return [
        *plugin,
        *("-p", "probe", "--output-format", "stream-json", "--verbose"),
        *("--setting-sources", "project", "--permission-mode", "default", "--strict-mcp-config"),
        *("--session-id", session, "--no-session-persistence", "--debug-file", str(log)),
    ]


def _judge(
    program: Path, ended: Ended, invalid: list[str], gateway_failure: str | None
) -> DoctorCheck:
    results = list(_tool_results(ended.stdout))
    denial = next((text for text in results if _BY_HOOK in text), None)
    if denial is not None and "can't open file" not in denial:
        return good(f"{program}, started here, denied a write to the policy snapshot")
    if denial is not None:
        return broken(f"hook not found: {denial[:400]}", INSTALL)
    if invalid:
        return broken(
            f"{program} reads no hook of the project, because a setting is not valid:"
            f" {'; '.join(invalid[:3])}.",
            "Correct that setting.",
        )
    if results:
        return broken(
            f"{program}, started here, did not call our hook for a write to the policy snapshot;"
            f" it said: {results[0][:200]}",
            "Correct what the other checks report; `claude` may also be a wrapper script that"
            " adds options.",
        )
    reason = gateway_failure or ended.stderr.strip()[-300:] or f"exit status {ended.code}"
    return note(f"{program} ended before it used a tool, so this proves nothing: {reason}")


def _tool_results(stream: str) -> Iterator[str]:
    for line in stream.splitlines():
        try:
            message: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("type") == "user":
            content = message.get("message", {}).get("content")
            for block in content if isinstance(content, list) else ():
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    yield str(block.get("content"))


def _invalid_settings(log: Path) -> list[str]:
    try:
        text = log.read_text("utf-8", "replace")
    except OSError:
        return []
    return [match.group(1)[:300] for match in _INVALID.finditer(text)]
