"""What a run's rows say of tokens, over all its attempts, and of its last loss."""

from collections.abc import Iterable
from typing import Any

from harness.artifacts.metrics_file import place
from harness.posttrain.untrusted_json import is_finite


class Tokens:
    """Fed with the run's own rows in order."""

    def __init__(self) -> None:
        self.loss: float | None = None
        """Of the last row that has one."""
        self._held: list[tuple[float | None, float]] = []
        self._replaced = 0.0
        self._goes_on = False

    @property
    def seen(self) -> float | None:
        """The largest `tokens_seen` of the rows that count: what the model was trained on."""
        return max((tokens for _, tokens in self._held), default=None)

    @property
    def spent(self) -> float:
        """What went through the model in all attempts, repeated steps included."""
        return self._replaced + (self.seen or 0.0)

    def take(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            if row.get("event") == "attempt":
                at = row.get("resumed_at")
                self._goes_on = not isinstance(at, int)
                if isinstance(at, int):
                    self._go_back(at)
                continue
            where, metrics = place(row), row.get("metrics")
            if self._goes_on and where is not None and row.get("event") == "epoch":
                self._goes_on = False
                self._go_back(where)  # it did not say where it goes on: where its first row stands
            told = metrics if isinstance(metrics, dict) else {}
            if is_finite(loss := told.get("loss")):
                self.loss = float(loss or 0.0)
            value = told.get("tokens_seen")
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._held.append((where, float(value)))

    def _go_back(self, at: float) -> None:
        # A resumed trainer starts at its last checkpoint: later rows of the attempt before are
        # replaced by new ones. Their tokens no longer shape the model, but they were paid for.
        before = self.seen or 0.0
        self._held = [
            (where, tokens) for where, tokens in self._held if where is not None and where < at
        ]
        self._replaced += before - (self.seen or 0.0)
