"""Secrets in text: what detect-secrets finds, and forms of keys that it does not know.

Nothing is sent anywhere: its verification, which asks the services, is never called.
"""

import base64
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harness.domain.late import later
from harness.errors import FROM, MissingExtraError

if TYPE_CHECKING:
    from detect_secrets.core.plugins import util
    from detect_secrets.filters import heuristic
else:
    util = later("detect_secrets.core.plugins.util")
    heuristic = later("detect_secrets.filters.heuristic")

SECRET = "[SECRET]"
"""What stands in its place."""
_Q = r"\\?[\"']?"
_V = r"[^\s'\"$<{][^\s'\"]{3,}"
_NUMBER = r"\d+(?![^\s'\"])"
_S = r"(?:\s|\\[nrt])+"
"""Between words, also in a text that is quoted."""
_BLOCK = "private key"
_PEM = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_FORMS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    (_BLOCK, "-----begin", _PEM),
    ("anthropic key", "sk-ant-", re.compile(r"sk-ant-[\w-]{16,}")),
    ("openai key", "sk-", re.compile(r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}")),
    ("hugging face token", "hf_", re.compile(r"\bhf_[A-Za-z0-9]{20,}")),
    ("google key", "aiza", re.compile(r"\bAIza[\w-]{35}")),
    (
        "github token",
        "github_pat_ ghp_ gho_ ghu_ ghs_ ghr_",
        re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"),
    ),
    ("json web token", "eyj", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?")),
    ("bearer token", "bearer", re.compile(r"(?i)(?<=\bbearer )[\w.~+/-]{16,}=*")),
    (
        "gitlab token",
        "glpat- glptt- glrt- gldt- glcbt- glft- glimt- glsoat- glagent-",
        re.compile(r"\bgl(?:pat|ptt|rt|dt|cbt|ft|imt|soat|agent)-[\w-]{20,}"),
    ),
    ("npm token", "npm_", re.compile(r"\bnpm_[A-Za-z0-9]{30,}")),
    ("digitalocean token", "_v1_", re.compile(r"\bdo[opr]_v1_[a-f0-9]{40,}")),
    ("google token", "ya29.", re.compile(r"\bya29\.[\w-]{20,}")),
    ("vault token", "hvb. hvs. hvr.", re.compile(r"\bhv[bsr]\.(?=[\w-]*\d)[\w-]{24,}")),
    ("telegram token", ":aa", re.compile(r"\b\d{8,10}:AA[\w-]{32,}")),
    ("wandb key", "wandb", re.compile(r"(?<=\bwandb login )[0-9a-f]{40,}")),
    ("signature in a url", "sig=", re.compile(r"(?<=[?&]sig=)[\w%+/-]{20,}")),
    ("password in a url", "://", re.compile(r"(?<=://)[^\s/:@\"'<>]*:[^\s/:@\"'<>]+(?=@)")),
    (
        "password of curl",
        "curl",
        # One command, whose URL may hold an &; a number is more often a user's group.
        re.compile(
            r"\bcurl\b(?:[^\n;|&]|&(?![&\s])){0,300}?\s(?:-u|--user)[ =]?"
            rf"{_Q}[^\s:'\"$]+:(?!{_NUMBER})({_V})"
        ),
    ),
    (
        "password of netrc",
        "login",
        re.compile(
            rf"(?m)(?:\bmachine{_S}\S{{1,200}}?|^\s*default){_S}login{_S}"
            rf"(?!(?:and|or|with)\b)\S{{1,100}}?{_S}password{_S}(\S{{4,}})"
        ),
    ),
    ("cookie", "cookie", re.compile(rf"(?i)\bcookie{_Q}:\s*{_Q}([\w.-]+=[^\n\"'\\]{{8,}})")),
)
"""(kind, what of it stands in the text in small letters, form). A group is the secret, where there
is one."""
_KNOWN = tuple((kind, tuple(told.split(" ")), form) for kind, told, form in _FORMS)
"""Most texts hold none: to look for a few letters first is ten times as fast."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_BASIC = re.compile(r"(?i)\bbasic\s+([A-Za-z0-9+/]{8,}={0,2})")
_WORD = (
    r"(?:(?:api|access|account)[_-]?key|secret|token|passw(?:or)?d|passphrase|credential"
    r"|private[_-]?key)"
)
_ASSIGNED = re.compile(
    rf"(?i)(?<![\w-])([\w.-]*{_WORD}[\w-]*)"
    r"(\\?[\"']?\s*[=:]\s*\\?[\"']?)"
    r"([^\s\"'`,;\\(){}<>]{6,})"
)
_NAMED = re.compile(rf"(?i)(?:.*[_-])?{_WORD}s?\Z")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_WORDS = ("key", "token", "secret", "pass", "pwd", "auth", "credential", "cloudant", "softlayer")
"""Without any of them no assignment is one of a secret."""
_QUOTED = re.compile(r"[\"'][\w+/=\\-]{16,}[\"']")
_ASSIGNING = ("CloudantDetector", "IbmCloudIamDetector", "IbmCosHmacDetector", "SoftlayerDetector")
"""Plugins that look for assignments alone, slowly."""
_BY_LINE = ("KeywordDetector", "Base64HighEntropyString", "HexHighEntropyString")
_PRIVATE_KEY = "PrivateKeyDetector"  # _PEM takes the whole block, not its first line
_SHORTEST = 6
_SHORTEST_KEY = 8
_URL_SAFE = str.maketrans("+/", "-_")
_EXTRA = f"`pip install 'experiment-harness[traces]'`, {FROM}"


def scanner_is_here() -> bool:
    return find_spec("detect_secrets") is not None


def secrets_in(text: str, *, scan: bool = True) -> Iterator[tuple[str, str]]:
    """(kind, value) of each; the same value may come twice. Without `scan` those alone whose forms
    stand here.

    Raises MissingExtraError for `scan` without detect-secrets: nothing is written unredacted.
    """
    scanner = _scanner() if scan else None
    lower = text.lower()
    for kind, told, pattern in _KNOWN:
        if not any(letters in lower for letters in told):
            continue
        for found in pattern.finditer(text):
            yield kind, found[found.lastindex or 0]
    yield from _in_base64(text, lower)
    assigns = _names_secrets(lower)
    for found in _ASSIGNED.finditer(text) if assigns else ():
        if _is_secret(found[1], found[2], found[3]):
            yield "assigned secret", found[3]
    if scanner is not None:
        yield from scanner.values(text, assigns=assigns)


def without_secrets(text: str) -> str:
    """`text` with a word in brackets for each whose form stands here."""
    values = {value for _, value in secrets_in(text, scan=False)}
    # The longest first: one secret may be a part of another.
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, SECRET)
    return text


def _in_base64(text: str, lower: str) -> Iterator[tuple[str, str]]:
    """Names with passwords in headers, and keys that stand encoded."""
    for found in _BASIC.finditer(text) if "basic" in lower else ():
        if b":" in _decoded(found[1]):
            yield "password in a header", found[1]
    for found in _BASE64.finditer(text):
        inner = _decoded(found[0])
        if inner.isascii() and any(form.search(inner.decode()) for _, _, form in _KNOWN):
            yield "key in base64", found[0]


def _decoded(text: str) -> bytes:
    """Empty for what is no base64."""
    text = text.rstrip("=")
    try:
        return base64.urlsafe_b64decode(text.translate(_URL_SAFE) + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def _names_secrets(lower: str) -> bool:
    return any(word in lower for word in _WORDS)


def is_secret_name(name: str, value: str) -> bool:
    """Whether a field called `name` with this value is a secret."""
    return len(value) >= 8 and _NAMED.match(name) is not None and not re.search(r"\s", value)


def _is_secret(name: str, between: str, value: str) -> bool:
    if len(value) < _SHORTEST_KEY and "pass" not in name.lower():
        return False
    if value[0] in "$[%<" or value.isdigit() or "://" in value:
        return False
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return mixed or (between == "=" and _CAPITALS.match(name) is not None)


class _Scanner:
    """The plugins of detect-secrets, asked directly: its `scan_line` is twenty times as slow, obeys
    comments that allow a secret, and takes each word of a text for one."""

    def __init__(self) -> None:
        try:
            kinds: Any = util.get_mapping_from_secret_type_to_class().values()
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "Secrets are found by detect-secrets, which is not here.",
                hint=f"Install it: {_EXTRA}.",
            ) from error
        plugins = {kind.__name__: kind() for kind in kinds}
        plugins.pop(_PRIVATE_KEY, None)
        self._by_line = [plugins.pop(name) for name in _BY_LINE]
        self._assigning = [plugins.pop(name) for name in _ASSIGNING]
        self._whole = list(plugins.values())
        self._no_secret = (
            heuristic.is_potential_uuid,
            heuristic.is_sequential_string,
            heuristic.is_templated_secret,
            heuristic.is_prefixed_with_dollar_sign,
            heuristic.is_not_alphanumeric_string,
        )

    def values(self, text: str, *, assigns: bool) -> Iterator[tuple[str, str]]:
        for plugin in (*self._whole, *(self._assigning if assigns else ())):
            for value in plugin.analyze_string(text):
                # A name of 44 letters is no key of IBM's.
                if len(value) >= _SHORTEST and any(c.isdigit() for c in value):
                    yield plugin.secret_type.lower(), value
        if not assigns and _QUOTED.search(text) is None:
            return
        for line in text.split("\n"):
            if _names_secrets(line.lower()) or _QUOTED.search(line):
                yield from self._of_line(line)

    def _of_line(self, line: str) -> Iterator[tuple[str, str]]:
        for plugin in self._by_line:
            found: Any = plugin.analyze_line(filename="text", line=line, line_number=0)
            for secret in found:
                value = secret.secret_value
                if len(value) >= _SHORTEST and not any(no(value) for no in self._no_secret):
                    yield secret.type.lower(), value


@cache
def _scanner() -> _Scanner:
    return _Scanner()
