"""Credentials in text that is kept: told by their form, or as the value of a variable whose name
says what it holds."""

import re
from collections.abc import Collection, Mapping

STRIPPED = "[secret]"
_LEAST = 8
"""Characters of a variable's value: a shorter one would be found in ordinary words."""
_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\Z", re.IGNORECASE)
_FORMS = (
    r"sk-[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"glpat-[\w-]{20,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"AIza[\w-]{35}",
    r"A(?:KIA|SIA)[0-9A-Z]{16}",
    r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}",
)
_WHOLE = re.compile(rf"(?<![\w-])(?:{'|'.join(_FORMS)})")
_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
# What stays is the first group: the name, the scheme, the user.
_BEHIND = (
    re.compile(r"(?i)(\bbearer\s+)[\w.~+/=-]{12,}"),
    re.compile(r"(://[^/\s:@]+:)[^@\s/]+(?=@)"),
    re.compile(r"(\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)=['\"]?)[\w.+/=-]{8,}"),
    re.compile(
        r"(?i)(\b\w*(?:api_?key|access_?token|auth_?token|secret_?key|client_?secret|password)"
        r"['\"]?\s*[=:]\s*['\"])[^\s'\"$]{8,}(?=['\"])"
    ),
)


def secret_values(environment: Mapping[str, str]) -> frozenset[str]:
    """Values of the variables whose names say that they are secret."""
    return frozenset(
        value
        for name, value in environment.items()
        if _NAMES.search(name) and len(value) >= _LEAST
    )


def without_credentials(text: str, known: Collection[str] = ()) -> str:
    """`text` with every credential replaced; `known`: values that are ones whatever their form."""
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, STRIPPED)
    text = _WHOLE.sub(STRIPPED, _BLOCK.sub(STRIPPED, text))
    for pattern in _BEHIND:
        text = pattern.sub(rf"\g<1>{STRIPPED}", text)
    return text
