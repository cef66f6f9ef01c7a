"""Stop reminds of what is left to do and lets go; a session that is reminded in vain ends all the
same."""

from itertools import pairwise

from tests.interactive.gateway import REMINDED
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


def test_stop_reminds_and_lets_go(lab: Lab) -> None:
    """The experiment's runs have ended and nobody has judged them: once a turn, twice a session."""
    asked = [f"PLEASE REST {letter}" for letter in "ABCD"]
    played = play(lab.root, lab.home, {prompt: ["I stop."] for prompt in asked})
    told = reminders(played)
    assert len(told) == 2
    assert all("exp-0001" in text and "harness evaluate exp-0001" in text for text in told)
    messages = [str(message["content"]) for message in played.requests[-1].body["messages"]]
    turns = [
        next(index for index, text in enumerate(messages) if prompt in text) for prompt in asked
    ]
    between = [
        sum(REMINDED in text for text in messages[start:end])
        for start, end in pairwise([*turns, None])
    ]
    assert between == [1, 1, 0, 0]
    assert [end["subtype"] for end in played.document["ends"]] == ["success"] * 4
