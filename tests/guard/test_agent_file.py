"""Agent files as people write them: a broken one never has more rights than its author gave."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.guard.agent_files import AgentFile, read_agent, read_agents

CASE_47 = Path(__file__).parents[1] / "artifacts/inputs" / "case-47"


def agent(tmp_path: Path, front: str, name: str = "some") -> AgentFile:
    path = tmp_path / f"{name}.md"
    path.write_text(f"---\n{front}\n---\nBody\ntools: Read, Write\n", "utf-8")
    return read_agent(path)


@pytest.mark.parametrize(
    ("file", "name", "tools", "problem"),
    [
        ("colon", "trainer", ("Read", "Bash"), "not YAML"),
        ("unindented", "reviewer", None, "not YAML"),
        ("star", "allt", None, "not YAML"),
        ("flow", "flow", None, "not YAML"),
        ("toolslist", "l", ("Read", "Bash"), ""),
        ("noname", "noname", None, "no name"),
    ],
)
def test_case_47_a_refused_file_has_the_rights_that_its_author_wrote(
    file: str, name: str, tools: tuple[str, ...] | None, problem: str
):
    found = read_agent(CASE_47 / f"{file}.md")
    assert (found.name, found.tools) == (name, tools)
    assert any(problem in text for text in found.problems) if problem else found.problems == ()


def test_case_47_all_of_a_folder_are_read(tmp_path: Path):
    assert [item.path.stem for item in read_agents(CASE_47)] == [
        "colon",
        "flow",
        "noname",
        "star",
        "toolslist",
        "unindented",
    ]
    assert read_agents(tmp_path / "none") == []


@pytest.mark.parametrize(
    "broken",
    [
        "name: a\ndescription: Use when: x\ntools: Read",
        "name: a\ndescription: x\ntools: Read\ntools: Read, Bash",
        "name: a\ndescription: [a] [b]\ntools: [Read]",
        "name: a\ndescription: [a] [b]\ntools:\n  - Read",
        "name: a\ndescription: [a] [b]\ntools:\n- 'Read'",
        "name: a\ndescription: Example: x\n  tools: Read",
        "name: a\ndescription: 'open\ntools: Read",
        "name: a\ndescription: x: y\nallowed-tools: Read",
        "name: a\ndescription: x: y\ntools: Read, Bash\ndisallowedTools: Bash",
        "name: a\ndescription: x\nTools: Read",
        "name: a\ndescription: x\ntools: Read, $(all)",
    ],
)
def test_case_47_a_limit_survives_whatever_is_broken_beside_it(tmp_path: Path, broken: str):
    found = agent(tmp_path, broken)
    assert found.tools == ("Read",)
    assert found.problems


@pytest.mark.parametrize(
    "given", ["tools: 3", "tools:", "tools: {a: b}", "tools: [3]", "tools: ''", "tools: -"]
)
def test_case_47_a_limit_that_says_nothing_allows_nothing(tmp_path: Path, given: str):
    found = agent(tmp_path, f"name: a\ndescription: x\n{given}")
    assert found.tools == ()
    assert found.problems


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        (
            "tools: Read, Bash(git add:*, git log), mcp__x__y",
            ("Read", "Bash(git add:*, git log)", "mcp__x__y"),
        ),
        ("tools: '*'", None),
        ("model: inherit", None),
        ("disallowedTools: Bash", None),
        ("disallowedTools: '*'", ()),
        ("tools: Read, Bash\ndisallowedTools: [Bash]", ("Read",)),
    ],
)
def test_a_good_file_is_read_as_it_is(tmp_path: Path, given: str, tools: tuple[str, ...] | None):
    found = agent(tmp_path, f"name: a\ndescription: x\n{given}")
    assert (found.tools, found.problems) == (tools, ())


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe\xfa", b"no front matter\ntools: Bash\n", b"---\n\0\n---\n"]
)
def test_a_file_without_front_matter_allows_nothing(tmp_path: Path, data: bytes):
    path = tmp_path / "x.md"
    path.write_bytes(data)
    found = read_agent(path)
    assert (found.name, found.tools) == ("x", ())
    assert found.problems


def test_a_front_matter_that_is_not_closed_keeps_its_limit(tmp_path: Path):
    path = tmp_path / "x.md"
    path.write_text("---\nname: a\ntools: Read\n\nBody: text\n", "utf-8")
    assert read_agent(path).tools == ("Read",)


@given(text=st.text(alphabet="-abc: \n[]{}'\"*#&!|>,", max_size=60))
def test_no_front_matter_takes_a_limit_away(tmp_path_factory: pytest.TempPathFactory, text: str):
    body = "\n".join(line for line in text.split("\n") if line.strip() != "---")
    found = agent(tmp_path_factory.mktemp("a"), f"name: a\n{body}\ntools: Read")
    assert found.tools is not None
    assert set(found.tools) <= {"Read"}
