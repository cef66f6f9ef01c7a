"""Run a program of ours and write which modules it loaded and which it ran.

    python bench/_traced.py OUT harness WORDS ...     # as `python -m harness`
    python bench/_traced.py OUT PROGRAM WORDS ...     # a file, e.g. a hook's program

OUT is JSON: {"loaded": [module], "calls": [[caller, module]]}; who no module of ours called, has
the caller "". Only this process is traced, with its threads;
the processes that it starts are not. Standard library only: hooks run with `python3 -I -S`.
"""

import atexit
import json
import os
import runpy
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
OURS = tuple(os.path.join(ROOT, folder) + os.sep for folder in ("harness", "hooks"))
OUTSIDE = ""
_PID = os.getpid()
_named: dict = {}
_calls: set = set()


def module_of(code):
    """The module whose file the code object comes from, or OUTSIDE when it is not ours."""
    name = _named.get(code.co_filename)
    if name is None:
        path = os.path.realpath(code.co_filename)
        name = _named[code.co_filename] = dotted(path) if path.startswith(OURS) else OUTSIDE
    return name


def dotted(path):
    name = os.path.splitext(os.path.relpath(path, ROOT))[0].replace(os.sep, ".")
    return name.removesuffix(".__init__")


def is_importing(frame):
    """Whether a module of ours is being imported: what is called then builds tables and classes."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and module_of(code):
            return frame.f_globals["__name__"] != "__main__"
        frame = frame.f_back
    return False


def caller_of(frame):
    """The nearest module of ours above the call; OUTSIDE where there is none."""
    above = frame.f_back
    while above is not None:
        if name := module_of(above.f_code):
            return name
        above = above.f_back
    return OUTSIDE


def profile(frame, event, _argument):
    if event != "call":
        return
    code = frame.f_code
    name = module_of(code)
    if not name or code.co_name == "<module>":
        return
    call = (caller_of(frame), name)
    # The walk up the whole stack is slow, so it is done only until a call is known.
    if call not in _calls and not is_importing(frame):
        _calls.add(call)


def write(path):
    if os.getpid() != _PID:  # a fork of the traced process is a child like any other
        return
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    real = [os.path.realpath(file) for file in files if file]
    loaded = {dotted(file) for file in real if file.startswith(OURS)}
    with open(path, "w") as stream:  # noqa: PTH123 - as a hook: without pathlib
        json.dump({"loaded": sorted(loaded), "calls": sorted(_calls)}, stream)


def leave(path, end):
    """os._exit, which hooks end with, skips what is registered at exit."""

    def exit_now(code):
        write(path)
        end(code)

    return exit_now


out, program, *words = sys.argv[1:]
atexit.register(write, out)
os._exit = leave(out, os._exit)
sys.argv = [program, *words]
threading.setprofile(profile)
sys.setprofile(profile)
if program == "harness":
    runpy.run_module("harness", run_name="__main__", alter_sys=True)
else:
    runpy.run_path(program, run_name="__main__")
