"""The `harness` command starts itself again when its environment could bend it.

A variable PYTHON* or LD_*, or a user's site folder, makes a Python run code that is not ours. Such
a start becomes `PYTHON -P -I -m harness` with an environment from a closed list.

What this cannot do: undo code that ran before it. A sitecustomize.py or a preloaded library has the
process before our first line, and may keep it. It helps a person whose shell sets such variables
for other work. Who types `LD_PRELOAD=... harness evaluate` owns the whole process anyway: so a
score of a session that is not isolated carries a qualifier, and `harness claude` has the judge
where the session sets no variable.
"""

import os
import sys
from collections.abc import Mapping

from harness.domain.commands import LEDGER_ACCESS
from harness.errors import ALONE, ConfigError
from harness.process import MACHINE, OURS, carried, harness_command

_BENDING = ("PYTHON", "LD_", "DYLD_", "GCONV_", "GLIBC_", "OPENSSL_", "LOCPATH", "NLSPATH")
_LOADER = _BENDING[1:]
_HARMLESS = {
    *("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING"),
    *("PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONFAULTHANDLER", "PYTHONNOUSERSITE"),
    "PYTHONSAFEPATH",
}
"""They change no code; a restart would cost time for nothing."""
_KEPT = {
    *MACHINE,
    *OURS,
    *LEDGER_ACCESS,
    *("PATH", "PWD", "SHELL", "TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
    *(
        "LANGUAGE",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "BROWSER",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "HOSTNAME",
    ),
    *(
        "VIRTUAL_ENV",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "DBUS_SESSION_BUS_ADDRESS",
    ),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "NODE_EXTRA_CA_CERTS"),
}
_KEPT_BEGINNINGS = (
    *("HARNESS_", "CLAUDE", "ANTHROPIC_", "TMUX", "TERM_", "LC_", "XDG_", "SSH_", "CONDA_"),
    *("CUDA_", "NVIDIA_", "OMP_", "MKL_", "HF_", "SLURM_", "AWS_", "GOOGLE_", "CLOUD_ML_"),
)


def start_clean() -> None:
    """Return where nothing bends this process; else become a clean one. Raises ConfigError when
    the harness itself lies in a user's site folder, which a clean start leaves out."""
    environment = os.environ
    user_site = _user_site()
    if not user_site and not bending(environment, isolated=bool(sys.flags.isolated)):
        return
    if user_site and os.path.realpath(__file__).startswith(os.path.realpath(user_site) + os.sep):
        raise ConfigError(
            f"The harness is installed in {user_site}, where every program of this user may put"
            " code that judges.",
            hint=f"Install it on its own: {ALONE}.",
            code="judge_in_user_site",
        )
    os.execve(sys.executable, harness_command(*sys.argv[1:]), cleaned(environment))


def bending(environment: Mapping[str, str], *, isolated: bool) -> list[str]:
    """The variables that would make this Python run other code; an isolated one ignores PYTHON*."""
    beginnings = _LOADER if isolated else _BENDING
    return sorted(
        name
        for name, value in environment.items()
        if value and name.startswith(beginnings) and name not in _HARMLESS
    )


def cleaned(environment: Mapping[str, str]) -> dict[str, str]:
    """What of a person's environment a clean start keeps."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    # PATH stays as the person has it: what judging uses is not looked for there.
    return {**kept, **carried(environment)}


def _user_site() -> str | None:
    """The user's site folder, where this Python looks into it."""
    site = sys.modules.get("site")
    folder = getattr(site, "USER_SITE", None) if site else None
    return folder if isinstance(folder, str) and folder in sys.path else None
