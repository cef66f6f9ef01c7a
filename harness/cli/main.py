"""The command table, and the one place where errors become exit codes.

Exit codes: 0 done, for gates only PASS; 1 the answer is no; 2 usage or configuration; 3 the harness
failed; 130 interrupted.
"""

import gc
import importlib
import os
import re
import sys
from typing import TYPE_CHECKING

import click

from harness.cli.clean_start import start_clean
from harness.cli.output import CommandGroup, emit, fail, tell
from harness.contract.meant import MORE, OPTIONS
from harness.domain.disk_errors import disk_error, written_to
from harness.domain.ids import is_experiment_id
from harness.domain.late import later
from harness.errors import LOOP, HarnessError, MissingExtraError
from harness.judge import client
from harness.judge.identity import end_with_server

if TYPE_CHECKING:
    import traceback
else:
    traceback = later("traceback")

# command -> module:attribute. A module is imported when its command runs: `harness status` must
# not pay for the imports of `harness train`.
COMMANDS: dict[str, str] = {
    "init": "harness.cli.init:command",
    "doctor": "harness.cli.doctor:command",
    "demo": "harness.cli.demo:command",
    "run": "harness.cli.run:command",
    "continue": "harness.cli.run:continue_command",
    "scenario": "harness.cli.scenario:command",
    "status": "harness.cli.status:command",
    "report": "harness.cli.report:command",
    "cost": "harness.cli.cost:command",
    "data": "harness.cli.data:command",
    "plan": "harness.cli.plan:command",
    "baseline": "harness.cli.baseline:command",
    "try": "harness.cli.try_:command",
    "experiment": "harness.cli.experiment:command",
    "train": "harness.cli.train:command",
    "evaluate": "harness.cli.evaluate:command",
    "gate": "harness.cli.gate:command",
    "gates": "harness.cli.gates:command",
    "phase": "harness.cli.phase:command",
    "keep": "harness.cli.keep:command",
    "reproduce": "harness.cli.reproduce:command",
    "audit": "harness.cli.audit:command",
    "claims": "harness.cli.claims:command",
    "decisions": "harness.cli.decisions:command",
    "recall": "harness.cli.recall:command",
    "postmortem": "harness.cli.postmortem:command",
    "watch": "harness.cli.watch:command",
    "import": "harness.cli.import_log:command",
    "gc": "harness.cli.gc:command",
    "artifacts": "harness.cli.artifacts:command",
    "handoff": "harness.cli.handoff:command",
    "priors": "harness.cli.priors:command",
    "mcp": "harness.cli.mcp:command",
    "cheats": "harness.cli.cheats:command",
    "posttrain": "harness.cli.posttrain:command",
    "traces": "harness.cli.traces:command",
    "ledger": "harness.cli.ledger:command",
    "render": "harness.cli.render:command",
    "claude": "harness.cli.claude:command",
}


# Printed by `harness --help`, which would otherwise import every command for its first line.
_SDK = "claude_agent_sdk"
SUMMARIES: dict[str, str] = {
    "init": "Make a folder a project.",
    "doctor": "Check that every guard works.",
    "demo": "Run the whole workflow offline: four experiments, one kept.",
    "run": "Run agents on the approved plan.",
    "continue": "Resume an interrupted loop.",
    "scenario": "Write, record and check what a scripted model says.",
    "status": "Show the state of the project.",
    "report": "Show what is kept, what was tried and what it took, as a page.",
    "cost": "Show what models took, by role, experiment and day.",
    "data": "Split a table: held-out and validation rows go to the vault.",
    "plan": "Check or approve a plan.",
    "baseline": "Train the starting code with several seeds, and show their noise.",
    "try": "Try one idea: from a new experiment to the gate's verdict.",
    "experiment": "Open, list, show and compare experiments; write a result.",
    "train": "Train an experiment under supervision.",
    "evaluate": "Recompute an experiment's score.",
    "phase": "Show where the project is; pass a phase, or open one again.",
    "keep": "Keep an experiment: held-out, its gate, the decision.",
    "gate": "Ask a gate for its verdict, or decide as a person.",
    "reproduce": "Train a kept experiment again, and compare the scores.",
    "gates": "Show or set what the loop decides by itself.",
    "audit": "List changes to protected files, and the sessions behind them.",
    "claims": "Check the numbers that texts claim.",
    "decisions": "List who decided what, and why.",
    "recall": "Find what the project remembers about some words.",
    "postmortem": "Show what went wrong with experiments, and why.",
    "watch": "Follow runs while they train.",
    "import": "Record the log of another program.",
    "gc": "Free disk: remove checkpoints that nothing depends on.",
    "artifacts": "Share checkpoints through a folder or a bucket.",
    "handoff": "Leave a note for the next session.",
    "priors": "List, add, check, activate and retire priors (lessons).",
    "mcp": "Serve the agents' tools over stdio.",
    "cheats": "Run known cheats with all defences off, then on.",
    "posttrain": "Specify, run, judge and promote training programs.",
    "traces": "Show agents' sessions, make states of them for training.",
    "ledger": "Verify, rebuild, export or import the facts.",
    "render": "Write the files that derive from the contract.",
    "claude": "Start Claude Code in a sandbox, with the judge outside.",
}


FIVE = ("init", "plan", "try", "keep", "report")
"""From a table to a kept result; the help begins with them."""
_ALLOCATIONS = 100_000
"""From one collection of garbage to the next: what imports make stays, and most commands end
before there is any."""


class LazyGroup(CommandGroup):
    def list_commands(self, _context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        target = COMMANDS.get(name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != _SDK:
                raise
            raise MissingExtraError(
                f"`harness {name}` leads agents by the Agent SDK ({_SDK}), which is not here.",
                hint=f"Install it: {LOOP}. All else works without it.",
            ) from error
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        others = [name for name in COMMANDS if name not in FIVE]
        for title, names in (("From a table to a kept result", FIVE), ("More", others)):
            with formatter.section(title):
                formatter.write_dl([(name, SUMMARIES[name]) for name in names])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="experiment-harness", prog_name="harness")
def harness() -> None:
    """Claude runs machine-learning experiments; the harness decides what is true about them.

    `harness COMMAND --help` says more of each.
    """


def _usage_hint(error: click.ClickException, words: list[str]) -> str:
    """What was meant, else what was expected; and where that is written."""
    context: click.Context = getattr(error, "ctx", None) or _context_of(words)
    path, see = context.command_path, f"See `{context.command_path} --help`."
    if isinstance(error, click.NoSuchOption):
        meant = OPTIONS.get((path, error.option_name))
    else:
        meant = _meant_by_more(path, error.format_message())
    if meant is not None:
        return f"You mean {meant}. {see}"
    if isinstance(error, click.BadOptionUsage):
        return f"Expected `{path} {_with_value(error, context)}`. {see}"
    usage = context.command.get_usage(context).removeprefix("Usage: ")
    return f"Expected `{' '.join(usage.split())}`.{_reasoned(error, context)} {see}"


def _context_of(words: list[str]) -> click.Context:
    """Of the command that `words` begin with: not each error of click says it."""
    context = click.Context(harness, info_name="harness")
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            break
        context = click.Context(found, info_name=word, parent=context)
    return context


def _with_value(error: click.BadOptionUsage, context: click.Context) -> str:
    """The option with what it takes, e.g. "--set KEY=VALUE"."""
    known = [one for one in context.command.params if error.option_name in one.opts]
    takes = known[0].make_metavar(context) if known else "VALUE"
    return f"{error.option_name} {takes}"


def _meant_by_more(path: str, message: str) -> str | None:
    """What is meant by words too many, as click's `message` names them."""
    extra = re.match(r"Got unexpected extra arguments? \((.*)\)", message)
    if extra is None:
        return None
    return MORE.get(path)


def _reasoned(error: click.ClickException, context: click.Context) -> str:
    """An example, where the reason of a decision is missing."""
    if not isinstance(error, click.MissingParameter) or error.param is None:
        return ""
    if error.param.name != "reason":
        return ""
    words = [
        str(context.params.get(one.name or "") or one.human_readable_name)
        for one in context.command.params
        if isinstance(one, click.Argument)
    ]
    line = " ".join((context.command_path, *words))
    return f' E.g. `{line} --reason "It is simpler and as good."`.'


def _said(error: click.ClickException) -> str:
    """Click's words; where a table says what is meant, or only --help is near, nothing is near."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        known = (error.ctx.command_path, error.option_name) in OPTIONS
        near = [] if known else list(error.possibilities or ())
        near = [name for name in near if name != "--help"]
        error = click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx)
    return error.format_message()


_KEPT = "completed seeds are not repeated."
_OPEN = "`harness status` lists open experiments; resume with `harness try --continue`"


def after_interrupt(words: list[str]) -> str:
    """How to resume the interrupted command in `words`; `continue` resumes only the loop."""
    verb = words[0] if words and words[0] in COMMANDS else ""
    if verb in ("run", "continue"):
        return "Resume with `harness continue`."
    named = next((word for word in words[1:] if is_experiment_id(word)), "EXP")
    if verb == "try" and "--continue" in words and named != "EXP":
        return f"Go on with `harness try {named} --continue`; {_KEPT}"
    if verb == "try":  # once it has opened one, it names it itself
        return f"{_OPEN}; {_KEPT}"
    if verb in ("train", "evaluate"):
        return f"Resume with `harness {verb} {named}`; {_KEPT}"
    return f"See `harness {verb} --help`." if verb else "Nothing in the ledger is lost."


def main(arguments: list[str] | None = None) -> None:
    """The `harness` command. A HarnessError never prints a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] == "help":
        words = [*words[1:], "--help"]
    if client.SOCKET in os.environ:  # inside the sandbox of `harness claude`: the judge is outside
        sys.exit(client.ask(words, os.environ))
    end_with_server(os.environ)
    gc.set_threshold(_ALLOCATIONS)
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        if arguments is None:
            start_clean()
        result = harness.main(args=words, prog_name="harness", standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as asked:
        emit({}, asked.format_message(), as_json=False)
        sys.exit(0)
    except click.ClickException as error:
        fail("usage", _said(error), _usage_hint(error, words), 2, as_json=as_json)
    except (KeyboardInterrupt, click.Abort):
        fail("interrupted", "Interrupted.", after_interrupt(words), 130, as_json=as_json)
    except HarnessError as error:
        fail(error.code, error.message, error.hint, error.exit_code, as_json=as_json)
    except BrokenPipeError:
        sys.stderr.close()  # the reader is gone; Python would complain while flushing
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the boundary: a bug of ours ends as exit 3
        known = None
        if isinstance(error, OSError):
            known = disk_error(error, written_to(os.environ))
        if known is not None:
            fail(known.code, known.message, known.hint, known.exit_code, as_json=as_json)
        tell(traceback.format_exc())
        fail(
            "harness_failed",
            f"The harness failed: {type(error).__name__}: {error}.",
            "Nothing in the ledger is lost; please report the traceback above.",
            3,
            as_json=as_json,
        )


if __name__ == "__main__":
    main()
