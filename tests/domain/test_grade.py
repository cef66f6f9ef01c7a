"""Every combination of links gives the grade that its weakest ones say."""

from itertools import product

import pytest

from harness.domain.grade import (
    OPEN,
    PERSON,
    UNKNOWN,
    Caller,
    CallerKind,
    Grade,
    Link,
    grade_of,
    weakest,
)
from harness.domain.statuses import SandboxKind

CONFINED = [SandboxKind.BWRAP, SandboxKind.LANDLOCK]
OF_A_SESSION = [CallerKind.DRIVER, CallerKind.ISOLATED]
BY_BWRAP = Caller(CallerKind.DRIVER, SandboxKind.BWRAP)
IN_LANDLOCK = Caller(CallerKind.ISOLATED, SandboxKind.LANDLOCK)
TEXTS = {
    "person": PERSON,
    "open": OPEN,
    "unknown": UNKNOWN,
    **{f"{kind}:{box}": Caller(kind, box) for kind, box in product(OF_A_SESSION, SandboxKind)},
}


@pytest.mark.parametrize(("text", "caller"), TEXTS.items(), ids=TEXTS)
def test_a_caller_is_read_back_as_it_was_written(text: str, caller: Caller) -> None:
    assert (str(caller), Caller.read(text)) == (text, caller)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "person:bwrap",
        "open:bwrap",
        "driver",
        "isolated:",
        "isolated:chroot",
        "PERSON",
        "root",
    ],
)
def test_what_is_no_caller_is_unknown(text: str | None) -> None:
    assert Caller.read(text) == UNKNOWN


@pytest.mark.parametrize(("text", "caller"), TEXTS.items(), ids=TEXTS)
def test_only_a_person_and_confined_sessions_are_isolated(text: str, caller: Caller) -> None:
    confined = caller.kind in OF_A_SESSION and caller.sandbox in CONFINED
    assert caller.isolated == (text == "person" or confined)
    assert caller.agent == (text != "person")


@pytest.mark.parametrize("session", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("training", SandboxKind)
@pytest.mark.parametrize("predict", SandboxKind)
def test_a_grade_names_every_link_that_was_not_isolated(
    session: Caller, training: SandboxKind, predict: SandboxKind
) -> None:
    grade = grade_of(
        [PERSON, session], [SandboxKind.BWRAP, training], [predict, SandboxKind.BWRAP]
    )
    assert (Link.SESSION in grade.not_isolated) == (not session.isolated)
    assert (Link.TRAINING in grade.not_isolated) == (training is SandboxKind.NONE)
    assert (Link.PREDICT in grade.not_isolated) == (predict is SandboxKind.NONE)
    by_landlock = session.kind in OF_A_SESSION and session.sandbox is SandboxKind.LANDLOCK
    landlock = by_landlock or SandboxKind.LANDLOCK in (training, predict)
    assert (Link.LOCAL_SOCKETS in grade.not_isolated) == landlock
    names = ("session", "training", "predict", "local sockets")
    said = [f"{name} not isolated" for name in names if name in grade.codes]
    assert grade.words == ", ".join(["recomputed", *said])
    assert Grade.read(grade.codes) == grade


def test_of_an_older_fact_the_session_is_not_known() -> None:
    assert Grade.read(None).words == "recomputed, session not isolated"


def test_links_keep_their_order_and_come_once() -> None:
    assert Grade.read(["predict", "session", "predict"]).codes == ["session", "predict"]


@pytest.mark.parametrize(
    ("first", "second", "which"),
    [
        (PERSON, OPEN, OPEN),
        (OPEN, PERSON, OPEN),
        (UNKNOWN, OPEN, UNKNOWN),
        (PERSON, PERSON, PERSON),
        # Landlock leaves local sockets open, bwrap and a person do not.
        (BY_BWRAP, IN_LANDLOCK, IN_LANDLOCK),
        (IN_LANDLOCK, BY_BWRAP, IN_LANDLOCK),
        (PERSON, IN_LANDLOCK, IN_LANDLOCK),
        (IN_LANDLOCK, OPEN, OPEN),
        (PERSON, BY_BWRAP, PERSON),
    ],
)
def test_the_caller_that_isolates_less_stays(first: Caller, second: Caller, which: Caller) -> None:
    assert weakest(first, second) == which
