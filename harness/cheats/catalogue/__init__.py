"""Every attack and every control. Variants of one mechanism stand here once."""

from harness.cheats.attack import Attack
from harness.cheats.catalogue.controls import CONTROLS as CONTROLS
from harness.cheats.catalogue.training import TRAINING

ATTACKS: tuple[Attack, ...] = (*TRAINING,)
