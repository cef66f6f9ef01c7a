"""What program text in a command line may do: run the entry, use the harness's internals, write what is protected."""

from __future__ import annotations

from .denials import persons_verb, training_outside
from .judge import Denial
from .training import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .judge import Judge
    from .training import Entry

_WRITES = (
    r"open\s*\([^)]*,\s*(?:mode\s*=\s*)?[\"'][rbt]*[wax+]|write|unlink|remove|rename|replace|rmtree|shutil|system|subprocess|popen"
    r"|chmod|chown|truncate|symlink|link|touch|mkdir|rmdir|save|dump|to_csv|to_json|exec|eval|__import__|>"
)
_INTERNALS = r"(?:from|import)\s+harness(?!\.run_logger)\b|\bharness\.(?!run_logger)[a-z_]+\b"


def code_denial(code: str, judge: Judge, entry: Entry, cwds: tuple[str, ...]) -> Denial | None:
    """Why `code` may not run in one of `cwds`; None when nothing in it speaks against it."""
    if entry.in_code(code):
        return training_outside(judge.snapshot, ["<program text>"])
    verb = _verb_run(code, judge)
    if verb:
        return persons_verb(verb)
    if uses_internals(code):
        return Denial(
            "harness_internals",
            "The program text uses the harness's own modules; only harness.run_logger is for agents.",
            "Use the harness's tools, or its command.",
        )
    experiments = judge.snapshot["experiments"]
    named = judge.names(code.replace(experiments, "")) or (experiments if experiments in code else None)
    if named is not None and (named != experiments or may_write(code)):
        return Denial(
            "code_names_protected",
            f"The program text names {named}, which is protected, and what it does with it cannot be told.",
            "Read it with the Read tool or `cat`; write your own files with Write or Edit.",
            named,
        )
    where = next((cwd for cwd in cwds if judge.write(".", cwd)), None)
    if named is None and where is not None and may_write(code):
        return Denial(
            "code_names_protected",
            f"The program text may write, and it would run in {judge.shown(where)}, which is protected.",
            "Run it from the project's root and write elsewhere.",
            where,
        )
    return None


def _verb_run(code: str, judge: Judge) -> str | None:
    """The person's verb that program text names, when it runs other programs."""
    if not any(name in code for name in judge.snapshot["harness"]):
        return None
    import re

    from .launches import verb_named

    return verb_named(code, judge.snapshot) if re.search(RUNNING, code) else None


def may_write(code: str) -> bool:
    import re

    return bool(re.search(_WRITES, code, re.IGNORECASE))


def uses_internals(code: str) -> bool:
    """Whether it imports the harness, but for what is meant for training code."""
    if "harness" not in code:
        return False
    import re

    return bool(re.search(_INTERNALS, code))
