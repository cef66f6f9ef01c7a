"""Slash commands: thin over verbs that exist, allowed those verbs only, and never in a built-in's
place."""

import importlib
import re

import click
import pytest
import yaml

from harness.cli.main import COMMANDS
from harness.contract.roles import ASKED_VERBS, HOW_TO_DECIDE, HUMAN_VERBS
from harness.contract.slash_commands import SLASH_COMMANDS
from harness.rendering.prompts import COMMAND_BANNER, command_file
from harness.rendering.render import expected
from tests.rendering.test_plugin import ROOT

ISSUE = {
    "status",
    "prime",
    "experiment",
    "train",
    "watch",
    "gate",
    "decisions",
    "doctor",
    "handoff",
    "plan",
    "try",
    "evaluate",
    "report",
}
SHELL = re.compile(r"!`([^`]*)`")
each = pytest.mark.parametrize("command", SLASH_COMMANDS, ids=lambda command: command.name)


def parts(command):
    _, front, body = command_file(command).split("---\n", 2)
    return yaml.safe_load(front), body


def test_there_is_one_for_each_job():
    assert {command.name for command in SLASH_COMMANDS} == ISSUE


@each
def test_front_matter_is_what_claude_code_reads(command):
    head, body = parts(command)
    assert head.pop("description") == command.description
    assert head.pop("argument-hint", "") == command.arguments
    assert head.pop("allowed-tools") == ", ".join(
        f"Bash(harness {verb}:*)" for verb in command.verbs
    )
    assert head == {}
    assert body.startswith(COMMAND_BANNER)


@each
def test_its_verbs_exist_and_none_is_a_persons(command):
    for verb in command.verbs:
        words = tuple(verb.split())
        module, _, attribute = COMMANDS[words[0]].partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if len(words) > 1:
            assert isinstance(found, click.Group)
            assert words[1] in found.commands
        # An option that is a person's alone (`experiment show --exact`) is refused by the hooks
        # and by the verb itself.
        whole = [human for human in HUMAN_VERBS if not human[-1].startswith("--")]
        assert not any(human[: len(words)] == words for human in whole), (
            "it would be allowed without a question"
        )


@each
def test_what_it_runs_before_the_model_is_allowed_and_answers_whatever_the_exit_status(command):
    """Claude Code drops the whole command, without a request, when such a line is not allowed or
    ends with an error."""
    _, body = parts(command)
    for line in SHELL.findall(body):
        assert any(re.match(rf"harness {verb}( |$)", line) for verb in command.verbs), line
        assert line.endswith(" 2>&1 || true")


@each
def test_what_a_person_typed_is_passed_on(command):
    _, body = parts(command)
    assert ("$ARGUMENTS" in body) is bool(command.arguments)


@each
def test_the_person_sees_what_the_harness_printed(command):
    _, body = parts(command)
    assert ("each line as it stands" in body) is command.shows
    assert command.shows is (command.name != "handoff")


@each
def test_it_says_of_an_asked_verb_that_it_may_be_run_where_the_person_is_asked(command):
    """Once, in the words of `harness plan check`; a command that names none says nothing."""
    _, body = parts(command)
    named = any(f"`harness {' '.join(verb)} " in body for verb in ASKED_VERBS)
    assert body.count(HOW_TO_DECIDE) == named
    assert "do not try" not in body


def test_both_folders_of_this_repository_hold_them():
    wanted = {path.as_posix() for path in expected(ROOT)}
    for command in SLASH_COMMANDS:
        assert {
            f"commands/{command.name}.md",
            f".claude/commands/harness/{command.name}.md",
        } <= wanted
