"""Stop reminds of what is left to do and lets go; a session that is reminded in vain ends all the same."""

from tests.interactive.door import REMINDED
from tests.interactive.lab import Lab
from tests.interactive.sdk import Played, play


def reminders(played: Played) -> list[str]:
    """What the model was told when it wanted to stop, oldest first."""
    found = []
    for message in played.requests[-1].body["messages"]:
        text = str(message["content"])
        if message["role"] != "assistant" and REMINDED in text:
            found.append(text)
    return found


def test_stop_reminds_once_a_turn_and_lets_go(lab: Lab) -> None:
    """The experiment's runs have ended and nobody has judged them."""
    played = play(lab.root, lab.home, {"PLEASE REST": ["I stop."]})
    told = reminders(played)
    assert len(told) == 1
    assert "exp-0001" in told[0]
    assert "harness evaluate exp-0001" in told[0]
    assert [end["subtype"] for end in played.document["ends"]] == ["success"]


def test_stop_reminds_twice_a_session_of_one_thing(lab: Lab) -> None:
    prompts = {f"PLEASE REST {number}": ["I stop."] for number in "ABCD"}
    played = play(lab.root, lab.home, prompts)
    assert len(reminders(played)) == 2
    assert len(played.document["ends"]) == 4
