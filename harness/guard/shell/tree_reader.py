"""Reads command lines with tree-sitter's grammar of bash, into the values of the policy's own small
reader.

It sees through what that one calls unreadable: case statements, nested expansions, arrays,
functions with their arguments, text that is printed into a shell. Like the other it runs nothing,
lists inner commands beside outer ones, and says in `problem` what it could not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from harness.errors import BASE, MissingExtraError
from harness.guard.policy.arguments import table
from harness.guard.policy.shell_script import (
    DYNAMIC,
    TEXT,
    Command,
    Redirection,
    ShellScript,
    UnreadableScript,
    Word,
    WordPart,
)
from harness.guard.shell.tree_nodes import (
    WORDS,
    after_reserved,
    functions,
    heredoc,
    is_quoted,
    last_command,
    operator,
    problems,
    swallowed,
    word_nodes,
)
from harness.guard.shell.tree_words import (
    ASSIGNMENT,
    DEEPEST,
    NESTED,
    Words,
    assigned_name,
    echoed,
    guessed_name,
    nested,
    text_of,
)

try:
    import tree_sitter
    import tree_sitter_bash
except ImportError as error:
    _MISSING: ImportError | None = error
else:
    _MISSING = None

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 20_000
MOST_PIPES = 1_000
"""The parser's time and memory grow with the square of some texts' length; beyond these it is not
asked."""
_MOST_GUESSES = 2
_SIMPLE = table(
    "command declaration_command unset_command variable_assignment variable_assignments"
    " test_command"
)
_BLOCKS = table(
    "program list subshell compound_statement if_statement elif_clause else_clause while_statement"
    " do_group case_statement case_item negated_command c_style_for_statement command_substitution"
    " process_substitution ERROR"
)
_EXPRESSIONS = WORDS | table(
    "binary_expression unary_expression postfix_expression ternary_expression"
    " parenthesized_expression test_operator array subscript"
)
_PREFIXED = re.compile(
    r"(?<![^\s;&|({`])(?:(?:!|time(?:\s+-p)?|coproc(?:\s+\w+)?)\s+)+"
    r"(?=(?:case|for|select|while|until|if)\s|[{(]|\[\[)"
)
"""What the grammar does not know in front of a compound command; such a text is read once more
without it."""
_RUNS_ITS_INPUT = re.compile(r"(?:ba|da|z|k|a|fi|rba)?sh|(?:i?python|pypy)[\d.]*")
_BACKTICKS = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)


def read_tree(text: str) -> ShellScript:
    """Read a command line or a whole script; what cannot be read is in `problem`.

    Raises MissingExtraError when tree-sitter or its grammar is not installed as this version needs
    it.
    """
    parser = _parser()
    reader = _TreeReader(parser)
    try:
        reader.read(text)
    except UnreadableScript as error:
        reader.problems.append(str(error))
    return ShellScript(
        tuple(reader.commands), reader.all_loops(), reader.problems[0] if reader.problems else ""
    )


@cache
def _parser() -> tree_sitter.Parser:
    hint = f"Install the harness with all its dependencies: {BASE}."
    if _MISSING is not None:
        raise MissingExtraError(
            f"The reader of shell commands is not installed: {_MISSING}.", hint=hint
        )
    try:
        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    except (TypeError, ValueError) as error:
        raise MissingExtraError(
            f"tree-sitter and tree-sitter-bash do not fit: {error}.", hint=hint
        ) from error


class _TreeReader:
    def __init__(self, parser: tree_sitter.Parser) -> None:
        self.commands: list[Command] = []
        self.loops: list[tuple[str, tuple[Word, ...]]] = []
        self._guesses: list[tuple[str, Word]] = []
        """Elements of arrays, arguments of functions and guessed values of loops, each under its
        guessed name."""
        self._guessed_loops: set[str] = set()
        self.problems: list[str] = []
        self._parser = parser
        self._functions: set[str] = set()
        self._function = ""
        self._redirects: dict[int, list[Node]] = {}
        """Command -> redirections that stand after the list that it ends."""
        self._depth = 0

    def read(self, text: str) -> None:
        """A whole text: the command line, or what stands between backticks."""
        if len(text) > LONGEST or text.count("|") > MOST_PIPES:
            raise UnreadableScript(
                f"it is longer than {LONGEST} characters or has more than {MOST_PIPES} pipes"
            )
        if "\0" in text:
            raise UnreadableScript("it has a NUL character")
        versions = dict.fromkeys(
            (text, _PREFIXED.sub(lambda match: " " * len(match.group()), text))
        )
        for version in versions:
            root = self._parser.parse(version.encode("utf-8", "surrogatepass")).root_node
            found = problems(root)
            self._functions |= functions(root)
            self._statement(root)
        self.problems += found

    def all_loops(self) -> tuple[tuple[str, tuple[Word, ...]], ...]:
        """The loops with their values, and the guesses in the same form: literal ones first, for
        others are made of them, and a value that is not known when it is read stays unknown."""
        guesses = [
            (name, (word,))
            for name, word in self._guesses
            if all(part.kind != DYNAMIC for part in word.parts)
        ]
        literal = [item for item in guesses if item[1][0].plain is not None]
        return (*literal, *self.loops, *(item for item in guesses if item not in literal))

    def _statement(self, node: Node, fed: str | None = None) -> None:
        """Any statement; `fed` is the text that is printed into it, when it is known."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        kind = node.type
        if kind in _SIMPLE:
            self._simple(node, fed)
        elif kind == "redirected_statement":
            self._redirected(node, fed)
        elif kind == "pipeline":
            self._pipeline(node.named_children, fed)
        elif kind == "for_statement":
            self._loop(node)
        elif kind == "function_definition":
            self._definition(node)
        elif kind in _BLOCKS:
            self._block(node)
        elif kind in _EXPRESSIONS:
            self._substitutions(node)
        elif node.is_named and kind != "comment":
            self.problems.append(f"it has a {kind.replace('_', ' ')}")
            self._block(node)
        self._depth -= 1

    def _block(self, node: Node) -> None:
        if node.type == "command_substitution" and text_of(node).startswith("`"):
            self.read(re.sub(r"\\([`\\$])", r"\1", text_of(node)[1:-1]))
            return
        for child in node.named_children:
            if child.type == "file_redirect":
                self._command((), [child], None)
            else:
                self._statement(child)

    def _substitutions(self, node: Node) -> None:
        for inner in [node] if node.type in NESTED else nested(node):
            self._statement(inner)

    def _definition(self, node: Node) -> None:
        before, body = self._function, node.child_by_field_name("body")
        name = node.child_by_field_name("name")
        self._function = text_of(name) if name is not None else ""
        if body is not None:
            self._statement(body)
        for child in node.named_children:
            if child.type == "file_redirect":
                self._command((), [child], None)
        self._function = before

    def _loop(self, node: Node) -> None:
        values = node.children_by_field_name("value")
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        for value in values:
            self._substitutions(value)
        variable = text_of(name) if name is not None else ""
        if values:
            self.loops.append((variable, Words(self._function).words(values)))
        for guess in range(1, _MOST_GUESSES + 1):
            words = self._words(guess)
            taken = words.words(values)
            if words.guessed:
                self._guesses += [(guessed_name(variable), word) for word in taken]
                self._guessed_loops.add(variable)
        if body is not None:
            self._statement(body)

    def _pipeline(self, nodes: Sequence[Node], fed: str | None) -> None:
        for node in nodes:
            self._statement(node, fed)
            fed = self._printed(node)

    def _printed(self, node: Node) -> str | None:
        """What a command prints, when its text says so: `echo x`, `cat <<END`."""
        if node.type == "command":
            words = Words(self._function).words(word_nodes(node))
            herestrings = [child for child in node.children if child.type == "herestring_redirect"]
            if herestrings and [word.plain for word in words] == ["cat"]:
                return self._herestring(herestrings[0])
            return echoed(words)
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            heredocs = [child for child in node.children if child.type == "heredoc_redirect"]
            if body is not None and text_of(body).strip() == "cat" and heredocs:
                return heredoc(heredocs[0])
        return None

    def _redirected(self, node: Node, fed: str | None) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        last = last_command(body) if body is not None else None
        if last is not None and last.type in _SIMPLE:
            self._redirects[last.id] = redirects
            redirects = []
        if body is not None:
            self._statement(body, fed)
        self._command((), redirects, None)
        for child in node.children:
            if child.type == "heredoc_redirect":
                self._after(child, self._printed(node))

    def _after(self, redirect: Node, printed: str | None) -> None:
        """What stands on a heredoc's first line after it, and what its body runs."""
        for child in redirect.children:
            if child.type == "pipeline":
                self._pipeline(child.named_children, printed)
            elif child.type == "heredoc_body":
                self._substitutions(child)
                if not is_quoted(redirect):
                    for inner in _BACKTICKS.findall(heredoc(redirect)):
                        self.read(re.sub(r"\\([`\\$])", r"\1", inner))
        for right in redirect.children_by_field_name("right"):
            self._statement(right)

    def _simple(self, node: Node, fed: str | None) -> None:
        """A command without others in it."""
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        redirects += self._redirects.pop(node.id, [])
        nodes = word_nodes(node)
        for child in node.named_children if node.type == "command" else []:
            if child not in nodes and not child.type.endswith("_redirect"):
                self._statement(child)  # `! ! (...)`: no other command has a statement for a child
        for child in nodes:
            self._substitutions(child)
            if child.type == ASSIGNMENT:
                elements = [item for item in child.named_children if item.type == "array"]
                words = Words(self._function).words(
                    item for array in elements for item in array.named_children
                )
                self._guesses += [(guessed_name(assigned_name(child)), word) for word in words]
        before = (Word((WordPart(TEXT, "test"),), "test"),) if node.type == "test_command" else ()
        self._command(nodes, redirects, fed, before)

    def _command(
        self,
        nodes: Sequence[Node],
        redirects: list[Node],
        fed: str | None,
        before: tuple[Word, ...] = (),
    ) -> None:
        """List a command once as it stands, and again for each guess that its words allow."""
        for child in redirects:
            if child.type != "heredoc_redirect":
                self._substitutions(child)
        named = [*nodes, *(item for child in redirects for item in swallowed(child))]
        inputs = tuple(text for child in redirects if (text := self._input(child)) is not None)
        made: list[Command] = []
        for guess in range(_MOST_GUESSES + 1):
            words = self._words(guess)
            given = after_reserved((*before, *words.words(named)))
            targets = tuple(
                Redirection(operator(child), target)
                for child in redirects
                for target in words.words(child.children_by_field_name("destination")[:1])
            )
            command = Command(given, targets, inputs)
            if (
                (given or targets or inputs)
                and (words.guessed or not guess)
                and command not in made
            ):
                made.append(command)
        for command in made:
            self._add(command, fed)

    def _add(self, command: Command, fed: str | None) -> None:
        words = command.words
        names = [os.path.basename(word.plain or "") for word in words]
        if fed is not None and "xargs" in names:
            more = tuple(Word((WordPart(TEXT, text),), text) for text in fed.split())
            self.commands.append(Command((*words, *more), command.redirections, command.inputs))
        elif fed is not None and any(_RUNS_ITS_INPUT.fullmatch(name) for name in names):
            command = Command(words, command.redirections, command.inputs or (fed,))
        self.commands.append(command)
        for place, word in enumerate(words):
            if (
                word.raw == "{"
            ):  # the grammar takes `! { ...` and `coproc NAME { ...` for a command's arguments
                self.commands.append(Command(words[place + 1 :], (), ()))
        if names and names[0] in self._functions:
            called = words[1:]
            self._guesses += [
                (guessed_name(names[0], str(place + 1)), word) for place, word in enumerate(called)
            ]
            self._guesses += [(guessed_name(names[0], "@"), word) for word in called]

    def _words(self, guess: int) -> Words:
        return Words(self._function, guess, self._guessed_loops)

    def _input(self, redirect: Node) -> str | None:
        if redirect.type == "heredoc_redirect":
            return heredoc(redirect)
        return self._herestring(redirect) if redirect.type == "herestring_redirect" else None

    def _herestring(self, redirect: Node) -> str:
        word = (*Words(self._function).words(redirect.named_children), Word((), ""))[0]
        return word.plain if word.plain is not None else word.raw
