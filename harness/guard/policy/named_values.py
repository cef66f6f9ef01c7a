"""Small values with named fields: what NamedTuple offers of use here, without its imports at each
start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    R = TypeVar("R", bound="Record")


class Record:
    """Compared by its fields, which are its `__slots__` and the parameters of its `__init__`; never
    changed."""

    __slots__: tuple[str, ...] = ()

    def _replace(self: R, **changes: Any) -> R:
        """A copy with some fields changed."""
        return type(self)(
            **{
                name: changes[name] if name in changes else getattr(self, name)
                for name in self.__slots__
            }
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, n) == getattr(other, n) for n in self.__slots__
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"
