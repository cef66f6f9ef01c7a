"""What the nodes of a tree-sitter tree of bash mean, where the grammar says it in an unexpected
way."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.guard.policy.arguments import table
from harness.guard.policy.shell_script import Word
from harness.guard.shell.tree_words import ASSIGNMENT, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

WORDS = table(
    "word string raw_string ansi_c_string translated_string concatenation simple_expansion"
    " expansion number command_substitution process_substitution arithmetic_expansion"
    " brace_expression command_name extglob_pattern regex variable_name special_variable_name"
)
_RESERVED = table("if then else elif while until do ! { coproc fi done } esac")
_LOOSE = table("string translated_string heredoc_redirect heredoc_body")
"""Nodes whose children do not cover their text."""
_STDIN = b"-"
"""`python - <<END`: the grammar leaves it out, and nothing hangs on it."""


def word_nodes(node: Node) -> list[Node]:
    """The nodes of a command's words with its assignments, in order; of a test, all words that
    stand in it."""
    if node.type == "test_command":
        found, waiting = [], list(reversed(node.children))
        while waiting:
            child = waiting.pop()
            if child.type in WORDS:
                found.append(child)
            else:
                waiting += reversed(child.children)
        return found
    if node.type == ASSIGNMENT:
        return [node]
    return [
        child
        for child in node.children
        if child.type in WORDS or child.type == ASSIGNMENT or not child.is_named
    ]


def last_command(node: Node) -> Node:
    """The command to which a redirection at the end of `node` belongs: the grammar gives it to the
    whole list."""
    while node.type in ("list", "pipeline", "negated_command") and node.named_children:
        node = node.named_children[-1]
    return node


def after_reserved(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and words[0].raw in _RESERVED:
        words = words[1:]
    return words


def swallowed(redirect: Node) -> list[Node]:
    """Arguments of the command that the grammar counts to a redirection before them: `cat > out a
    b`."""
    return redirect.children_by_field_name("destination")[1:] + redirect.children_by_field_name(
        "argument"
    )


def operator(redirect: Node) -> str:
    return next((child.type for child in redirect.children if not child.is_named), "")


def is_quoted(heredoc: Node) -> bool:
    start = next(
        (text_of(child) for child in heredoc.children if child.type == "heredoc_start"), ""
    )
    return any(character in start for character in "'\"\\")


def heredoc(redirect: Node) -> str:
    """A heredoc's text, from the line after the one that announces it."""
    data, start = redirect.text or b"", redirect.start_byte
    body = next((child for child in redirect.children if child.type == "heredoc_body"), None)
    end = next((child for child in redirect.children if child.type == "heredoc_end"), None)
    if body is None:
        return ""
    before = [
        child.end_byte - start for child in redirect.children if child.end_byte <= body.start_byte
    ]
    first = data.find(b"\n", max(before, default=0)) + 1
    text = data[first : end.start_byte - start if end is not None else len(data)].decode(
        "utf-8", "replace"
    )
    text = re.sub(r"(?m)^\t+", "", text) if operator(redirect) == "<<-" else text
    return text.removesuffix("\n")


def functions(root: Node) -> set[str]:
    found, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        name = node.child_by_field_name("name") if node.type == "function_definition" else None
        found |= {text_of(name)} if name is not None else set()
    return found


def problems(root: Node) -> list[str]:
    """Where the grammar gave up, and text that no node covers."""
    data, waiting = root.text or b"", [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR" or node.is_missing:
            return [f"line {node.start_point[0] + 1} is not bash as the grammar knows it"]
        children = node.children
        edges = [(left.end_byte, right.start_byte) for left, right in pairwise(children)]
        for start, end in edges if node.type not in _LOOSE else []:
            gap = data[start - root.start_byte : end - root.start_byte]
            if gap.replace(b"\\\n", b"").strip() not in (b"", _STDIN) or gap == b"\\\n":
                return [f"line {node.start_point[0] + 1} holds text that the grammar leaves out"]
        waiting += children
    return []
