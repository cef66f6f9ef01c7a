"""What every kind of fact is. Fields are plain JSON values, so that a fact's bytes depend on
nothing else."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Fact:
    """The base of all kinds; never stored itself."""

    KIND: ClassVar[str] = ""

    def body(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)
