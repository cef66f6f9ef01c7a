"""Where a printed line stands: "step 10/100", "Epoch [3/10]", "[100]", "45/100 [00:12<00:10"."""

import re
from typing import Any

from harness.foreign.log_rows import Row, as_number, whole
from harness.foreign.printed_values import WHOLE

_OF = rf"(?:\s*(?:/|\bof\b)\s*(?P<total>{WHOLE})(?!/\d))?"
_NUMBERED = r"(?:\s*\(\w+\)|\s+(?:number|no\.?|num|id|index|nr\.?)(?=[\s:=#]))?"
_NOT_AFTER = r"(?!\s*%|\.\d|\s*m?s\b|/s|:\d\d)"
# The units of `names`, as programs print them. Of two in a line the first counts.
_COUNTED = re.compile(
    r"(?<![\w/.-])(?:trainer/|train/)?(?:global[_ ]|train_|current_|optimizer_|env_|num_|total_)?"
    r"(?P<unit>step|iteration|iter|itr|it(?=[=:\[])|update|timestep|episode|round|generation|game"
    rf"|frame)s?['\"]?{_NUMBERED}[\s:=#\[(]*(?P<number>{WHOLE})" + _OF + _NOT_AFTER,
    re.IGNORECASE,
)
_GLOBAL = re.compile(
    rf"(?<![\w.-])(?P<unit>global_step)['\"]?\s*[:=]\s*(?P<number>{WHOLE})(?P<total>)" + _NOT_AFTER
)
"""Beside it another counter is that of the epoch."""
_WORDS = ("step", "it", "update", "episode", "round", "generation", "game", "frame")
_UNITS = {"iter": "iteration", "itr": "iteration", "it": "iteration"}
_EPOCH = re.compile(
    rf"(?<![\w/.-])epoch['\"]?{_NUMBERED}[\s:=#\[(]*['\"]?"
    r"(?P<number>\d+(?:\.\d+)?)(?:\s*(?:/|\bof\b)\s*(?P<total>\d+))?(?!\s*%\D)",
    re.IGNORECASE,
)
_EP = re.compile(r"(?<![\w/.-])ep[. :#=]+\s*(?P<number>\d+)(?:\s*/\s*(?P<total>\d+))?", re.I)
_EPISODIC = re.compile(r"\b(?:rewards?|returns?|scores?)\b", re.IGNORECASE)
# tqdm: " 45%|####   | 45/100 [00:12<00:10, 4.3it/s, loss=0.5]"; a bar without a total "45it [".
_BAR = re.compile(
    r"\|\s*(?P<number>\d+)/(?P<total>\d+)\s*\[(?=[\d?]+:)|(?<!\S)(?P<alone>\d+)it\s*\[(?=\d+:)"
)
# "[ 10/100]", "[640/60000 (1%)]" and, of an epoch and a batch, "[1,  2000]".
_BRACKET = re.compile(
    r"\[\s*(?:(?P<epoch>\d+)\s*,\s+)?(?P<number>\d+)(?:\s*/\s*(?P<total>\d+))?\s*"
    r"(?:\(\s*[\d.]+%\s*\))?\s*\]"
)
# Keras: "120/120 - 3s - loss: 2.0".
_LEADING = re.compile(
    r"\s*\[?(?P<number>\d+)/(?P<total>\d+|unknown)\]?(?![\d.]|/\d)", re.IGNORECASE
)
# Boosting: "[100]\ttrain-auc:0.9", "100:\tlearn: 0.31".
_INDEX = re.compile(r"\s*(?:\[(?P<number>\d+)\]|(?P<alone>\d+):)\s+[^\W\d]")
# A setting: "steps: 1000", not where a training is.
_SETTING = re.compile(r"\W*(?:\w+[ _])*\w+s['\"]?\s*[:=]\s*\d+\W*")


def place_of(
    text: str,
    *,
    within: bool,
) -> tuple[Row, str] | None:
    """(counters, the line without their words) of a cleaned line; None when it has no position.

    The counters are step, unit, epoch, batch, total_*. With `within`, a line before said which
    epoch goes on: bare counts are within that epoch. `leads` marks a count that begins the line,
    as Keras prints it.
    """
    row: Row = {}
    lower = text.lower()
    epoch = _EPOCH.search(text) if "epoch" in lower else None
    counted = any(word in lower for word in _WORDS)
    step = _GLOBAL.search(text) or _COUNTED.search(text) if counted else None
    short = _EP.search(text) if epoch is None and "ep" in lower else None
    if short is not None:
        # "Ep 10 | reward 20" counts episodes.
        if _EPISODIC.search(text):
            row |= _counted(short, "step") | {"unit": "episode"}
        else:
            epoch = short
    if epoch is not None:
        row |= _counted(epoch, "epoch")
    if step is not None and "step" not in row:
        row |= _counted(step, "step")
        unit = step["unit"].lower()
        if unit not in ("step", "global_step"):
            row["unit"] = _UNITS.get(unit, unit)
    if "step" not in row:
        row |= _bare(text, epoch, within=within)
    unread = epoch is None and step is None
    if (not row and unread) or _SETTING.fullmatch(text):
        return None
    return row, _without(text, epoch, step)


def _without(
    text: str,
    *matches: re.Match[str] | None,
) -> str:
    """The line without what matched: "reward in episode 7 is 2.5" says "reward in is 2.5"."""
    spans = sorted((match.span() for match in matches if match is not None), reverse=True)
    for start, end in spans:
        blank = text[:start].endswith(" ") and text[end : end + 1] == " "
        text = text[: start - blank] + text[end:]
    return text


def _bare(
    text: str,
    epoch: re.Match[str] | None,
    *,
    within: bool,
) -> Row:
    """Counts without a word."""
    after = 0 if epoch is None else epoch.end()
    bar = _BAR.search(text, after) if "[" in text else None
    if bar is not None:
        counted = _counted(bar, "step")
        if not counted:
            return {}
        return counted if epoch is None else {"batch": counted["step"]}
    leading = _LEADING.match(text) if epoch is None else None
    bracket = _BRACKET.search(text, max(0, after - 1)) if "[" in text else None
    if leading is not None:
        counted = _counted(leading, "step")
        if not within or not counted:
            return counted
        ends = counted["step"] == counted.get("total_steps")
        return {"batch": counted["step"], "leads": True, "ends": ends}
    if bracket is not None and bracket["epoch"]:
        return {"epoch": int(bracket["epoch"]), "batch": int(bracket["number"])}
    counted = {} if bracket is None else _counted(bracket, "step")
    if "total_steps" in counted:
        inner = within or epoch is not None
        return {"batch": counted["step"]} if inner else counted
    index = _INDEX.match(text)
    if index is not None and epoch is None and not within:
        return _counted(index, "step") | {"unit": "iteration"}
    return {}


def _counted(
    match: re.Match[str],
    name: str,
) -> dict[str, Any]:
    groups = match.groupdict()
    number = as_number(groups["number"] or groups.get("alone"))
    if number is None:
        return {}
    row: dict[str, Any] = {name: whole(number)}
    total = as_number(groups.get("total"))
    if isinstance(total, int) and total > 0:
        row[f"total_{name}s"] = total
    return row
