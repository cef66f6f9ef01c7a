"""The MCP server of this project for `claude`: becomes `harness mcp --project ROOT`.

Claude Code starts this file with `python3 -I -S`, from any folder. The library is the folder lib/
beside it where the harness was installed into a project, else the repository that it stands in.
Nothing else is imported from there.
"""

import os
import sys

ON_FAILURE = 1


def failed(kind, error, _trace):
    """The library is missing or damaged."""
    text = (
        f"harness: the MCP server cannot be started ({kind.__name__}: {error}). This is no rule of"
        " the project: its own files are missing or damaged. A person fixes it in their own"
        " terminal: `harness init` installs the hooks again, `harness init --remove` takes them"
        " out; `harness doctor` names what is wrong.\n"
    )
    os.write(2, text.encode("utf-8", "backslashreplace"))
    os._exit(ON_FAILURE)


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
    state = os.environ.get("XDG_STATE_HOME") or os.path.join("~", ".local", "state")
    cache = os.path.join(os.path.expanduser(state), "harness", "pycache")
    sys.pycache_prefix = cache if os.path.isabs(cache) else None
    sys.dont_write_bytecode = sys.pycache_prefix is None


sys.excepthook = failed
start()
from harness.guard.hooks.tool_server import serve  # noqa: E402  it is where start() says

serve(__file__)
