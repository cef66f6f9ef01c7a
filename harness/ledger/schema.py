"""The ledger's tables.

`facts` is the truth. The tables of `STATE` are what the facts add up to; they can be dropped and
replayed. `meta`, `migrations`, `projections`, `checklist_rows` and `spooled` are book-keeping and
are not replayed.
"""

import sqlalchemy as sa

APPLICATION_ID = 0x48524E53  # "HRNS" in SQLite's header: tells a ledger from any other database

metadata = sa.MetaData()

_JSON = sa.JSON(none_as_null=True)


def _log_columns() -> list[sa.Column]:  # type: ignore[type-arg]
    """Which fact made the row; (at, writer, seq) is the order of all facts, the same in every
    clone."""
    return [
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
    ]


meta = sa.Table(
    "meta",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
)

facts = sa.Table(
    "facts",
    metadata,
    sa.Column(
        "position", sa.Integer, primary_key=True
    ),  # the order in which this database got to know them
    sa.Column("writer", sa.Text, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("prev", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("writer", "seq"),
    sa.Index("facts_at", "at"),
)

projections = sa.Table(
    "projections",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("changed", sa.Integer, nullable=False),  # position of the last fact that it shows
    sa.Column("written", sa.Integer, nullable=False),  # position up to which the file was written
    sa.Column("note", _JSON),  # what the writer of the file wants to know next time, e.g. its size
)

checklist_rows = sa.Table(
    "checklist_rows",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("dirty", sa.Integer, nullable=False),
    sa.Index("checklist_rows_dirty", "dirty"),
)

spooled = sa.Table("spooled", metadata, sa.Column("name", sa.Text, primary_key=True))

plans = sa.Table(
    "plans",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("content", _JSON, nullable=False),
    sa.Column("splits", _JSON, nullable=False),
    sa.Column("scorer", _JSON, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    *_log_columns(),
)

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False, unique=True),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("hypothesis", sa.Text, nullable=False),
    sa.Column("parent", sa.Text),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("plan_version", sa.Integer, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("session", sa.Text),
    sa.Column("opened_at", sa.Text, nullable=False),
    sa.Column(
        "validation", sa.Float
    ),  # the last verdict's mean on that split, for the search of the best
    sa.Column("held_out", sa.Float),
    sa.Column("summary", _JSON, nullable=False),  # what CHECKLIST.md shows of it: see apply.py
    sa.Index("experiments_status", "status"),
    sa.Index("experiments_parent", "parent"),
    sa.Index("experiments_validation", "plan", "status", "validation"),
    sa.Index("experiments_held_out", "plan", "status", "held_out"),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("argv", _JSON, nullable=False),
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("data", _JSON, nullable=False),
    sa.Column("environment", _JSON, nullable=False),
    sa.Column("sandbox", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("session", sa.Text),
    sa.Column("registered_at", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer),
    sa.Column("boot", sa.Text),
    sa.Column("started", sa.Float),
    sa.Column("supervisor", _JSON, nullable=False),
    sa.Column("started_at", sa.Text),
    sa.Column("ended_at", sa.Text),
    sa.Column("exit_code", sa.Integer),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("files", _JSON, nullable=False),
    sa.Column("findings", _JSON, nullable=False),
    sa.Index("runs_status", "status"),
)

alarms = sa.Table(
    "alarms",
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("alarm", _JSON, nullable=False),
    sa.Index("alarms_experiment", "experiment", "run"),
)

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("bytes", sa.Integer, nullable=False),
    sa.Column("epoch", sa.Integer),
    sa.Column("final", sa.Boolean, nullable=False),
    *_log_columns(),
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("split", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Index("evaluations_experiment", "experiment"),
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("gate", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    *_log_columns(),
    sa.Index("verdicts_number", "number"),
    sa.Index("verdicts_experiment", "experiment", "number"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text),
    sa.Column("record", _JSON, nullable=False),
    *_log_columns(),
    sa.Index("decisions_number", "number"),
    sa.Index("decisions_experiment", "experiment", "number"),
)

queries = sa.Table(
    "queries",
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("split", sa.Text, nullable=False),
    sa.Column("query", sa.Integer, nullable=False),
    sa.Index("queries_split", "plan", "split"),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text),
    sa.Column("step", sa.Text, nullable=False),
    sa.Column("sandbox", sa.Text, nullable=False),
    sa.Column("driver", _JSON, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("ended_at", sa.Text),
    sa.Column("outcome", sa.Text),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("turns", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Float),
    sa.Column("usage", _JSON, nullable=False),
    *_log_columns(),
    sa.Index("sessions_ended", "ended_at"),
)

hand_offs = sa.Table(
    "hand_offs",
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),  # of the fact; names the file that shows it
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("session", sa.Text),
    sa.Column("experiment", sa.Text),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("hand_offs_at", "at"),
)

priors = sa.Table(
    "priors",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Column("superseded_by", sa.Text),
    *_log_columns(),
    sa.Index("priors_number", "number"),
)

notes = sa.Table(
    "notes",  # loop ends and tampering: facts that nothing else is counted from
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Index("notes_kind", "kind", "at"),
)

programs = sa.Table(
    "programs",
    metadata,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("record", _JSON, nullable=False),
    *_log_columns(),
)

judgements = sa.Table(
    "judgements",
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Index("judgements_experiment", "experiment"),
)

models = sa.Table(
    "models",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),  # the checkpoint's content hash
    sa.Column("profile", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("since", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    *_log_columns(),
)

model_records = sa.Table(
    "model_records",  # evaluations, shadow observations and moves of models
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("number", sa.Integer),  # of an evaluation
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Index("model_records_model", "model", "kind"),
    sa.Index("model_records_number", "number"),
)

servings = sa.Table(
    "servings",
    metadata,
    sa.Column("writer", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("profile", sa.Text, nullable=False),
    sa.Column("record", _JSON, nullable=False),
    sa.Index("servings_profile", "profile", "at"),
)

STATE: tuple[sa.Table, ...] = (
    plans,
    experiments,
    runs,
    alarms,
    checkpoints,
    evaluations,
    verdicts,
    decisions,
    queries,
    sessions,
    hand_offs,
    priors,
    notes,
    programs,
    judgements,
    models,
    model_records,
    servings,
)

PROJECTIONS: tuple[str, ...] = (
    "checklist",
    "decision_log",
    "state",
    "briefing",
    "hand_offs",
    "priors",
    "facts",
)


def primary_key(table: sa.Table) -> tuple[str, ...]:
    """The names of the table's key columns, in order."""
    return tuple(column.name for column in table.primary_key.columns)
