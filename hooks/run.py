"""Every hook of the harness and its status line: `run.py EVENT`, Claude Code's payload on stdin.

Exit 0: no objection. Exit 2: blocked, with the reason on stderr. Claude Code starts this file with
`python3 -I -S`, from any folder. The library is the folder lib/ beside it where the harness was
installed into a project, else the repository that this file stands in. Nothing else is imported
from there.
"""

import os
import sys

# The exit status of a hook that cannot run, fixed here before anything is imported: the library
# may be what is missing. Guards fail closed (2), reminders and observers fail open (0).
ON_FAILURE = {
    "PreToolUse": 2,
    "PreSkillShellCommand": 2,
    "ConfigChange": 2,
    "PostToolUse": 0,
    "PostToolBatch": 0,
    "Stop": 0,
    "SubagentStart": 0,
    "SubagentStop": 0,
    "SessionStart": 0,
    "SessionEnd": 0,
    "StatusLine": 0,
}
# Events of older versions that decided nothing: a session that was open during the update still
# calls them.
FORMER = ("PreCompact",)
# No event, an unknown one or a second argument: it may have been a guard's entry, so it blocks.
EVENT = sys.argv[1] if len(sys.argv) == 2 else "unknown"
STATUS = ON_FAILURE.get(EVENT, 2)


def failed(kind, error, _trace):
    """Nothing could be decided: the library is missing or damaged, or the event is unknown."""
    text = (
        f"harness: the {EVENT} hook cannot run ({kind.__name__}: {error}). This is no rule of the"
        " project: the hook's own files or its entry in the settings are missing or damaged. A"
        " person fixes it in their own terminal: `harness init` installs the hooks again, `harness"
        " init --remove` takes them out; `harness doctor` names what is wrong.\n"
    )
    os.write(2, text.encode("utf-8", "backslashreplace"))
    os._exit(STATUS)


class Filter:
    """Loads the text filter from its own file: a folder or a compiled module of its name would come
    before it."""

    path = ""

    @classmethod
    def find_spec(cls, name, _path=None, _target=None):
        if name != "harness.domain.plain_text":
            return None
        from importlib.machinery import ModuleSpec, SourceFileLoader

        return ModuleSpec(name, SourceFileLoader(name, cls.path), origin=cls.path)


def start():
    """Let `harness` be the library and nothing more; keep compiled modules out of the project."""
    here = os.path.dirname(os.path.realpath(__file__))
    vendored = os.path.join(here, "lib")
    library = os.path.join(
        vendored if os.path.isdir(vendored) else os.path.dirname(here), "harness"
    )
    # Packages without a file: what stands at the top of these folders is no part of the library.
    for name, folders in (
        ("harness", []),
        ("harness.guard", [os.path.join(library, "guard")]),
        ("harness.domain", []),
    ):
        package = sys.modules[name] = type(sys)(name)
        package.__path__ = folders
    Filter.path = os.path.join(library, "domain", "plain_text.py")
    sys.meta_path.insert(0, Filter)
    given = os.environ.get("HARNESS_COMPILED", "")
    if os.path.isabs(given):  # inside `harness claude`: made outside, read-only here
        sys.pycache_prefix, sys.dont_write_bytecode = given, True
        return
    state = os.environ.get("XDG_STATE_HOME") or os.path.join("~", ".local", "state")
    cache = os.path.join(os.path.expanduser(state), "harness", "pycache")
    outside = os.path.isabs(cache)
    if outside and EVENT == "SessionStart":
        forget(cache)
    sys.pycache_prefix = cache if outside else None
    sys.dont_write_bytecode = not outside


def forget(cache):
    """Begin each session without compiled modules: somebody may have put their own among them."""
    import shutil

    if os.path.islink(cache):  # rmtree would leave the link, and what stands behind it
        os.unlink(cache)
    else:
        shutil.rmtree(cache, ignore_errors=True)


sys.excepthook = failed
if EVENT in FORMER:
    os._exit(0)
if EVENT not in ON_FAILURE:
    raise ValueError(f"expected one hook event as the argument, got {sys.argv[1:]!r}")
start()
from harness.guard.hooks.frame import main  # noqa: E402  it is where start() says

main(EVENT, __file__)
