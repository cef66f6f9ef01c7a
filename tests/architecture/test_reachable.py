"""Wired or deleted: what is public is used by something, and what is named stands in the table that
names it."""

import ast
import re
from collections import Counter
from functools import cache

from source_tree import ROOT, Module, modules

from harness.contract.roles import ROLES
from harness.driver.tools.table import PROGRAM_TOOLS, TOOLS
from harness.gates.findings import FINDINGS

API = ROOT / "docs" / "api.md"
CALLED_BY_OTHERS = {
    "list_commands",  # click
    "get_command",
    "format_commands",
    "resolve_command",
    "compute_loss",  # transformers.Trainer
    "tokenize_row",  # trl.experimental.orpo
    "concatenated_forward",
    "odds_ratio_loss",
    "recv_checkpoint",  # torchft
    "start_quorum",
    "perform_sync",
    "forward",  # torch.autograd.Function
    "backward",
}
"""Methods that a library calls by name."""
WRITTEN_WHOLE = ("harness/ledger/facts/", "harness/traces/tally.py")
"""Dataclasses whose fields are all written as JSON: what is not read today is still recorded."""
READ_BY_OTHERS = {
    "AlarmKind.meaning": "docs/detectors.md has it, which tests/detectors/test_watch.py holds",
    "FindingKind.meaning": "the table's own words, read by tests/gates/test_finding_codes.py",
}
"""Fields that nothing of ours reads: "Class.field" -> who does."""


@cache
def uses() -> Counter[str]:
    """How often each name is used anywhere in harness/, its templates, or as text that names an
    attribute."""
    found: Counter[str] = Counter()
    for module in modules():
        found += names_in(module.tree)
    for template in (ROOT / "templates").rglob("*.j2"):
        found.update(re.findall(r"[A-Za-z_]\w*", template.read_text("utf-8")))
    return found


def names_in(tree: ast.AST) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute):
            found[node.attr] += 1
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            dotted = re.fullmatch(r"[\w.]+:(\w+)", node.value)
            if dotted or node.value.isidentifier():
                found[dotted.group(1) if dotted else node.value] += 1
    return found


def definitions(module: Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in module.tree.body if isinstance(node, kinds)]
    for node in list(found):
        if isinstance(node, ast.ClassDef):
            found += [
                item
                for item in node.body
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
    return [node for node in found if not node.name.startswith("_") and not is_registered(node)]


def is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator such as `@group.command("list")` puts it into the table of verbs."""
    calls = [item.func for item in node.decorator_list if isinstance(item, ast.Call)]
    return any(
        isinstance(call, ast.Attribute)
        and call.attr == "command"
        and getattr(call.value, "id", "") != "click"
        for call in calls
    )


def test_what_is_public_is_used():
    documented = API.read_text("utf-8") if API.is_file() else ""
    idle = [
        f"{module.shown}:{node.lineno} {node.name}"
        for module in modules()
        for node in definitions(module)
        if uses()[node.name] <= names_in(node)[node.name]
        and node.name not in CALLED_BY_OTHERS
        and not (module.room == "training" and node.name.startswith("on_"))  # events of a trainer
        and f"`{node.name}" not in documented
    ]
    assert idle == []


@cache
def reads() -> frozenset[str]:
    """Names that some code reads as an attribute, or names in a text: a JSON key, a template."""
    names: set[str] = set()
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and str(node.value).isidentifier():
                names.add(str(node.value))
    for template in (ROOT / "templates").rglob("*.j2"):
        names.update(re.findall(r"[A-Za-z_]\w*", template.read_text("utf-8")))
    return frozenset(names)


def fields_of(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The fields of a dataclass or a NamedTuple. Those of a class that is written whole, e.g. with
    `asdict`, are read there: such a class is in WRITTEN_WHOLE."""
    decorators = {
        getattr(item.func if isinstance(item, ast.Call) else item, "id", "")
        for item in node.decorator_list
    }
    bases = {getattr(base, "id", "") for base in node.bases}
    if "dataclass" not in decorators and "NamedTuple" not in bases:
        return []
    return [item for item in node.body if isinstance(item, ast.AnnAssign)]


def test_every_field_is_read():
    dead = [
        f"{module.shown}:{field.lineno} {node.name}.{field.target.id}"
        for module in modules()
        if not module.shown.startswith(WRITTEN_WHOLE)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        for field in fields_of(node)
        if isinstance(field.target, ast.Name)
        and field.target.id not in reads()
        and f"{node.name}.{field.target.id}" not in READ_BY_OTHERS
    ]
    assert dead == []


def test_every_tool_of_the_table_is_offered_to_a_role_and_the_other_way_round():
    """By a step of the loop, or, of training programs, which are not of the loop, by `harness
    mcp`."""
    of_steps = {tool for role in ROLES if role.step for tool in role.mcp_tools}
    assert of_steps == set(TOOLS) - set(PROGRAM_TOOLS)
    assert {tool for role in ROLES if not role.step for tool in role.mcp_tools} == set(
        PROGRAM_TOOLS
    )


def test_every_finding_code_is_in_the_table():
    makers = finding_makers()
    used: dict[str, str] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.Call)
                and (name := getattr(node.func, "id", getattr(node.func, "attr", ""))) in makers
            ):
                for code in codes_of(node, makers[name]):
                    used[code] = f"{module.shown}:{node.lineno}"
    assert len(used) > 20, "the search found fewer codes than there are"
    assert {code: where for code, where in used.items() if code not in FINDINGS} == {}


def finding_makers() -> dict[str, int]:
    """Functions that make a Finding from a code that they are given -> the place of that
    parameter."""
    makers = {"Finding": 0}
    for module in modules():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            parameters = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            made = any(
                isinstance(leaf, ast.Name) and leaf.id == "Finding" for leaf in ast.walk(node)
            )
            if made and "code" in parameters:
                makers[node.name] = parameters.index("code") - (parameters[0] in ("self", "cls"))
    return makers


def codes_of(call: ast.Call, place: int) -> list[str]:
    given = [
        *call.args[place : place + 1],
        *(keyword.value for keyword in call.keywords if keyword.arg == "code"),
    ]
    leaves = [
        leaf for item in given if isinstance(item, ast.IfExp) for leaf in (item.body, item.orelse)
    ]
    return [
        item.value
        for item in (*given, *leaves)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
