"""What program text in a command line may do: run the entry, use the harness's internals, write
what is protected."""

from __future__ import annotations

from .denials import persons_verb, training_outside, verb_named
from .language_programs import may_write
from .path_rules import Denial
from .training import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .path_rules import PathRules
    from .training import TrainingEntry

_CHANGES = (
    r"(?:write|unlink|remove|rename|replace|rmtree|truncate|copy|move|link|save|dump"
    r"|to_|touch|chmod|chown|delete|system"
    r"|popen|run|call|rm)\w*\s*(?:\(|!|\s)[^;\n]{0,200}"
)
"""A call, or a command in another language, that changes what it names, up to that name."""
_BOUND = (
    r"(?:unlink|remove|rename|rmtree|truncate|chmod|copy\w*|move|to_\w+|save\w*)\s*\([^)]*NAME",
    r"open\s*\(\s*NAME\s*,\s*(?:mode\s*=\s*)?[\"'][rbt]*[wax+]",
    r"NAME\s*\.\s*(?:write|unlink|touch|rename"
    r"|replace|chmod|open\(\s*[\"'][rbt]*[wax+])",
)
"""The same with a variable NAME that holds the path."""
_INTERNALS = r"(?:from|import)\s+harness(?!\.run_logger)\b|\bharness\.(?!run_logger)[a-z_]+\b"


def code_denial(
    code: str, judge: PathRules, entry: TrainingEntry, cwds: tuple[str, ...]
) -> Denial | None:
    """Why `code` may not run in one of `cwds`; None when nothing in it speaks against it."""
    if entry.in_code(code):
        return training_outside(judge.snapshot, ["<program text>"])
    verb = _verb_run(code, judge)
    if verb:
        return persons_verb(judge.snapshot, verb)
    if uses_internals(code):
        return Denial(
            "harness_internals",
            "The program text uses the harness's own modules; only harness.run_logger is for"
            " agents.",
            "Use the harness's tools, or its command.",
        )
    experiments = judge.snapshot["experiments"]
    named = judge.names(code.replace(experiments, "")) or (
        experiments if experiments in code else None
    )
    if named is not None and (named != experiments or may_write(code)):
        return Denial(
            "code_names_protected",
            f"The program text names {named}, which is protected, and what it does with it cannot"
            " be told.",
            "Read it with the Read tool or `cat`; write your own files with Write or Edit.",
            named,
        )
    frozen = next(
        (name for name in map(judge.shown, judge.frozen) if name in code and _changes(code, name)),
        None,
    )
    if frozen is not None:
        return Denial(
            "frozen_by_plan",
            f"The program text names {frozen}, which is frozen by the approved plan, and may"
            " change it.",
            "Read it in a program of its own, and write derived data to another file.",
            frozen,
        )
    where = next((cwd for cwd in cwds if judge.write(".", cwd)), None)
    if named is None and where is not None and may_write(code):
        return Denial(
            "code_names_protected",
            f"The program text may write, and would run in {judge.shown(where)}, which is"
            " protected.",
            "Run it from the project's root and write elsewhere.",
            where,
        )
    return None


def _verb_run(code: str, judge: PathRules) -> str | None:
    """The person's verb that program text names, when it runs other programs."""
    if not any(name in code for name in judge.snapshot["harness"]):
        return None
    import re

    return verb_named(code, judge.snapshot) if re.search(RUNNING, code) else None


def _changes(code: str, name: str) -> bool:
    """Whether `code` changes the file `name`: it stands in a call that writes, or is opened or
    bound for writing."""
    import re

    path = re.escape(name)
    forms = (
        rf"{_CHANGES}{path}",
        rf"{path}[\"']\s*,\s*(?:mode\s*=\s*)?[\"'][rbt]*[wax+]",
        rf"{path}[\"']\s*\)\s*\.\s*(?:write|unlink|touch|rename"
        r"|replace|chmod|open\(\s*[\"'][rbt]*[wax+])",
        rf">\s*[\"']?[^\s\"']*{path}",
    )
    if any(re.search(form, code) for form in forms):
        return True
    bound = re.search(rf"(\w+)\s*=\s*[\w.(]*[\"'][^\"'\n]*{path}", code)
    return bound is not None and any(
        re.search(form.replace("NAME", rf"\b{bound[1]}\b"), code) for form in _BOUND
    )


def uses_internals(code: str) -> bool:
    """Whether it imports the harness, but for what is meant for training code."""
    if "harness" not in code:
        return False
    import re

    return bool(re.search(_INTERNALS, code))
