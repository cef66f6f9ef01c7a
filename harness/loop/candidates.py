"""Which idea comes first: a pure order over what checker, scout and builder left in next.md."""

from collections.abc import Collection, Mapping, Sequence

from harness.artifacts.next_ideas import CONFIDENCE, Idea

MOST = 5
_SEVERITY = ("fatal", "warning")


def rank(
    ideas: Sequence[Idea], alarms: Mapping[str, str], tried: Collection[str]
) -> tuple[Idea, ...]:
    """The best five. What answers a fatal alarm comes before what answers a warning, that before
    all else; then the surer; then the order in which they were written. A hypothesis that was tried
    is none any more.

    Args:
        alarms: code -> severity of what stood open.
        tried: hypotheses of earlier experiments.
    """
    known = {_folded(text) for text in tried}
    fresh: dict[str, Idea] = {}
    for item in ideas:
        if _folded(item.text) not in known:
            fresh.setdefault(_folded(item.text), item)
    ordered = sorted(fresh.values(), key=lambda item: (_severity(item, alarms), _confidence(item)))
    return tuple(ordered[:MOST])


def _severity(item: Idea, alarms: Mapping[str, str]) -> int:
    severity = alarms.get(item.answers or "")
    return _SEVERITY.index(severity) if severity in _SEVERITY else len(_SEVERITY)


def _confidence(item: Idea) -> int:
    return CONFIDENCE.index(item.confidence) if item.confidence in CONFIDENCE else len(CONFIDENCE)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")
