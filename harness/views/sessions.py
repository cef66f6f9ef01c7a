"""Sessions of agents as tables for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.domain.plain_text import TableText, one_line
from harness.views.tables import count, duration, pairs_table, render_table

_WIDEST = 160


def sessions_table(rows: Sequence[Mapping[str, Any]]) -> TableText:
    """One row a session."""
    columns = ("session", "began", "time", "prompts", "answers", "tools", "tokens out", "cost")
    return render_table("", (*columns, "title"), (_cells(row) for row in rows))


def _cells(row: Mapping[str, Any]) -> tuple[Any, ...]:
    calls = sum(tool["calls"] for tool in row["tools"].values())
    return (
        row["session"],
        row["first"][:16].replace("T", " "),
        duration(row["seconds"]),
        row["prompts"],
        row["answers"],
        calls,
        count(sum(spent["output"] for spent in row["models"].values())),
        dollars(row),
        one_line(row["title"], 60),
    )


def session_lines(row: Mapping[str, Any]) -> Iterator[TableText]:
    """Everything about one session but its messages."""
    head = [
        ("session", row["session"]),
        ("title", row["title"]),
        ("in", f"{row['cwd']}  {row['branch']}"),
        ("time", f"{row['first']} to {row['last']}, {duration(row['seconds'])}"),
        ("messages", f"{row['prompts']} prompts, {row['answers']} answers"),
        ("cost", dollars(row)),
    ]
    told = ("compactions", "api_errors", "interrupts", "images", "hooks")
    head += [(name.replace("_", " "), row[name]) for name in told if row[name]]
    head += [("file", source) for source in row["sources"]]
    head += [
        ("experiment", f"{each['experiment']}  {each['status']}")
        for each in row.get("experiments", ())
    ]
    yield pairs_table((name, value) for name, value in head if value not in ("", "  "))
    columns: tuple[str, ...]
    if row["models"]:
        columns = ("model", "answers", "input", "cache write", "cache read", "output", "cost")
        yield render_table("", columns, (_model(*item) for item in row["models"].items()))
    if row["tools"]:
        columns = ("tool", "calls", "errors")
        used = sorted(row["tools"].items(), key=lambda item: -item[1]["calls"])
        cells = ((name, tool["calls"], tool["errors"] or "") for name, tool in used)
        yield render_table("", columns, cells)
    if row["subagents"]:
        columns = ("subagent", "kind", "type", "answers", "tokens out", "started by")
        yield render_table("", columns, (_agent(agent) for agent in row["subagents"]))


def _model(name: str, spent: Mapping[str, Any]) -> tuple[Any, ...]:
    kinds = ("input", "cache_write", "cache_read", "output")
    usd = "price unknown" if spent["usd"] is None else f"${spent['usd']:.4f}"
    return (name, spent["answers"], *(count(spent[kind]) for kind in kinds), usd)


def _agent(agent: Mapping[str, Any]) -> tuple[Any, ...]:
    call = agent["call"] or ("unjoined" if agent["kind"] == "task" else "Claude Code itself")
    out = count(agent["output"])
    return (agent["id"], agent["kind"], agent["type"] or "", agent["answers"], out, call)


def dollars(row: Mapping[str, Any]) -> str:
    unknown = f" + {', '.join(row['unpriced'])}: price unknown" if row["unpriced"] else ""
    if row["usd"] is None:
        return unknown.removeprefix(" + ")
    return f"${row['usd']:.4f}{unknown}"


def messages_table(rows: Sequence[Mapping[str, Any]]) -> TableText:
    cells = (
        (
            row["time"][11:19],
            "" if row["thread"] == "main" else row["thread"],
            row["kind"],
            one_line(row["text"], _WIDEST),
        )
        for row in rows
    )
    return render_table("", ("at", "agent", "what", "text"), cells)


def files_table(tallies: Sequence[Mapping[str, Any]]) -> TableText:
    """What was found in each file."""
    columns = ("file", "form", "is", "states", "rows", "bad", "again", "copied", "problems")
    cells = (
        (
            tally["file"],
            tally["form"] or "unknown",
            tally["verdict"],
            tally["states"],
            tally["rows"],
            tally["bad"] or "",
            tally["repeated"] or "",
            tally["copied"] or "",
            "; ".join(tally["problems"][:2]),
        )
        for tally in tallies
    )
    return render_table("", columns, cells)
