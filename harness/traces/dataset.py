"""Training rows written as a dataset: split by session, with a manifest and a card."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from harness.domain.plain_text import cell
from harness.domain.words import some
from harness.errors import UsageError
from harness.files import atomic_write, pretty_json, replacing, sha256_file
from harness.traces.contexts import Row, StateFile
from harness.traces.ingest import manifest_of, require_new
from harness.traces.training_rows import (
    Kind,
    Made,
    Settings,
    training_rows,
)

_USES = {
    Kind.PAIRS: "preference pairs (DPO, ORPO, the composed trainer)",
    Kind.SFT: "completions (SFT)",
    Kind.KTO: "labelled completions (KTO)",
    Kind.HINTS: "hint-conditioned contexts (self-distillation)",
}


Maker = Callable[[StateFile, Settings, Made], Iterator[Row]]
"""Of training rows."""


def write_dataset(
    states: Path,
    target: Path,
    settings: Settings,
    *,
    held_out: float,
    maker: Maker = training_rows,
) -> dict[str, Any]:
    """Write training rows of `states` to `target`, and those of a share `held_out` of the sessions
    to `<target's stem>.held_out.jsonl`, each with a manifest beside it. Returns that of `target`.

    Which session is held out its id alone says, so it is the same in each dataset. Raises
    UsageError when there is no row, or a file is there already.
    """
    aside = target.with_suffix(".held_out.jsonl")
    both = (target, aside) if held_out else (target,)
    require_new(*both)
    made, counts = Made(), Counter[str]()
    sessions: dict[str, set[str]] = {"train": set(), "held_out": set()}
    seen = {name: Counter[str]() for name in ("models", "licences", "consent", "forms")}
    with ExitStack() as opened:
        streams = {"train": opened.enter_context(replacing(target, mode=0o600)).stream}
        if held_out:
            streams["held_out"] = opened.enter_context(replacing(aside, mode=0o600)).stream
        for row in maker(StateFile(states), settings, made):
            named = row["provenance"]["sessions"]
            parts = {part_of(session, held_out) for session in named}
            if len(parts) > 1:
                made.skipped["of sessions on both sides of the split"] += 1
                continue
            (part,) = parts
            streams[part].write(orjson.dumps(row) + b"\n")
            counts[part] += 1
            sessions[part].update(named)
            seen["models"][row["provenance"]["generator"]] += 1
            seen["licences"][row["licence"]] += 1
            seen["consent"]["given" if row["consent"] else "not given"] += 1
        if not counts["train"]:
            raise UsageError(
                f"No row of the kind {settings.kind} for training in {states}:"
                f" {dict(made.skipped) or 'no state gives one'}.",
                hint="docs/traces.md says what each kind is made of.",
            )
        require_new(*both)  # another command may have made it meanwhile
    manifest = {
        **_told_of(target, settings, counts["train"], sessions["train"]),
        "held_out": counts["held_out"],
        "held_out_sessions": len(sessions["held_out"]),
        "states_sha256": sha256_file(states),
        "reasons": dict(made.reasons),
        "skipped": dict(made.skipped),
        "contexts_cut": made.cut,
        **{name: dict(found) for name, found in seen.items() if found},
    }
    atomic_write(manifest_of(target), pretty_json(manifest), mode=0o600)
    if held_out:
        told = _told_of(aside, settings, counts["held_out"], sessions["held_out"])
        atomic_write(manifest_of(aside), pretty_json(told), mode=0o600)
    return manifest


def _told_of(path: Path, settings: Settings, rows: int, sessions: set[str]) -> dict[str, Any]:
    """What the manifest of each part says."""
    return {
        "kind": settings.kind.value,
        "rows": rows,
        "sha256": sha256_file(path),
        "sessions": sorted(sessions),
    }


def part_of(session: str, held_out: float) -> str:
    """`held_out` for a share of all ids, else `train`."""
    first = int.from_bytes(hashlib.sha256(session.encode()).digest()[:8], "big")
    return "held_out" if first < held_out * 2**64 else "train"


def card(
    target: Path, manifest: Mapping[str, Any], *, contamination: Mapping[str, Any] | None
) -> str:
    """The dataset's card, as Hugging Face shows it."""
    licences = sorted(manifest["licences"])
    known = len(licences) == 1 and licences[0] != "None"
    kind = Kind(manifest["kind"])
    lines = [
        "---",
        f"license: {licences[0].lower() if known else 'other'}",
        "tags: [agent-traces]",
        "---",
        f"# {target.stem}",
        "",
        f"{some(manifest['rows'], 'row')}, {_USES[kind]}, of"
        f" {some(len(manifest['sessions']), 'session')} of agents. Held out:"
        f" {some(manifest['held_out'], 'row')} of"
        f" {some(manifest['held_out_sessions'], 'other session')}. Made by `harness traces rows`.",
        "",
        "| what | rows |",
        "|---|---|",
        *(f"| {reason} | {count} |" for reason, count in manifest["reasons"].items()),
        *(f"| left out: {reason} | {count} |" for reason, count in manifest["skipped"].items()),
        *(f"| answers by {_by(model)} | {count} |" for model, count in manifest["models"].items()),
        *(f"| licence {cell(each)} | {count} |" for each, count in manifest["licences"].items()),
        *(f"| consent {said} | {count} |" for said, count in manifest["consent"].items()),
        "",
        f"{manifest['contexts_cut']} contexts lost their oldest messages.",
        "",
        _told(contamination),
        "",
        *_circular(manifest.get("circularity") or {}),
        "What is better was decided by what happened afterwards, not by a person who compared both"
        " answers. The answers are a model's: a student of its family that learns from them learns"
        " its own errors too. Secrets, addresses and names were redacted by patterns, which do not"
        " find everything.",
        "",
    ]
    return "\n".join(lines)


def _circular(told: Mapping[str, Any]) -> list[str]:
    """A warning for each finding of `teachers.circularity`."""
    if not told:
        return []
    roles = [f"{role} {cell(told[role]['model'])}" for role in ("teacher", "judge") if told[role]]
    lines = [
        f"- **Circular**: the {one['kind']}, {one['rows']} rows ({one['share']:.0%})."
        for one in told["findings"]
    ]
    families = ", ".join(map(cell, told["families"])) or "unknown"
    named = ", ".join(roles) or "none is named"
    return [
        f"Teacher and judge: {named}. Families of the authors of the traces: {families}.",
        "",
        *(lines or ["No model stands on two sides, as far as names tell."]),
        "",
    ]


def _by(model: str) -> str:
    return cell(model) if model else "unknown"


def _told(contamination: Mapping[str, Any] | None) -> str:
    if contamination is None:
        return "Nothing is held out, so contamination was not looked for."
    kinds = ", ".join(f"{count} by {kind}" for kind, count in contamination["kinds"].items())
    return (
        f"Of {contamination['rows']} held-out rows {contamination['count']} are told by training"
        f" rows{f' ({kinds})' if kinds else ''}."
    )
