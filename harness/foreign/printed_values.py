"""Names and values in a printed line: "train loss 2.98", "lr=1e-3", "mem: 20.5GiB", "Acc: 91%"."""

import re
from collections.abc import Iterator
from functools import lru_cache

from harness.detectors.metric_names import MetricRole, role_of
from harness.foreign.log_rows import as_number
from harness.foreign.names import Kind, meaning, words

# A comma groups thousands. The look-ahead refuses "0,93" as a whole: a part of it would be wrong.
WHOLE = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?!\d|,\d)"
_NUMBER = rf"[-+]?(?:{WHOLE}\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
# Words with one blank between them: two blanks, a sign or a number end a name. A bracket after it
# may hold its unit.
_WORD = r"[^\W\d](?:[\w/@%#*+^-]|\.(?=\w)|'(?=s\b))*"
_PAIR = re.compile(
    rf"(?<![\w.])(?<!\d/)(?<!/s/)(?P<name>{_WORD}(?: {_WORD}){{0,5}})['\"]?"
    r"(?: ?\((?P<inner>[^()\d|]{1,24})\))?"
    r"(?P<sign>\s*[:=]+>?\s*|\s*->\s*|\s+)['\"]?"
    r"(?:tensor\(|np\.float\d+\(|tf\.Tensor\(|array\()?"
    rf"(?P<number>{_NUMBER})"
    rf"(?:\s*/\s*(?P<whole>{WHOLE})(?![.\w]))?"
    r"(?P<unit>(?:%|[^\W\d_](?:[\w/]*\w)?)?)"
    r"(?P<apart> (?:[KMGT]i?B|ms|us)\b|(?: (?:[\d.]+ )?[a-z]+/sec(?![\w/]|\s*[:=]))+(?!\s+[\d.]))?",
    re.IGNORECASE,
)
_AMONG = re.compile(
    r" on (?:the |all )?\d+ (?:\w+ ){0,2}(?:images|samples|examples|sentences|rows)\b"
)
"""How many there were: "Accuracy of the network on the 10000 test images: 55%"."""
# What may not follow a number: then it is a part of a time, a date, a version, or of damage.
_GOES_ON = re.compile(r"[:\-/]\d|\.\d|,\d|/|\ufffd|_")
_INDEX = re.compile(r"(\d+)\s+([-+]?\d+\.\d+)(?![\w.:/])")
"""A whole number before the value."""
_THOUSANDS = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_AS_IT_IS = frozenset({"", "%", "s", "sec", "secs"})
_UNITS = frozenset(
    {"ms", "us", "µs", "ns", "min", "mins", "h", "hr", "hrs", "hz", "w"},
)
_UNITS |= {"kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "ppl", "nats", "bits", "db"}
# "Test set: Average loss: 0.5", "Epoch(val) [1][50/50] acc: 0.3": the label is a part of the name.
LABEL = re.compile(
    r"(?:^|(?<=[\s\[(|<]))(?P<label>train|val|test|eval|valid|dev)(?:ing|uation|idation)?"
    r"(?: (?:set|phase|error|results?|metrics|performance))?\s*[\])>:|](?!\s*[-+.\d])",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\W*(?P<label>val|test|eval|valid|dev)(?:uation|idation)? (?:[-|:] )?(?=[^\W\d])", re.I
)
"""A label that begins a line counts for all of it: "val Loss: 0.2 Acc: 0.9"."""
_LABELLED = re.compile(r"(?i)train|val|test|eval|dev")
_STOPS = frozenset(
    {"took", "in", "after", "of", "at", "for", "to", "with", "and", "from", "by"},
)
_STOPS |= {"over", "about", "than", "until", "within", "on", "the", "a", "an", "is", "was", "are"}
_STOPS |= {"were", "version", "v", "python", "torch", "cuda", "using", "loaded", "saved", "found"}
_STOPS |= {"page", "line", "since", "every", "top", "last", "first", "next"}
_JOINING = frozenset(
    {"is", "was", "are", "of", "at", "in", "for", "on", "after", "the", "to"},
)
_SETTINGS = ("args.", "config.", "cfg.", "opt.", "hparams.", "self.")
_FILES = re.compile(r".*\.(?:py|pyx|cpp|cc|cu|c|h|ipynb|rs|go|jl|lua|r|m|sh)\Z", re.IGNORECASE)
_HOSTS = re.compile(r".*-\d+|localhost|.*\.(?:com|org|net|local|internal|train)\Z")
_COUNTED = re.compile(
    r"(?!.*\bper )(?:\w+ )*(?:step|epoch|iter|iteration|it|update|batch|batche|episode|timestep"
    r"|round|trial|fold|rank|gpu|cuda|device|node|worker|seed|port|pid|line|stage|attempt"
    r"|checkpoint|ep|game|frame)s?(?: (?:number|no|num|id|index))?\Z"
)


def values(
    text: str,
    *,
    placed: bool = True,
    label: str = "",
) -> Iterator[tuple[str, float]]:
    """(name, value) of each value that `text` names, with both words of "val loss".

    Without `placed` the line itself is no row: a name and a number with a blank between them are
    then a sentence, unless the name is that of a metric. `label` stood in the line before.
    """
    text = _AMONG.sub("", text)
    labels = [(0, label), *((each.end(), _later(each)) for each in LABEL.finditer(text))]
    first = _FIRST.match(text)
    if first is not None:
        labels.insert(1, (first.end(), first["label"]))
    for at, name, value in _values(text, placed=placed):
        while len(labels) > 1 and labels[1][0] <= at:
            del labels[0]
        of = labels[0][1]
        yield (f"{of} {name}" if of and not _LABELLED.search(name) else name), value


def _later(label: re.Match[str]) -> str:
    """The label, unless it is that of training."""
    return "" if label["label"].lower() == "train" else label["label"]


def _values(
    text: str,
    *,
    placed: bool,
) -> Iterator[tuple[int, str, float]]:
    at = 0
    while (match := _PAIR.search(text, at)) is not None:
        at = match.end()
        name, number = match["name"], as_number(match["number"])
        end = match.end("unit") if match["apart"] is None else at
        bar = match["unit"] == "%" and text.startswith("|", end)
        # "Prec@1 05 87.9": which of several it is stands before the value.
        index = _INDEX.match(text, match.start("number")) if match["sign"].isspace() else None
        if index is not None:
            at, name, number = index.end(), f"{name} {index[1]}", as_number(index[2])
        elif bar or _GOES_ON.match(text, end):
            number = None
        if number is None:
            at = _token_end(text, end)
            continue
        signed = not match["sign"].isspace()
        name = _ended(name)
        if not _is_name(name, signed=signed, glued=match["sign"] == ":"):
            continue
        if not signed and not _is_measured(name, match["number"], placed=placed):
            continue
        if match["whole"] is not None:
            share = _share(name, number, as_number(match["whole"]))
            if share is not None:
                yield match.start(), name, share
            continue
        unit = (match["apart"] or match["unit"]).strip()
        value = in_units(name, number, unit)
        if value is not None:
            inner = (match["inner"] or "").strip()
            yield match.start(), _with_inner(value[0], inner), value[1]


def _token_end(text: str, at: int) -> int:
    while at < len(text) and not text[at].isspace() and text[at] not in ",;|])}":
        at += 1
    return at


def _ended(name: str) -> str:
    """Without the words that join a name to its value: "loss of", "reward in is"."""
    while " " in name and name.rpartition(" ")[2].lower() in _JOINING:
        name = name.rpartition(" ")[0]
    return name.removeprefix("and ")


@lru_cache(maxsize=4096)
def _is_name(
    name: str,
    *,
    signed: bool,
    glued: bool,
) -> bool:
    """Whether it can be a metric: no position, no source file, no host, no word of a sentence."""
    lower = name.lower()
    if lower.startswith(_SETTINGS):
        return False
    if meaning(name).kind is Kind.PROGRESS or _COUNTED.match(lower.replace("_", " ")):
        return False
    if glued and (_FILES.match(lower) or _HOSTS.match(lower)):
        return False
    last = lower.rpartition(" ")[2]
    return signed or last not in _STOPS


@lru_cache(maxsize=4096)
def is_measure(name: str) -> bool:
    """Whether its words are those of a metric."""
    return role_of(name) is not MetricRole.OTHER or meaning(name).kind is Kind.RATE


def _is_measured(
    name: str,
    number: str,
    *,
    placed: bool,
) -> bool:
    """Whether a name and a number with only a blank between them are a value."""
    if is_measure(name):
        return True
    return placed and any(sign in number.lower() for sign in ".en")


def _share(
    name: str,
    part: float,
    whole: float | None,
) -> float | None:
    """The share of "Accuracy: 9833/10000"; of any other fraction nothing."""
    if not whole or role_of(name) is not MetricRole.SCORE:
        return None
    return part / whole


def in_units(
    name: str,
    number: float,
    unit: str,
) -> tuple[str, float] | None:
    """The value by its unit: 12k is 12000, 20.5GiB is of a name that says GiB; else left out."""
    lower = unit.lower()
    if lower in _AS_IT_IS or "/" in unit:
        return name, number
    if lower in _UNITS:
        return f"{name}_{unit}", number
    if lower not in _THOUSANDS or unit in ("m", "t", "g"):
        return None
    if role_of(name) is MetricRole.MEMORY:
        return f"{name}_{unit}B", number
    return name, number * _THOUSANDS[lower]


def _with_inner(name: str, inner: str) -> str:
    """With the unit that stood in brackets: "elapsed time (ms)" is "elapsed time_ms"."""
    if not inner or meaning(name).kind is Kind.RATE:
        return name
    return f"{name}_{inner}" if words(inner) in _UNITS else f"{name} ({inner})"
