"""Credentials in text that is kept: told by their form, or as the value of a variable whose name
says what it holds."""

import re
from collections.abc import Collection, Mapping

STRIPPED = "[secret]"
_LEAST = 8
"""Characters of a variable's value: a shorter one would be found in ordinary words."""
_SAYS = r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)"
_NAMES = re.compile(rf"{_SAYS}\Z|(?:_|\A){_SAYS}_", re.IGNORECASE)
_CUSTOM = "ANTHROPIC_CUSTOM_HEADERS"
"""Lines `Name: value`; every value counts as secret."""
_FORMS = (
    r"sk-[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"glpat-[\w-]{20,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"AIza[\w-]{35}",
    r"A(?:KIA|SIA)[0-9A-Z]{16}",
    r"ABSK[\w+/=]{20,}",
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
    re.compile(rf"(\b[A-Z0-9_]*{_SAYS}=['\"]?)[\w.+/=-]{{8,}}"),
    # Behind it a name may go on with what is no secret, e.g. KEY_NAME: long values only.
    re.compile(rf"(\b(?:[A-Z0-9_]*_)?{_SAYS}_[A-Z0-9_]*=['\"]?)[\w.+/=-]{{20,}}"),
    re.compile(rf"(\b{_CUSTOM}=\$?)(?:'[^']+'|\"[^\"]+\"|[^\s'\"$]\S*)"),
    re.compile(
        r"(?i)(\b\w*(?:api_?key|access_?token|auth_?token|secret_?key|client_?secret|password)"
        r"['\"]?\s*[=:]\s*['\"])[^\s'\"$]{8,}(?=['\"])"
    ),
)


def secret_values(environment: Mapping[str, str]) -> frozenset[str]:
    """Values of the variables whose names say that they are secret."""
    values = [value for name, value in environment.items() if _NAMES.search(name)]
    for line in environment.get(_CUSTOM, "").splitlines():
        value = line.partition(":")[2].strip()
        values += [value, value.rpartition(" ")[2]]  # also without its scheme
    return frozenset(value for value in values if len(value) >= _LEAST)


def without_credentials(text: str, known: Collection[str] = ()) -> str:
    """`text` with every credential replaced; `known`: values that are ones whatever their form."""
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, STRIPPED)
    text = _WHOLE.sub(STRIPPED, _BLOCK.sub(STRIPPED, text))
    for pattern in _BEHIND:
        text = pattern.sub(rf"\g<1>{STRIPPED}", text)
    return text
