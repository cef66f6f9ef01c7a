"""What a repository holds beside its work tree, of no commit too: blobs, messages of commits and
tags, who wrote them and when, and names of branches, tags and files."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.artifacts.git import GitFailedError, object_reader, objects, ref_names
from harness.plans.row_names import Named, name_sources
from harness.plans.row_sources import DAMAGED, TIME_OVER, TOO_LARGE, Looking, Source
from harness.plans.row_unpack import unpacked

_MOST_ALONE = 2_000
"""Messages that are looked at each by itself; all are looked at together."""
_LONG = 400
_MOST_TREES = 50_000
_PERSON = re.compile(rb"(?m)^(?:author|committer|tagger) (.*) ([0-9]+) [-+0-9]+$")
_ENTRY = {
    40: re.compile(rb"[0-7]{5,6} ([^\0]+)\0.{20}", re.DOTALL),
    64: re.compile(rb"[0-7]{5,6} ([^\0]+)\0.{32}", re.DOTALL),
}
Listed = list[tuple[str, int]]
Read = Callable[[str], bytes]


def repository_sources(folder: Path, name: str, looking: Looking) -> Iterator[Source]:
    """Of the repository whose own folder is `folder`; `name` is empty for the project's. Raises
    GitFailedError for that one."""
    whose = f" of {name}" if name else ""
    if looking.over():
        looking.missed.add(TIME_OVER, f"the objects of git{whose}")
        return
    try:
        refs = ref_names(folder)
        found: dict[str, Listed] = {}
        for kind, key, size in objects(folder, timeout_s=looking.left_s()):
            found.setdefault(kind, []).append((key, size))
        named: list[Named] = [(ref, "") for ref in refs]
        yield from name_sources(f"git: branches and tags{whose}", named, looking)
        with object_reader(folder) as read:
            told = [*found.get("commit", []), *found.get("tag", [])]
            yield from _messages(told, read, whose, looking)
            yield from _names(found.get("tree", []), read, whose, looking)
            yield from _blobs(found.get("blob", []), read, name, looking)
    except GitFailedError:
        if not name:
            raise
        looking.missed.add(DAMAGED, f"the objects of git{whose}")


def _messages(told: Listed, read: Read, whose: str, looking: Looking) -> Iterator[Source]:
    made: list[tuple[int, bytes, bytes]] = []
    for key, size in sorted(told, key=lambda one: one[1]):
        name = f"git: message of {key[:12]}{whose}"
        if size > looking.limits.file_bytes or looking.over():
            looking.missed.add(TOO_LARGE if size > looking.limits.file_bytes else TIME_OVER, name)
            continue
        head, _, message = read(key).partition(b"\n\n")
        people = _PERSON.findall(head)
        at = int(people[-1][1]) if people else 0
        who = b" ".join(part for person in people for part in person)
        made.append((at, who, message.strip()))
        looking.bytes += size
        if len(message) >= _LONG and len(told) - len(made) < _MOST_ALONE:
            yield from unpacked(Source(name=name, data=message, made=True), looking)
    made.sort(key=lambda one: one[0])
    for what, place in (("messages", 2), ("authors and times", 1)):
        data = b"\n".join(bytes(one[place]) for one in made)
        if data:
            yield Source(name=f"git: {what} of all commits{whose}", data=data, made=True)


def _names(trees: Listed, read: Read, whose: str, looking: Looking) -> Iterator[Source]:
    names: dict[str, None] = {}
    for count, (key, size) in enumerate(trees):
        if count >= _MOST_TREES or size > looking.limits.file_bytes or looking.over():
            looking.missed.add(TIME_OVER, f"git: some names of files{whose}")
            break
        for entry in _ENTRY[len(key)].findall(read(key)):
            names[entry.decode("utf-8", "replace")] = None
    listed: list[Named] = [(name, "") for name in names]
    yield from name_sources(f"git: names of files{whose}", listed, looking)


def _blobs(listed: Listed, read: Read, name: str, looking: Looking) -> Iterator[Source]:
    whose = f" of {name}" if name else ""
    for key, size in sorted(listed, key=lambda found: found[1]):
        if not size:
            continue
        if size > looking.limits.file_bytes:
            looking.missed.add(TOO_LARGE, f"git object {key[:12]}{whose}")
        elif looking.over():
            looking.missed.add(TIME_OVER, f"git object {key[:12]}{whose}")
        else:
            data = read(key)
            if looking.new(data):
                looking.blobs += 1
                what = f"git object {key[:12]}{whose}"
                blob = "" if name else key
                yield from unpacked(Source(name=what, data=data, blob=blob), looking)
