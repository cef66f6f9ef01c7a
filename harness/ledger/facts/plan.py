"""Plans: approved by a person, each version once."""

from collections.abc import Mapping
from typing import Any, ClassVar

from harness.domain.late import dataclass
from harness.errors import RefusedError
from harness.files import canonical_json, sha256_bytes
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    NEWEST_FIRST,
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    State,
    from_body,
    log,
    require_new,
    without,
)
from harness.ledger.schema import INTEGER, JSON, TEXT, Table, keys, log_columns, optional, required


@dataclass(frozen=True, kw_only=True)
class PlanApproved(Fact):
    KIND: ClassVar[str] = "plan_approved"
    EXACT: ClassVar[frozenset[str]] = frozenset({"path", "content", "splits", "scorer"})
    MAKES: ClassVar[tuple[str, ...]] = ("name", "version")
    name: str
    version: int  # 1 for the first approval of this plan, then 2, 3, ...
    path: str  # of plan.md, relative to the project
    sha256: str  # of plan.md's exact bytes, kept in the vault under this hash
    content: dict[str, Any]  # the validated front matter
    # train, validation, held_out -> {sha256, rows, inputs, label, id, group}, path, vault, or both;
    # a later one has in_train, a hidden one hidden and moved_from
    splits: dict[str, Any]
    # {name, sha256, files: {relative path: sha256}}, with packages environment: {folder, sha256}
    scorer: dict[str, Any]
    by: str
    tree: dict[str, str] | None = None  # where its data lay: {id, worktree, branch, commit}

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        version = body["version"]
        if version < 1 or (version > 1 and state.get("plans", body["name"], version - 1) is None):
            raise RefusedError(
                f"Version {version} of plan {body['name']!r} does not follow the last one.",
                hint="Approve the next version.",
            )
        require_new(state, "plans", body["name"], version)

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        name, version = body["name"], body["version"]
        data = {split: entry.get("sha256") for split, entry in body["splits"].items()}
        basis = basis_of(body["content"], data, body["scorer"])
        before = (state.get("plans", name, number) for number in range(1, version))
        same = (row["version"] for row in before if row is not None and row["basis"] == basis)
        comparison = next(same, version)
        state.insert("plans", body | {"basis": basis, "comparison": comparison} | log(fact))


REHEARSAL = ".rehearsal-"
"""In the name under which a clone plays a scenario, before its writer: nothing that it counts is
counted elsewhere, and elsewhere it is no plan in force."""
IN_FORCE = (
    "SELECT * FROM plans"
    f" WHERE writer = :own OR replace(name, '{REHEARSAL}', '') = name"
    f" ORDER BY {NEWEST_FIRST} LIMIT 1"
)
JUDGES = ("metric", "scorer", "positive", "predict", "direction", "seeds")
"""Of a plan's oracle: with another of them scores are other numbers, or of other runs."""
_COLUMNS = ("inputs", "label", "id")


def scorer_parts(scorer: Mapping[str, Any]) -> dict[str, str]:
    """What was frozen of a scorer: path -> SHA-256, and of its packages together."""
    packages = scorer.get("environment")
    more = {} if packages is None else {"packages of the scorer": packages["sha256"]}
    return {**scorer["files"], **more}


def basis_of(
    content: Mapping[str, Any], data: Mapping[str, str | None], scorer: Mapping[str, Any]
) -> str:
    """Hash of all that makes scores comparable: the data (split -> hash) and its columns, the
    oracle, the scorer's bytes, the number of seeds. What else a plan says begins no comparison."""
    tables, oracle = content.get("data", {}), content.get("oracle", {})
    held_out = tables.get("held_out", {})
    parts = [
        dict(data),
        {name: held_out.get(name) for name in _COLUMNS} | {"group": tables.get("group")},
        {name: oracle.get(name) for name in JUDGES},
        dict(scorer.get("files", {})),
        *([scorer["environment"]["sha256"]] if "environment" in scorer else []),
    ]
    return sha256_bytes(canonical_json(parts))


@dataclass(frozen=True, kw_only=True)
class ApprovedPlan(PlanApproved):
    at: str
    basis: str
    """As `basis_of` says. Seeds are drawn from it."""
    comparison: int
    """The first version with this basis: seeds, scores and verdicts since then count."""


Table(
    "plans",
    *keys(TEXT, "name"),
    *keys(INTEGER, "version"),
    *required(TEXT, "path", "sha256"),
    *required(JSON, "content", "splits", "scorer"),
    *required(TEXT, "by", "basis"),
    *required(INTEGER, "comparison"),
    *optional(JSON, "tree"),
    *log_columns(),
)


class PlanLedger(LedgerPart):
    def plan(self) -> ApprovedPlan | None:
        """The plan that was approved last; not what another clone plays a scenario under."""
        rows = self._rows(IN_FORCE, own=self.writer)
        return _approved(rows[0]) if rows else None

    def plans(self) -> list[ApprovedPlan]:
        """All approvals, oldest first."""
        rows = self._rows(f"SELECT * FROM plans ORDER BY {OLDEST_FIRST}")
        return [_approved(row) for row in rows]


def _approved(row: dict[str, Any]) -> ApprovedPlan:
    return from_body(ApprovedPlan, without(row, "writer", "seq"))


FACTS: tuple[type[Fact], ...] = (PlanApproved,)
