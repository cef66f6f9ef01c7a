"""What the lab sees with its own eyes after an attack: files, processes and records, asked without the harness."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cheats.attack import Attack
from harness.cheats.place import Place

Values = Mapping[str, str]


def effect(place: Place, attack: Attack, values: Values, log: str) -> bool:
    """Whether the attack had the effect that it declares; False when it declares none."""
    if attack.effect is None:
        return False
    return bool(attack.effect(Scene(place=place, values=values, log=log)))


class Scene:
    """What a declared effect may ask."""

    def __init__(self, *, place: Place, values: Values, log: str) -> None:
        self.place, self.values, self.log = place, values, log

    def text(self, name: str) -> str:
        """A file of the project; nothing when it is not there."""
        try:
            return (self.place.root / name).read_text("utf-8", "replace")
        except OSError:
            return ""

    def living(self) -> list[Any]:
        return self.place.left_behind()

    def exists(self, name: str) -> bool:
        return Path(self.place.root, name).exists()
