"""What people type that is no command of ours, and the line that they mean.

The names of git, of other trackers and of the words on our own pages.
"""

_LIST = "`harness experiment list`"
_SHOW = "`harness experiment show EXP`"
_COMPARE = "`harness experiment compare A B`"
_TRY = '`harness try "a wider MLP"`'
_KEEP = "`harness keep EXP`"
_DROP = "`harness gate reject EXP --reason TEXT`"
_CHECK = "`harness plan check` for a plan, `harness gate check EXP` for an experiment"
_APPROVE = f"`harness plan approve` for a plan, {_KEEP} for an experiment"
_WATCH = "`harness watch`"
_REPORT = "`harness report`"
_WHY = "`harness decisions`"
_INIT = "`harness init`"
_RESUME = "`harness try --continue` for the open experiment, `harness continue` for the loop"
_REASON = "--reason TEXT"
_COMMAND = (
    "the training command's own options behind `--`: `harness train -- python train.py --lr 0.1`;"
    " or, for config.yaml, `--set lr=0.1`"
)
_TRY_COMMAND = (
    'it for config.yaml: `harness try "x" --set lr=0.1`; or for the training command:'
    ' `harness try "x" -- python train.py --lr 0.1`'
)
_SEEDS = "`oracle.seeds` of the plan: it says how many, and nobody picks them"
_LOOK = "`harness evaluate EXP --split held-out`"

_BY_GIT = "git, which carries the facts; `harness ledger import` reads them in a clone"
_CONFIG = '`harness try "x" --set KEY=VALUE`; `harness experiment compare A B --config` shows them'
_SWEEP = 'one experiment a value: `harness try "x" --set lr=0.1`, then the next'
_OVERRIDE = "`harness gate approve EXP --reason TEXT --override`"

WORDS: dict[str, dict[str, str]] = {
    "harness": {
        **dict.fromkeys(("list", "ls", "experiments", "runs", "all"), _LIST),
        **dict.fromkeys(("show", "info", "describe", "view", "get", "open"), _SHOW),
        **dict.fromkeys(("compare", "diff"), _COMPARE),
        **dict.fromkeys(("approve", "accept"), _APPROVE),
        **dict.fromkeys(("check", "validate", "judge", "lint"), _CHECK),
        **dict.fromkeys(("new", "start", "create", "add", "begin", "idea", "hypothesis"), _TRY),
        **dict.fromkeys(("results", "result", "summary", "score", "scores", "table"), _REPORT),
        **dict.fromkeys(("log", "logs", "history", "why"), f"{_WHY}, or {_WATCH} for a run"),
        **dict.fromkeys(("tail", "follow", "monitor", "progress", "dashboard", "ui"), _WATCH),
        **dict.fromkeys(("reject", "discard", "drop", "delete", "rm"), _DROP),
        **dict.fromkeys(("resume", "go", "retry"), _RESUME),
        **dict.fromkeys(("install", "setup", "bootstrap"), _INIT),
        **dict.fromkeys(("uninstall", "remove"), "`harness init --remove`"),
        **dict.fromkeys(("eval", "test", "predict", "scoring"), "`harness evaluate`"),
        **dict.fromkeys(("fit", "launch", "execute"), "`harness train`"),
        **dict.fromkeys(("stop", "kill", "cancel", "abort"), "Ctrl-C where it was started"),
        **dict.fromkeys(("clean", "prune"), "`harness gc`"),
        **dict.fromkeys(("note", "notes"), "`harness handoff --note TEXT`"),
        **dict.fromkeys(("lessons", "learned"), "`harness priors list`"),
        **dict.fromkeys(("commit", "save", "tag", "merge"), _KEEP),
        **dict.fromkeys(("checkout", "switch", "branch"), f"{_TRY} with `--parent EXP`"),
        **dict.fromkeys(("push", "pull", "sync", "fetch"), _BY_GIT),
        **dict.fromkeys(("clone", "join"), _BY_GIT),
        **dict.fromkeys(("revert", "undo", "reset", "rollback"), _DROP),
        **dict.fromkeys(("blame", "changes"), "`harness audit`"),
        **dict.fromkeys(("exp", "exps", "trial", "trials"), _LIST),
        **dict.fromkeys(("metrics", "metric", "leaderboard", "best", "rank"), _REPORT),
        **dict.fromkeys(("params", "param", "config", "set"), _CONFIG),
        **dict.fromkeys(("repro", "rerun", "repeat"), "`harness reproduce EXP`"),
        **dict.fromkeys(("sweep", "tune", "optimize", "search", "grid"), _SWEEP),
        **dict.fromkeys(("login", "logout", "auth"), "nothing: there is no account"),
        **dict.fromkeys(("server", "serve"), _WATCH),
        **dict.fromkeys(("model", "models"), "`harness posttrain model list`"),
        **dict.fromkeys(("artifact", "checkpoints"), _SHOW),
        **dict.fromkeys(("agent", "agents"), "`harness run`, or `harness claude`"),
        **dict.fromkeys(("fix", "repair"), "`harness doctor`, then `harness init`"),
        **dict.fromkeys(("update", "upgrade"), "`harness init`, after the package's own upgrade"),
        **dict.fromkeys(("seed", "seeds"), _SEEDS),
        **dict.fromkeys(("next", "queue", "budget", "st"), "`harness status`"),
        "split": "`harness data split TABLE --label COLUMN`",
        "verify": "`harness ledger verify`",
        "export": "`harness ledger export`",
        "promote": "`harness posttrain promote MODEL --reason TEXT`",
        "version": "`harness --version`",
    },
    "harness experiment": {
        **dict.fromkeys(("ls", "all", "status"), _LIST),
        **dict.fromkeys(("create", "open", "start", "add"), "`harness experiment new`"),
        **dict.fromkeys(("get", "info", "describe", "view"), _SHOW),
        **dict.fromkeys(("diff", "vs"), _COMPARE),
        **dict.fromkeys(("delete", "rm", "remove", "reject", "discard"), _DROP),
        **dict.fromkeys(("keep", "approve", "accept"), _KEEP),
        **dict.fromkeys(("train", "run"), "`harness train EXP`"),
        **dict.fromkeys(("evaluate", "eval", "score"), "`harness evaluate EXP`"),
        "try": _TRY,
        "check": "`harness gate check EXP`",
    },
    "harness gate": {
        **dict.fromkeys(("keep", "pass", "accept"), _KEEP),
        **dict.fromkeys(("discard", "drop", "fail"), _DROP),
        **dict.fromkeys(("ask", "run", "show", "status", "judge"), "`harness gate check EXP`"),
    },
    "harness plan": {
        **dict.fromkeys(("validate", "lint", "test"), "`harness plan check`"),
        **dict.fromkeys(("accept", "freeze", "confirm"), "`harness plan approve`"),
        **dict.fromkeys(("new", "init", "create"), "`harness init`, which writes plan.md"),
        **dict.fromkeys(("show", "status", "list"), "`harness status`"),
        "edit": "your editor, then `harness plan check`",
    },
    "harness ledger": {
        **dict.fromkeys(("check", "audit"), "`harness ledger verify`"),
        **dict.fromkeys(("show", "list"), _WHY),
    },
    "harness priors": {"show": "`harness priors list`", "new": "`harness priors add`"},
    "harness data": {"load": _INIT, "check": "`harness plan check`"},
}
"""Command -> a word that is none below it -> what is meant."""

OPTIONS: dict[tuple[str, str], str] = {
    ("harness", "--json"): "it behind the command: `harness status --json`",
    ("harness", "--project"): "it behind the command: `harness status --project DIR`",
    **{
        ("harness evaluate", name): _LOOK
        for name in ("--held-out", "--test", "--heldout", "--holdout", "--final")
    },
    ("harness evaluate", "--validation"): "nothing: it evaluates on validation by itself",
    ("harness evaluate", "--seed"): _SEEDS,
    ("harness gate check", "--held-out"): "`harness gate check EXP --gate held-out`",
    ("harness gate check", "--split"): "`harness gate check EXP --gate held-out`",
    **{
        (verb, name): meant
        for verb, command in (("harness train", _COMMAND), ("harness try", _TRY_COMMAND))
        for names, meant in (
            (("--lr", "--epochs", "--batch-size", "--model", "--config", "-c"), command),
            (("--seed", "--seeds"), _SEEDS),
        )
        for name in names
    },
    **{
        ("harness init", name): "`--label COLUMN`"
        for name in ("--target", "--column", "--y", "--labels")
    },
    **{
        (
            "harness run",
            name,
        ): "`budget.usd` or `budget.tokens` of plan.md, which a person approves"
        for name in ("--budget", "--max-cost", "--usd", "--tokens")
    },
    ("harness train", "--continue"): "`harness train EXP --resume`",
    ("harness try", "--resume"): "`harness try --continue`",
    **{
        (verb, name): meant
        for verb, meant in (
            ("harness experiment new", "--hypothesis TEXT"),
            ("harness experiment result", "--summary TEXT"),
            ("harness gate approve", _REASON),
            ("harness gate reject", _REASON),
            ("harness keep", _REASON),
            ("harness handoff", "--note TEXT"),
        )
        for name in ("-m", "--message", "--name", "--title", "--text")
    },
    **{
        ("harness try", name): _TRY
        for name in ("--hypothesis", "--idea", "-m", "--name", "--message")
    },
    **{("harness keep", name): _OVERRIDE for name in ("--override", "--force", "-f")},
    **{("harness gate approve", name): _OVERRIDE for name in ("--force", "-f", "--yes")},
    **{
        ("harness data split", name): "`--held-out 0.2`"
        for name in ("--test", "--test-size", "--holdout")
    },
    **{
        ("harness data split", name): "`--label COLUMN`"
        for name in ("--target", "--column", "--y")
    },
    **{
        ("harness report", name): "`harness report --json`, or `--out FILE.html`, `.pdf`, `.md`"
        for name in ("--format", "--html", "--csv", "--output", "-o")
    },
    ("harness doctor", "--fix"): "`harness init`, which writes anew what nobody edited",
    ("harness status", "--watch"): _WATCH,
    ("harness plan approve", "--yes"): "--changes DIGEST, as it names it, or --ask",
    ("harness plan approve", "-y"): "--changes DIGEST, as it names it, or --ask",
}
"""(command, an option that it has not) -> what is meant."""

MORE: dict[str, str] = {
    "harness status": _SHOW,
    "harness evaluate": _LOOK,
    "harness keep": "--reason TEXT for words of yours",
    "harness gate check": "one experiment at a time",
    "harness experiment show": f"one experiment at a time, or {_COMPARE}",
    "harness experiment compare": "two experiments at a time",
    "harness continue": f"nothing more: it resumes the loop. {_RESUME}",
    "harness doctor": "nothing more: it looks at the folder it is called in",
    "harness handoff": "--note TEXT",
    "harness audit": "`harness audit --accept`, or nothing more",
    "harness experiment list": _SHOW,
}
"""Command -> what is meant by a word too many."""


def meant_by(command: str, word: str) -> str | None:
    """What `word` below `command` means; None when nobody knows."""
    return WORDS.get(command, {}).get(word.lower())
