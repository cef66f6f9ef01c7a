"""What the ledger answers about training programs and their models, and how evaluations of models
get their number."""

from typing import Any

import sqlalchemy as sa

from harness.domain.models import (
    Judgement,
    Model,
    ModelEvaluation,
    ModelHistory,
    ModelMove,
    ModelState,
    Program,
    Serving,
    ShadowObservation,
)
from harness.domain.program_facts import ModelEvaluated
from harness.errors import NotFoundError, UsageError
from harness.ledger.schema import judgements, model_records, models, programs, servings
from harness.ledger.writes import LedgerWrites

_SHORTEST = 8
"""Characters of a model's id that a person has to type."""


class LedgerPrograms(LedgerWrites):
    """The part of `Ledger` about training programs, upon the writing half. Lists are oldest
    first."""

    def program(self, experiment: str) -> Program | None:
        """The specification that the experiment holds; None for an experiment that is no training
        program."""
        found = self._fetch(sa.select(programs).where(programs.c.experiment == experiment))
        return _program(found[0]) if found else None

    def programs(self) -> list[Program]:
        return [
            _program(row) for row in self._fetch(sa.select(programs).order_by(*_oldest(programs)))
        ]

    def judgements(self, experiment: str) -> list[Judgement]:
        query = (
            sa.select(judgements)
            .where(judgements.c.experiment == experiment)
            .order_by(*_oldest(judgements))
        )
        return [
            Judgement(
                **{**row["record"], "problems": tuple(row["record"]["problems"]), "at": row["at"]}
            )
            for row in self._fetch(query)
        ]

    def models(self, *, experiment: str | None = None) -> list[Model]:
        found = [_model(row) for row in self._fetch(sa.select(models).order_by(*_oldest(models)))]
        return [item for item in found if experiment is None or item.experiment == experiment]

    def model(self, identifier: str) -> Model:
        """By its content hash, or the beginning of it (8 characters or more) when only one begins
        so.

        Raises NotFoundError, or UsageError when several do.
        """
        query = (
            sa.select(models).where(models.c.id.startswith(identifier, autoescape=True)).limit(2)
        )
        found = self._fetch(query) if len(identifier) >= _SHORTEST else []
        if len(found) > 1:
            raise UsageError(
                f"Several models begin with {identifier!r}.", hint="Give more of the id."
            )
        if not found:
            raise NotFoundError(
                f"There is no model {identifier!r}; give at least {_SHORTEST} characters of"
                " its id.",
                hint="`harness posttrain status` lists the models.",
            )
        return _model(found[0])

    def model_history(self, model: str) -> ModelHistory:
        query = (
            sa.select(model_records)
            .where(model_records.c.model == model)
            .order_by(*_oldest(model_records))
        )
        rows = self._fetch(query)
        return ModelHistory(
            evaluations=tuple(_evaluation(row) for row in rows if row["kind"] == "model_evaluated"),
            observations=tuple(
                ShadowObservation(**row["record"], at=row["at"], hash=row["hash"])
                for row in rows
                if row["kind"] == "shadow_observed"
            ),
            moves=tuple(_move(row) for row in rows if row["kind"] == "model_moved"),
        )

    def servings(self, profile: str) -> list[Serving]:
        """The pointer's whole history; the last one is what is served now."""
        query = (
            sa.select(servings).where(servings.c.profile == profile).order_by(*_oldest(servings))
        )
        return [Serving(**row["record"], at=row["at"]) for row in self._fetch(query)]

    def record_model_evaluation(self, **fields: Any) -> ModelEvaluation:
        """`fields`: those of ModelEvaluated without evaluation."""
        with self.transaction() as writer:
            highest = sa.select(sa.func.max(model_records.c.number))
            number = int(writer.connection.execute(highest).scalar() or 0) + 1
            stored = writer.append(ModelEvaluated(evaluation=f"me-{number:04d}", **fields))
            row = writer.state.get("model_records", stored.writer, stored.seq)
            assert row is not None
            return _evaluation(row)

    def _fetch(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _program(row: dict[str, Any]) -> Program:
    return Program(
        **{**row["record"], "warnings": tuple(row["record"]["warnings"]), "at": row["at"]}
    )


def _model(row: dict[str, Any]) -> Model:
    body = {name: value for name, value in row["record"].items() if name != "model"}
    return Model(
        **body, id=row["id"], state=ModelState(row["state"]), since=row["since"], at=row["at"]
    )


def _evaluation(row: dict[str, Any]) -> ModelEvaluation:
    body = {name: value for name, value in row["record"].items() if name != "evaluation"}
    low_high = body["interval"]
    body |= {
        "interval": None if low_high is None else (low_high[0], low_high[1]),
        "problems": tuple(body["problems"]),
    }
    return ModelEvaluation(**body, id=row["record"]["evaluation"], at=row["at"], hash=row["hash"])


def _move(row: dict[str, Any]) -> ModelMove:
    body = {**row["record"], "checks": tuple(row["record"]["checks"])}
    return ModelMove(
        **{**body, "before": ModelState(body["before"]), "after": ModelState(body["after"])},
        at=row["at"],
    )


def _oldest(table: sa.Table) -> tuple[Any, ...]:
    return (table.c.at, table.c.writer, table.c.seq)
