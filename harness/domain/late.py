"""Dataclasses that are made, and modules that are imported, when they are first used.

To make a dataclass takes as long as to import a small module, and a command uses few of the many
that come with its imports. What a class is like afterwards, `dataclasses` alone decides.
"""

import dataclasses
import importlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

_FIELDS = "__dataclass_fields__"
_LOCK = threading.RLock()
_MADE: set[type] = set()


class Late:
    """The base of those that may wait: the first instance has its class made, also an unpickled
    one."""

    if not TYPE_CHECKING:

        def __new__(cls, *_words, **_values):
            if cls not in _MADE:
                with _LOCK:  # another thread may be making it
                    getattr(cls, _FIELDS)
                    _MADE.add(cls)
            return super().__new__(cls)


class _Fields:
    """Stands for the fields of a class: whoever asks for them, as a dataclass that is derived from
    it does, has the class made."""

    def __init__(self, of: type, options: dict[str, Any]) -> None:
        self._of, self._options = of, options

    def __get__(self, _instance: object, _owner: type) -> Any:
        with _LOCK:
            if self._of.__dict__[_FIELDS] is self:
                delattr(self._of, _FIELDS)
                dataclasses.dataclass(**self._options)(self._of)
        return self._of.__dict__[_FIELDS]


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(**options: Any) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, without slots; of a `Late` one later."""

        def decorate(cls: type) -> type:
            if not issubclass(cls, Late):
                return dataclasses.dataclass(**options)(cls)
            setattr(cls, _FIELDS, _Fields(cls, options))
            return cls

        return decorate


class _Module:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def later(module: str) -> Any:
    """What `import` would give, imported when something of it is asked for: for modules that take
    long and that few calls need. Under `if not TYPE_CHECKING`, beside the import that types see."""
    return _Module(module)
