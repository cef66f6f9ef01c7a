"""What every command of an agent gets of the harness's own environment, and which Python runs
it."""

from collections.abc import Mapping, Sequence

THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
PASSED_ON = (
    *THREADS,
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("NVIDIA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG"),
)
"""Facts of the machine. Everything else, keys above all, stays with the harness."""
OURS = ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "USER", "LOGNAME")
"""What a command of the harness itself needs beside them: where the state is, and whose."""
_PYTHONS = ("python", "python3")


def passed_on(inherited: Mapping[str, str]) -> dict[str, str]:
    """The allowed part of `inherited`."""
    return {name: inherited[name] for name in PASSED_ON if name in inherited}


def for_ourselves(inherited: Mapping[str, str]) -> dict[str, str]:
    """The part of `inherited` that a process of ours gets which is no agent's; no key is in it."""
    return passed_on(inherited) | {name: inherited[name] for name in OURS if name in inherited}


def with_interpreter(argv: Sequence[str], interpreter: str) -> list[str]:
    """`argv` with a first word `python` or `python3` replaced by the interpreter's path."""
    return [interpreter, *argv[1:]] if argv and argv[0] in _PYTHONS else list(argv)
