"""Adds our entries to a person's settings.json and .mcp.json, and removes them.

An entry is ours when it starts a program in the folder of vendored hooks.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.contract.installation import VENDORED
from harness.contract.roles import MCP_SERVER
from harness.errors import UsageError
from harness.files import pretty_json
from harness.install.json_edit import (
    Node,
    NotStrictJsonError,
    add_item,
    add_member,
    load,
    parse,
    remove_part,
)

HOOKS, SERVERS = "hooks", "mcpServers"
PERMISSIONS, ALLOW = "permissions", "allow"
_NAMES = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}


def read_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object of a person's file. Raises UsageError (settings_invalid)."""
    try:
        value = load(text)
        parse(text)
    except NotStrictJsonError as error:
        raise UsageError(
            f"{where} is not JSON: {error}. Claude Code does not read such a file either.",
            hint=f"Correct line {error.line}, then run `harness init` again; nothing was changed.",
            code="settings_invalid",
        ) from error
    whole: dict[str, Any] = _require(value, dict, where, "the whole file")
    return whole


def with_hooks(text: str | None, section: Mapping[str, Any], where: str) -> str:
    """The settings `text` (None: no file) with the groups of `section` and no other entry of ours.

    Raises UsageError for invalid JSON, or hooks of another form.
    """
    if text is None:
        return pretty_json({HOOKS: dict(section)})
    hooks = _require(read_object(text, where).get(HOOKS, {}), dict, where, HOOKS)
    for event, groups in hooks.items():
        for group in _require(groups, list, where, f"{HOOKS}.{event}"):
            _require(
                _require(group, dict, where, f"{HOOKS}.{event}[]").get(HOOKS, []),
                list,
                where,
                f"{event} hooks",
            )
    for event, wanted in section.items():
        # Unchanged entries are not rewritten: a person's order and spacing around them stay.
        if [group for group in hooks.get(event, []) if _holds_ours(group)] != wanted:
            text = _without(text, event.__eq__, keep_empty=True)
            text = _add_groups(text, event, wanted)
    return _without(text, lambda name: name not in section, keep_empty=False)


def without_hooks(text: str, where: str) -> str:
    """The settings `text` without our entries and what they leave empty. Raises UsageError."""
    read_object(text, where)
    left = _without(text, lambda _event: True, keep_empty=False)
    return left if left == text or _at(left, HOOKS).parts else _drop(left, HOOKS)


def rules_of(text: str | None, where: str) -> list[Any]:
    """The permission rules that `text` allows. Raises UsageError (settings_invalid) for another
    form."""
    if text is None:
        return []
    permissions = read_object(text, where).get(PERMISSIONS, {})
    allowed = _require(permissions, dict, where, PERMISSIONS).get(ALLOW, [])
    rules: list[Any] = _require(allowed, list, where, f"{PERMISSIONS}.{ALLOW}")
    return rules


def with_rules(text: str, rules: Iterable[str], where: str) -> str:
    """The settings `text` that allows `rules` too. Raises UsageError."""
    for rule in rules:
        if rule in rules_of(text, where):
            continue
        text = _listed(text, PERMISSIONS, ALLOW, rule)
    return text


def without_rules(text: str, rules: Iterable[str], where: str) -> str:
    """The settings `text` without `rules` and what they leave empty. Raises UsageError."""
    before = text
    for rule in rules:
        while rule in (there := rules_of(text, where)):
            text = remove_part(text, _at(text, PERMISSIONS, ALLOW), there.index(rule))
    if text == before or rules_of(text, where):
        return text
    owner = _at(text, PERMISSIONS)
    if len(owner.parts) == 1:
        return _drop(text, PERMISSIONS)
    index = max(number for number, part in enumerate(owner.parts) if part[0] == ALLOW)
    return remove_part(text, owner, index)


def with_server(text: str | None, server: Mapping[str, Any], where: str) -> str | None:
    """The servers `text` with ours; None when another server has its name. Raises UsageError."""
    if text is None:
        return pretty_json({SERVERS: {MCP_SERVER: dict(server)}})
    servers = _require(read_object(text, where).get(SERVERS, {}), dict, where, SERVERS)
    there = servers.get(MCP_SERVER)
    if there == server:
        return text
    if there is not None and not names_vendored(there):
        return None
    text = without_server(text, where)
    owner = parse(text).member(SERVERS)
    if owner is None:
        return add_member(text, parse(text), SERVERS, {MCP_SERVER: dict(server)})
    return add_member(text, owner, MCP_SERVER, dict(server))


def without_server(text: str, where: str) -> str:
    """The servers `text` without ours. Raises UsageError."""
    read_object(text, where)
    owner = parse(text).member(SERVERS)
    index = (
        next((place for place, part in enumerate(owner.parts) if part[0] == MCP_SERVER), None)
        if owner
        else None
    )
    if owner is None or index is None or not names_vendored(_value(text, owner.parts[index][2])):
        return text
    text = remove_part(text, owner, index)
    return _drop(text, SERVERS) if len(owner.parts) == 1 else text


def names_vendored(entry: Any) -> bool:
    """Whether a hook or a server starts a program in the folder of vendored hooks."""
    if not isinstance(entry, dict):
        return False
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return any(isinstance(word, str) and f"{VENDORED}/" in word for word in words)


def _holds_ours(group: Any) -> bool:
    inner = group.get(HOOKS) if isinstance(group, dict) else None
    return isinstance(inner, list) and any(names_vendored(entry) for entry in inner)


def _require(value: Any, kind: type[Any], where: str, what: str) -> Any:
    if not isinstance(value, kind):
        raise UsageError(
            f"{where}: {what} is {_NAMES.get(type(value), 'a number')}; Claude Code expects"
            f" {_NAMES[kind]}.",
            hint="Correct it, then run `harness init` again; nothing was changed.",
            code="settings_invalid",
        )
    return value


def _add_groups(text: str, event: str, groups: list[Any]) -> str:
    for group in groups:
        text = _listed(text, HOOKS, event, group)
    return text


def _listed(text: str, owner: str, member: str, item: Any) -> str:
    """`text` with `item` at the end of the list `member` of the object `owner`; both are made where
    they are missing."""
    if parse(text).member(owner) is None:
        text = add_member(text, parse(text), owner, {})
    there = _at(text, owner).member(member)
    if there is None:
        return add_member(text, _at(text, owner), member, [item])
    return add_item(text, there, item)


def _without(text: str, concerned: Callable[[str], bool], *, keep_empty: bool) -> str:
    """Without our entries of the events that are `concerned`, and what they leave empty; with
    `keep_empty` an event's list stays."""
    # One at a time: each removal moves the positions of all that follows.
    while (ours := _first_ours(text, concerned)) is not None:
        event, place, inner = ours
        groups = _at(text, HOOKS, event)
        entries = groups.parts[place][2].member(HOOKS)
        if entries is not None and len(entries.parts) > 1:
            text = remove_part(text, entries, inner)
        elif len(groups.parts) > 1 or keep_empty:
            text = remove_part(text, groups, place)
        else:
            hooks = _at(text, HOOKS)
            index = max(number for number, part in enumerate(hooks.parts) if part[0] == event)
            text = remove_part(text, hooks, index)
    return text


def _first_ours(text: str, concerned: Callable[[str], bool]) -> tuple[str, int, int] | None:
    """(event, index of the group, index of the entry in it) of the first entry of ours."""
    hooks = load(text).get(HOOKS)
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for place, group in enumerate(
            groups if isinstance(groups, list) and concerned(event) else ()
        ):
            for inner, entry in enumerate(group[HOOKS] if _holds_ours(group) else ()):
                if names_vendored(entry):
                    return event, place, inner
    return None


def _at(text: str, *keys: str) -> Node:
    node = parse(text)
    for key in keys:
        member = node.member(key)
        if member is None:
            raise KeyError(key)
        node = member
    return node


def _drop(text: str, key: str) -> str:
    root = parse(text)
    index = max(number for number, part in enumerate(root.parts) if part[0] == key)
    return remove_part(text, root, index)


def _value(text: str, node: Node) -> Any:
    return json.loads(text[node.start : node.end])
