"""Which NVIDIA cards a replica trains on."""

import re
from collections.abc import Mapping
from pathlib import Path

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_DEVICE = re.compile(r"nvidia(\d+)")


def cards_of(
    replica: int, replicas: int, environ: Mapping[str, str], devices: Path = Path("/dev")
) -> dict[str, str]:
    """Variables that give the replica its share of the cards that the run may use, so that no two
    replicas share one; none where there are fewer cards than replicas. `devices` is the folder of
    the driver's device files."""
    said = environ.get(_VISIBLE)
    if said is None:
        found = (_DEVICE.fullmatch(path.name) for path in devices.glob("nvidia*"))
        cards = sorted((match[1] for match in found if match), key=int)
    else:
        cards = [name.strip() for name in said.split(",") if name.strip()]
    each = len(cards) // replicas
    if each == 0:
        return {}
    return {_VISIBLE: ",".join(cards[replica * each : (replica + 1) * each])}
