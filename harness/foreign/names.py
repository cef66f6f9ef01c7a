"""What the names in a log are for: position, time, learning rate, total, progress, or metric."""

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple


class Kind(Enum):
    METRIC = auto()
    POSITION = auto()
    AXIS = auto()
    """A position only in a row that has no other; else a value like any other."""
    EPOCH = auto()
    BATCH = auto()
    """A counter that starts anew with each epoch."""
    TOTAL = auto()
    TIME = auto()
    CLOCK = auto()
    """A time of day, or the seconds that a step took: its size tells."""
    RATE = auto()
    PROGRESS = auto()
    """How far, how long or where: no metric."""


class Meaning(NamedTuple):
    kind: Kind
    unit: str = ""
    """What a position or a total counts."""
    rank: int = 0
    """Of several positions in one row the least counts."""


# In the order of their rank. Capitals and the signs between words do not matter.
_POSITIONS = """
step: step global_step current_step
step: current_steps global_steps num_steps
step: train_step training_step steps_done
step: optimizer_step trainer_global_step
update: num_updates
iteration: training_iteration
timestep: total_timesteps timesteps_total
timestep: timestep timesteps env_step
timestep: env_steps total_env_steps
timestep: num_env_steps_sampled
timestep: num_env_steps_sampled_lifetime
timestep: totalenvinteracts env_frames
timestep: total_frames total_timestep
iteration: iteration iter itr it niter
iteration: learning_iteration iter_num
iteration: boosting_iteration n_iter
iteration: current_iteration iterations
update: update updates n_updates nupdates
episode: episode episodes episode_number
episode: n_episodes num_episodes
episode: episodes_total
round: round rounds boosting_round
generation: generation gen
tick: tick
"""
_AXES = """
step: steps
timestep: frames frame
tokens: tokens total_tokens tokens_seen
tokens: consumed_tokens trained_tokens
tokens: num_tokens n_tokens
tokens: num_input_tokens_seen
samples: samples consumed_samples
samples: samples_seen num_samples
samples: n_samples examples train_size
samples: examples_seen num_examples
samples: images images_seen kimg
hours: hours
minutes: minutes
seconds: seconds
"""
_TOTALS = """
step: total_steps max_steps
step: num_training_steps
epoch: total_epochs num_epochs
epoch: max_epochs epochs n_epochs
iteration: max_iters total_iterations
iteration: max_iterations num_iterations
"""
_OTHERS = {
    Kind.EPOCH: "epoch current_epoch epoch_num train_epoch",
    Kind.BATCH: "batch batch_idx batch_index minibatch",
    Kind.TIME: "t timestamp wall_time ts datetime date_time",
    Kind.CLOCK: "time date",
    Kind.RATE: "learning_rate lr",
    Kind.PROGRESS: """
        percentage percent progress pct total
        eta eta_seconds remaining remaining_time
        time_remaining remaining_seconds elapsed
        elapsed_time time_elapsed runtime v_num
        seed rank local_rank pid port world_size
        line lineno hostname node gpu trial fold
        time_since_restore time_total_s
        iterations_since_restore
        timesteps_since_restore
        timesteps_this_iter episodes_this_iter
        epoch_loaded best_epoch
    """,
}
_PARTS = frozenset(
    {"train", "training", "trainer", "time", "misc", "global"},
)
_PARTS |= {"progress", "counters", "rollout", "charts"}
"""Before a "/": "train/step" is the training's step, "val/step" is not."""
_CUMULATIVE = frozenset(
    {"consumed_samples", "consumed_tokens", "kimg"},
)
_CUMULATIVE |= {"trained_tokens", "num_input_tokens_seen"}
_BETWEEN = re.compile(r"[\W_]+")


def _table() -> dict[str, Meaning]:
    table: dict[str, Meaning] = {}
    tables = (
        (Kind.POSITION, _POSITIONS),
        (Kind.AXIS, _AXES),
        (Kind.TOTAL, _TOTALS),
    )
    for kind, text in tables:
        lines = text.split("\n")
        for rank, line in enumerate(lines):
            unit, _, names = line.partition(": ")
            found = Meaning(kind, unit, rank)
            table |= dict.fromkeys(names.split(), found)
    for kind, text in _OTHERS.items():
        table |= dict.fromkeys(text.split(), Meaning(kind))
    return table


_MEANINGS = _table()
_METRIC = Meaning(Kind.METRIC)
_WHOLE_NAMES = {
    # The DDPG of Baselines counts what was done.
    "total/steps": Meaning(Kind.POSITION, "timestep"),
    "total/epochs": Meaning(Kind.PROGRESS),
    "total/episodes": Meaning(Kind.PROGRESS),
    "rollout/episodes": Meaning(Kind.PROGRESS),
    # Composer's counters.
    **{
        f"train time/{name}": Meaning(Kind.PROGRESS)
        for name in (
            *("iteration", "epoch", "batch", "sample"),
            *("token", "epoch_in_iteration"),
            *("token_in_iteration", "batch_in_epoch"),
            *("sample_in_epoch", "token_in_epoch"),
        )
    },
}
_NO_METRIC = Meaning(Kind.PROGRESS)


def words(name: str) -> str:
    """A name in small letters with "_" between its words: "global_step" of "Global Step"."""
    return _BETWEEN.sub("_", name.lower()).strip("_")


@lru_cache(maxsize=10_000)
def meaning(name: str) -> Meaning:
    """What a value of this name is for."""
    found = _WHOLE_NAMES.get(name.lower()) or _MEANINGS.get(words(name))
    if name.endswith(("__MIN", "__MAX")):  # of a chart that W&B exports
        return _NO_METRIC
    if found is not None or "/" not in name:
        return found or _METRIC
    part, _, last = name.rpartition("/")
    found = _MEANINGS.get(words(last), _METRIC)
    if words(part) in _PARTS and found.kind is not Kind.CLOCK:
        return found
    return _METRIC


@lru_cache(maxsize=10_000)
def unplaced(name: str) -> Meaning:
    """What it is for in a row that another name places."""
    found = meaning(name)
    last = words(name.rpartition("/")[2])
    if found.kind is Kind.AXIS and last not in _CUMULATIVE:
        return _METRIC
    return _NO_METRIC


def is_position(name: str) -> bool:
    """Whether a column of this name places its rows."""
    kinds = Kind.POSITION, Kind.AXIS, Kind.EPOCH
    return meaning(name).kind in kinds
