"""What single programs print in a way of their own: where a line stands, and how a run ends.

An entry is a pattern whose groups are counters (`_COUNTERS`) or values; values beside
them are read as everywhere. `Dialect.unit` says what a step counts.
"""

import re
from typing import Any, NamedTuple

from harness.foreign.log_rows import Row, as_number, whole

_N = r"[-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|nan|inf"


class Dialect(NamedTuple):
    program: str
    pattern: re.Pattern[str]
    unit: str = "step"


DIALECTS = (
    Dialect("torchtune", re.compile(r"\s*(?P<epoch>\d+)\|(?P<step>\d+)\|(?=\s*[A-Za-z])")),
    Dialect(
        "fairseq",
        re.compile(r".*\bepoch (?P<epoch>\d+)\b.*\bnum_updates[ =](?P<step>\d+)"),
        "update",
    ),
    Dialect(
        "darknet",
        re.compile(
            rf"\s*(?P<step>\d+): (?P<loss>{_N}), (?P<avg_loss>{_N}) avg(?: loss)?,"
            rf" (?P<learning_rate>{_N}) rate"
        ),
        "iteration",
    ),
    Dialect(
        "Marian",
        re.compile(rf".*\bEp\. (?P<epoch>\d+) : Up\. (?P<step>\d+) .*?\bCost (?P<Cost>{_N})"),
        "update",
    ),
    Dialect(
        "llm.c's main.log",
        re.compile(
            rf"\s*s:(?P<step>\d+) (?:trl:(?P<train_loss>{_N})|tel:(?P<val_loss>{_N})"
            rf"|eval:(?P<eval_accuracy>{_N}))"
        ),
    ),
    Dialect(
        "ESPnet",
        re.compile(r".*?\b(?P<epoch>\d+)epoch(?::\w+:\d+-(?P<batch>\d+)batch:| results:)"),
    ),
    Dialect("WeNet", re.compile(r".*?\b(?:TRAIN|CV) Batch (?P<epoch>\d+)/(?P<batch>\d+) ")),
    Dialect(
        "fastText",
        re.compile(r"\s*Progress:\s+(?P<step>[\d.]+)% words/sec/thread:"),
        "percent",
    ),
    Dialect("StyleGAN", re.compile(r"\s*tick (?P<step>\d+)\s+kimg \d"), "tick"),
    Dialect("timm", re.compile(r"\s*Train: (?P<epoch>\d+) \[\s*(?P<batch>\d+)/\d+")),
    Dialect(
        "Swin",
        re.compile(r"\s*Train: \[(?P<epoch>\d+)/(?P<total_epochs>\d+)\]\[(?P<batch>\d+)/\d+\]"),
    ),
    Dialect(
        "Kaldi",
        re.compile(
            r".*Average objective function for '\S+' for minibatches \d+-(?P<step>\d+)"
            rf" is (?P<objective>{_N}) over"
        ),
        "minibatch",
    ),
    Dialect("clu", re.compile(r"\s*\[(?P<step>\d+)\] (?=[\w/]+=)")),
    Dialect(
        "Composer",
        re.compile(r"\s*\[batch=(?P<step>\d+)(?:/(?P<total_steps>\d+))?\]:\s*\Z"),
        "batch",
    ),
    Dialect(
        "MXNet",
        re.compile(r".*?\bEpoch\[(?P<epoch>\d+)\](?: Batch \[\d*-?(?P<batch>\d+)\])?"),
    ),
    Dialect(
        "TensorFlow",
        re.compile(r".*?\bloss = (?:{_N}), step = (?P<step>\d+)".replace("{_N}", _N)),
    ),
)
_COUNTERS = ("step", "epoch", "batch", "total_steps", "total_epochs")
_LETTERS = re.compile(
    r"\d+\||\bs:\d|\depoch| Batch \d|% words"
    r"|\d\] \w|\[batch=|minibatches \d|\bnum_updates\b| avg|\bEp\. |tick \d|Train: |Epoch\[|step = "
)


def dialect(text: str) -> tuple[Row, list[tuple[str, Any]], int] | None:
    """(counters, values, where the rest begins) of a line that one program prints."""
    if _LETTERS.search(text) is None:
        return None
    for entry in DIALECTS:
        match = entry.pattern.match(text)
        if match is not None:
            return _read(entry, match)
    return None


def _read(
    entry: Dialect,
    match: re.Match[str],
) -> tuple[Row, list[tuple[str, Any]], int]:
    row: Row = {}
    values: list[tuple[str, Any]] = []
    for name, said in match.groupdict().items():
        number = as_number(said)
        if number is None:
            continue
        if name in _COUNTERS:
            row[name] = whole(number)
        else:
            values.append((name, number))
    if "step" in row and entry.unit != "step":
        row["unit"] = entry.unit
    rest = match.end() if values or "batch" in row else 0
    return row, values, rest


# Each is (words that stand in it, what it looks like).
_ENDS = (
    ("fit` stopped:", r"`(?:Trainer\.)?fit` stopped:"),  # Lightning
    ("est iteration is:", r"(?:Early stopping, b|Did not meet early stopping\. B)est"),  # LightGBM
    ("bestIteration", r"\s*bestIteration = \d+"),  # CatBoost
    ("done training", r".*\bdone training in [\d.]+ seconds"),  # fairseq
    ("raining complete", r".*\bTraining completed?\s*\Z"),  # OLMo, torchtitan
    ("epochs completed", r"\s*\d+ epochs completed in [\d.]+ hours"),  # YOLO
    ("Total training time", r".*\bTotal training time: \d+:\d\d:\d\d \("),  # detectron2
    ("Saved final weights", r"Saved final weights to "),  # MLX
    ("model saved.", r"\s*model saved\.\s*\Z"),  # kohya-ss
    ("Best metric", r"\*\*\* Best metric: "),  # timm
    ("Do not forget to", r"Training completed\. Do not forget to share"),  # transformers
    ("train metrics", r"\*{5} train metrics \*{5}"),  # transformers' examples
    ("Optimization Done", r".*\bOptimization Done\."),  # Caffe
    ("raining finished", r".*\bTraining finished\s*\Z"),  # Marian
)
_ENDINGS = tuple((words, re.compile(pattern)) for words, pattern in _ENDS)


def is_end(text: str) -> bool:
    """Whether a program says here that its training is over."""
    said = (pattern for words, pattern in _ENDINGS if words in text)
    return any(pattern.match(text) is not None for pattern in said)
