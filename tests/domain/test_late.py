"""A dataclass that is made when it is first used is one like any other."""

import dataclasses
import pickle
import subprocess
import sys
from threading import Barrier, Thread

import pytest

from harness.domain.late import Late, dataclass
from harness.ledger.facts import ControlAccepted


@dataclass(frozen=True, kw_only=True)
class Base(Late):
    name: str
    kept: list[int] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    more: int = 2


def unmade() -> type:
    @dataclass(frozen=True, kw_only=True)
    class Fresh(Late):
        number: int

    return Fresh


def test_the_first_instance_is_like_every_other():
    fresh = unmade()
    assert not isinstance(fresh.__dict__["__dataclass_fields__"], dict)
    first, second = fresh(number=1), fresh(number=1)
    assert isinstance(fresh.__dict__["__dataclass_fields__"], dict)
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first).endswith("Fresh(number=1)")
    assert first != fresh(number=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.number = 3
    with pytest.raises(TypeError, match="other"):
        fresh(other=1)


def test_fields_are_there_before_any_instance():
    assert [field.name for field in dataclasses.fields(unmade())] == ["number"]


def test_a_derived_one_has_the_fields_of_its_base():
    made = Derived(name="a", more=3)
    assert dataclasses.asdict(made) == {"name": "a", "kept": [], "more": 3}
    assert dataclasses.replace(made, more=4) == Derived(name="a", more=4)
    assert made != Base(name="a")


def test_one_that_comes_from_another_process_compares():
    one = ControlAccepted(sha256="a" * 64, files=3, by="human:ada")
    program = (
        "import pickle, sys\n"
        "one, two = pickle.loads(sys.stdin.buffer.read())\n"
        "assert one is not two and one == two and hash(one) == hash(two)\n"
        "print(one)"
    )
    pair = pickle.dumps((one, dataclasses.replace(one)))
    done = subprocess.run([sys.executable, "-c", program], input=pair, capture_output=True)
    assert done.stdout.decode().strip() == repr(one), done.stderr.decode()


def test_threads_that_are_first_at_once_make_it_once():
    fresh, start, made = unmade(), Barrier(8), []

    def go() -> None:
        start.wait()
        made.append(fresh(number=len("x")))

    threads = [Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [fresh(number=1)] * 8
