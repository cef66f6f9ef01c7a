"""Every error that the harness raises on purpose.

* HarnessError                 the root; carries code, message and hint, never a bare string
  * UsageError                 the caller's input is wrong; exit code 2
    * PlanError                plan.md does not say what the harness needs
    * ConfigError              .harness/config.toml or the environment is wrong
    * NotFoundError            a named project, experiment or run does not exist
    * TransitionError          a status change that the transition table forbids
    * RefusedError             a person's command below an agent, a spent budget, a wrong order
  * LedgerError                the ledger cannot be read or written; exit code 3
    * LedgerDamagedError       the database or a fact is not what was written
    * LedgerBusyError          another process held the write lock beyond the timeout
    * LedgerReadOnlyError      the ledger's folder or file cannot be written
  * SandboxError               the required isolation could not be set up; exit code 3
  * GatewayError               the model gateway could not answer; exit code 3
    * ScenarioError            what a session did is not what its scenario says; exit code 2
  * SessionError               an agent's session cannot be continued; exit code 3
  * RunError                   a training process could not be launched or watched; exit code 3
  * MissingExtraError          an optional dependency is not installed; exit code 2
  * Interrupted                Ctrl-C, where more is known than the verb; exit code 130

FAIL, INCONCLUSIVE and deny are values, not errors.
"""


class HarnessError(Exception):
    r"""What went wrong, as data.

    Args:
        message: what, which, and what was expected, in one or two sentences.
        hint: the next step for the person who reads it.
            Lone surrogates, which no output can encode, are escaped as `\udcff` in both.
        code: stable identifier in snake case; defaults to the class's own.
    """

    code = "harness_failed"
    exit_code = 3

    def __init__(self, message: str, *, hint: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = (
            text.encode("utf-8", "backslashreplace").decode("utf-8") for text in (message, hint)
        )
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class UsageError(HarnessError):
    code = "usage"
    exit_code = 2


class PlanError(UsageError):
    code = "plan_invalid"
    problems: tuple[HarnessError, ...] = ()
    """What it lists, where it lists several."""


class ConfigError(UsageError):
    code = "config_invalid"


class NotFoundError(UsageError):
    code = "not_found"


class TransitionError(UsageError):
    code = "transition_forbidden"


class RefusedError(UsageError):
    code = "refused"


class Interrupted(HarnessError):
    code = "interrupted"
    exit_code = 130


class MissingExtraError(UsageError):
    code = "extra_missing"


FROM = "from where the harness came"
"""For hints that install it: no index has it, a clone or a folder of its wheels does."""
BASE = f"`pip install experiment-harness`, {FROM}"
ALONE = "`pipx install PATH-OF-THE-CLONE`, or `uv tool install PATH-OF-THE-CLONE`"
"""Out of reach of a project's environment."""
LOOP = f"`pip install 'experiment-harness[loop]'`, {FROM}"
"""How the Agent SDK is installed."""
TRAIN = f"`pip install 'experiment-harness[train]'`, {FROM}"
"""How torch and what it needs are installed beside the harness."""
REPORT = f"`pip install 'experiment-harness[report]'`, {FROM}"
"""How the writer of PDF is installed."""


class LedgerError(HarnessError):
    code = "ledger_failed"


class LedgerDamagedError(LedgerError):
    code = "ledger_damaged"


class LedgerBusyError(LedgerError):
    code = "ledger_busy"


class LedgerReadOnlyError(LedgerError):
    code = "ledger_read_only"


class SandboxError(HarnessError):
    code = "sandbox_failed"


class GatewayError(HarnessError):
    code = "gateway_failed"


class ScenarioError(GatewayError):
    code = "scenario_unfit"
    exit_code = 2


class SessionError(HarnessError):
    code = "session_failed"


class RunError(HarnessError):
    code = "run_failed"
