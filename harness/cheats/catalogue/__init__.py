"""Every attack and every control. Variants of one mechanism stand here once."""

from harness.cheats.attack import Attack
from harness.cheats.catalogue.accounts import ACCOUNTS
from harness.cheats.catalogue.between_lines import BETWEEN_LINES
from harness.cheats.catalogue.control_files import CONTROL_FILES
from harness.cheats.catalogue.controls import CONTROLS as CONTROLS
from harness.cheats.catalogue.data import DATA
from harness.cheats.catalogue.data_elsewhere import DATA_ELSEWHERE
from harness.cheats.catalogue.decisions import DECISIONS
from harness.cheats.catalogue.evaluators import EVALUATORS
from harness.cheats.catalogue.experiments import EXPERIMENTS
from harness.cheats.catalogue.judge_attacks import JUDGE
from harness.cheats.catalogue.prediction_files import PREDICTION_FILES
from harness.cheats.catalogue.predictors import PREDICTORS
from harness.cheats.catalogue.records import RECORDS
from harness.cheats.catalogue.registered import REGISTERED
from harness.cheats.catalogue.secret_labels import SECRET_LABELS
from harness.cheats.catalogue.sessions import SESSIONS
from harness.cheats.catalogue.texts import TEXTS
from harness.cheats.catalogue.tool_calls import TOOL_CALLS
from harness.cheats.catalogue.training import TRAINING
from harness.cheats.catalogue.training_programs import TRAINING_PROGRAMS

ATTACKS: tuple[Attack, ...] = (
    *TRAINING,
    *ACCOUNTS,
    *EVALUATORS,
    *EXPERIMENTS,
    *DATA,
    *DATA_ELSEWHERE,
    *BETWEEN_LINES,
    *PREDICTORS,
    *PREDICTION_FILES,
    *SECRET_LABELS,
    *RECORDS,
    *CONTROL_FILES,
    *TOOL_CALLS,
    *SESSIONS,
    *JUDGE,
    *REGISTERED,
    *TRAINING_PROGRAMS,
    *TEXTS,
    *DECISIONS,
)
