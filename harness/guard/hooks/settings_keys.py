"""The keys of Claude Code's settings files, by what each can do to the guards.

People and the CLI's own dialogs write both files of a project in ordinary work. What decides
whether the guards run, or what they run as, is a part with a name; all the rest is theirs. The keys
are those of the settings schema of 2.1.332.

The file that carries our hooks is read as a whole or not at all: one value of a wrong form, and
Claude Code takes no hook from it. There a value counts unless it has a form that surely is read.
"""

from __future__ import annotations

from harness.guard.policy.json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FLAG, TEXT, TEXTS, NUMBER, ANY = "a flag", "text", "texts", "a number", "anything"
"""Forms of values; ANY: what is wrong is left out by Claude Code, and the file is read."""
COUNT, ABOVE_ZERO = "a count", "a number above 0"
"""Of them the first is whole."""
_LARGEST = 2**53 - 1
"""What Claude Code's JavaScript still counts by one; a number beyond it may be no number there."""
UNCHECKED = "unchecked"
"""A form with an inside that is not looked at here."""

DANGEROUS = {
    "disableAllHooks": "switches every hook off",
    "allowManagedHooksOnly": "leaves no hook but the managed ones",
    "strictPluginOnlyCustomization": "leaves no hook but those of plugins",
    "policyHelper": "names a program that makes managed settings",
    "policyHelpers": "names programs that make managed settings",
    "processWrapper": "starts Claude Code's processes through another program",
    "extraKnownMarketplaces": "names where plugins, with hooks of their own, are taken from",
    "additionalMarketplaces": "names where plugins, with hooks of their own, are taken from",
}
"""What each does when it is set to something."""

_SHOWN = """
awaySummaryEnabled bashEditDiffEnabled clawdFileProgressEnabled emojiCompletionEnabled
inputNeededNotifEnabled agentPushNotifEnabled autoScrollEnabled prefersReducedMotion
responseComparisonEnabled respectGitignore showClearContextOnPlanAccept showMessageTimestamps
showThinkingSummaries showTurnDuration spinnerTipsEnabled syntaxHighlightingDisabled
terminalProgressBarEnabled terminalTitleFromRename todoFeatureEnabled verbose
wheelScrollAccelerationEnabled promptSuggestionEnabled"""
"""What a person sees or hears."""
_ASKED = """
enableAllProjectMcpServers skipDangerousModePermissionPrompt skipWorkflowUsageWarning
skipWebFetchPreflight allowManagedMcpServersOnly allowManagedPermissionRulesOnly
allowAllClaudeAiMcps allowClaudeInChromeWithManagedMcp disableClaudeAiConnectors"""
"""What is asked before a call, and which servers are there. A guard's denial wins over each."""
_WORK = """
alwaysThinkingEnabled autoCompactEnabled autoContinueAtUsageLimit autoDreamEnabled
autoMemoryEnabled doneMeansMerged enforceAvailableModels fastMode fastModePerSessionOptIn
fileCheckpointingEnabled idleCompaction includeCoAuthoredBy includeGitInstructions
precomputeCompactionEnabled respondToBashCommands switchModelsOnFlag
totalTokensReminderAfterUserTurn workflowKeywordTriggerEnabled"""
"""How the model works, and what it is told."""
_FEATURES = """
allowNestedModelAccessUnderForceLogin autoUploadSessions channelsEnabled disableAgentView
disableArtifact disableBundledSkills disableCommandPluginSources disableDirectMcpSkills
disableRemoteControl disableReplyCheck disableSideloadFlags disableSkillShellExecution
disableWindowsBashCommandSplit disableWorkflows enableArtifact enableWorkflows
forceRemoteSettingsRefresh isolatePeerMachines remoteControlAtStartup syncClaudeAiPlugins
syncClaudeAiSkills wslInheritsWindowsSettings"""
"""Parts of Claude Code that are there or not. No hook is one of them."""
_TEXTS_OF_ONE_LINE = """
$schema advisorModel agent attributionProject autoMemoryDirectory claudeMd downloadsMirrorUrl
language minimumVersion model modelCatalogPublicKey modelCatalogUrl outputStyle plansDirectory
pluginTrustMessage prUrlTemplate requiredMaximumVersion requiredMinimumVersion timeZone"""
_PROGRAMS = """
apiKeyHelper awsAuthRefresh awsCredentialExport gcpAuthRefresh otelHeadersHelper
proxyAuthHelper"""
"""Commands that Claude Code runs as the person, beside the guards: no call goes through them."""
_LISTS = """
allowedHttpHookUrls availableModels claudeMdExcludes companyAnnouncements deniedModels
disabledMcpjsonServers enabledMcpjsonServers fallbackModel httpHookAllowedEnvVars
pluginSuggestionMarketplaces"""
_FORGIVEN = """
additionalDirectoryConfigRoots allowedProviders appendPlugins askUserQuestionTimeout
autoCompactOfferAnswer autoCompactRaisedForLoad autoCompactWindow bashOutputMaxChars
crossSessionInbound desktopMcpServersListScope dialogExpiry editorMode effortLevel
footerLinksRegexes forceLoginGatewayUrl forceLoginMethod gatewayInternalNetworks keybindingFlavor
maxEffortLevel maxProseWidth modelProposedGoals modelSettings precomputeArmTokens
preferredNotifChannel prependPlugins promptCacheTtl remoteMessageReceipts spellcheck
spinnerTipsOverride subagentPromptCacheTtl subagentStatusLine taskOutputMaxChars teammateMode theme
ultracode viewMode vimInsertModeRemaps"""
_OF_MANY_PARTS = """
allowedChannelPlugins allowedMarketplaces allowedMcpServers attributionProjectPolicy
blockedMarketplaces breakReminder deniedMcpServers forceLoginOrgUUID managedMcpServers modelPicker
modelPricing pluginConfigs quietHours remote remoteControl remoteTools sandbox sshConfigs
sshHostCommands strictKnownMarketplaces timeFormat voice xaaIdp"""
_COUNTS = """
cleanupPeriodDays desktopSessionCleanupPeriodDays skillListingMaxDescChars
totalTokensReminderBudget"""
_MODES = ("default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto", "manual")
HARMLESS: dict[str, Any] = {
    **dict.fromkeys((_SHOWN + _ASKED + _WORK + _FEATURES).split(), FLAG),
    **dict.fromkeys((_TEXTS_OF_ONE_LINE + _PROGRAMS).split(), TEXT),
    **dict.fromkeys(_LISTS.split(), TEXTS),
    **dict.fromkeys(_FORGIVEN.split(), ANY),
    **dict.fromkeys(_OF_MANY_PARTS.split(), UNCHECKED),
    **dict.fromkeys(_COUNTS.split(), COUNT),
    "attribution": {"commit": TEXT, "pr": TEXT, "sessionUrl": FLAG},
    "autoUpdatesChannel": ("latest", "stable", "rc"),
    "availableModelsMatch": ("prefix", "exact"),
    "daemonColdStart": ("transient", "ask"),
    "defaultShell": ("bash", "powershell"),
    "disableAutoMode": ("disable",),
    "feedbackDrafts": ("notify", "quiet", "off"),
    "feedbackSurveyRate": UNCHECKED,
    "fileSuggestion": {"type": ("command",), "command": TEXT},
    "managedSourcesBehavior": ("first-wins", "merge"),
    "modelOverrides": {"*": TEXT},
    "parentSettingsBehavior": ("first-wins", "merge"),
    "permissions": {
        "allow": TEXTS,
        "ask": TEXTS,
        "deny": TEXTS,
        "additionalDirectories": TEXTS,
        "defaultMode": _MODES,
        "disableBypassPermissionsMode": ("disable",),
        "*": UNCHECKED,
    },
    "skillListingBudgetFraction": UNCHECKED,
    "skillOverrides": {"*": ("on", "name-only", "user-invocable-only", "off")},
    "spinnerVerbs": {"mode": ("append", "replace"), "verbs": TEXTS},
    "statusLine": {
        "type": ("command",),
        "command": TEXT,
        "padding": NUMBER,
        "refreshInterval": ANY,
        "hideVimModeIndicator": FLAG,
    },
    "totalTokensReminder": ("off", "infinite", "fixed", "countdown", "padded-countdown"),
    "tui": ("default", "fullscreen"),
    "workflowSizeGuideline": ("unrestricted", "small", "medium", "large"),
    "worktree": {"symlinkDirectories": TEXTS, "sparsePaths": TEXTS, "*": UNCHECKED},
}
"""Key -> the form of its value: one of the words above, a tuple of the texts that it may be, or the
forms of an object's members."""
_NEEDED = {"statusLine": ("type", "command"), "fileSuggestion": ("type", "command")}
_NEEDED["spinnerVerbs"] = ("mode", "verbs")
HOOKS, ENV, PLUGINS = "hooks", "env", "enabledPlugins"
"""Keys of which each member is told apart."""

OFF_SWITCHES = ("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_RESTRICTED")
"""Variables with which the CLI runs no hook of a project. Measured with 2.1.332, also from `env` of
a user's settings; from `env` of a project's they do nothing yet."""
_ON = ("1", "true", "yes", "on")
_STEERING = frozenset(
    ("HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "GCONV_PATH", "CLAUDE_PROJECT_DIR")
)
_STEERING_FAMILIES = ("LD_", "DYLD_", "HARNESS_", "OPENSSL_", "NODE_OPTIONS", "BUN_")
_STEERING_WORDS = ("HOOK", "PLUGIN", "SETTINGS", "SHELL", "WRAPPER", "POLICY", "MANAGED")
"""In the name of one of Claude Code's variables: it steers what the guards depend on."""

CHANGES_CALLS = (
    "PreToolUse",
    "PermissionRequest",
    "PreSkillShellCommand",
    "Elicitation",
    "ElicitationResult",
)
"""Another's hook of these may change a call after ours judged it (`updatedInput`; all hooks of an
event start together with the call as it was), or answer in the person's place. No hook turns a
denial into leave: deny wins."""
_OTHER_EVENTS = """
PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptSubmit UserPromptExpansion
SessionStart SessionEnd Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact
PreModelSwitch PostModelSwitch PermissionDenied Setup TeammateIdle TaskCreated TaskCompleted
ConfigChange WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged DirectoryAdded
MessageDisplay"""
_ENTRY = {
    "type": ("command",),
    "command": TEXT,
    "args": TEXTS,
    "timeout": ABOVE_ZERO,
    "onFailure": ("block", "continue"),
    "statusMessage": TEXT,
    "async": FLAG,
    "once": FLAG,
    "if": TEXT,
    "*": UNCHECKED,
}
_OURS = ("/hooks/harness/", "/hooks/run.py")
_OF_OTHERS = " of others"
_LONGEST_NAME = 60


def is_on(value: object) -> bool:
    """Whether Claude Code takes the value of a variable for yes."""
    return value is not None and str(value).strip().lower() in _ON


def steers(variable: str) -> bool:
    """Whether it decides what a hook runs as, what it protects, or where its compiled modules are
    read from."""
    return (
        variable in _STEERING
        or variable.startswith(_STEERING_FAMILIES)
        or (variable.startswith("CLAUDE_") and any(word in variable for word in _STEERING_WORDS))
    )


def settings_of(data: bytes) -> dict[str, Any] | None:
    """The object of a settings file; {} for an empty one, None for what is no plain object."""
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
        # Python reads these two words where Claude Code reads nothing.
        value = (
            None if "NaN" in text or "Infinity" in text else loads(text) if text.strip() else {}
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parts(settings: dict[str, Any], *, carries: bool) -> dict[str, str]:
    """Name -> canonical JSON of each part of a project's `settings` that is not known to be
    harmless; `carries`: of the file that our hooks stand in."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        for name, part in _parts(key, value, carries):
            shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
            found[shown] = found.get(shown, "") + dumps(part, sort_keys=True)
    return found


def counts(name: str) -> bool:
    """Whether a part can do something to the guards. A key that is not known here is of a newer
    Claude Code, whose dialogs write it too: it is named and decides nothing, unless its name
    speaks of hooks."""
    return (
        name in DANGEROUS
        or name in HARMLESS
        or name.split(".")[0] in (HOOKS, ENV, PLUGINS)
        or "hook" in name.lower()
    )


def effect(name: str) -> str:
    """What a part does, as the end of a sentence about it."""
    if name in DANGEROUS:
        return f"which {DANGEROUS[name]}"
    key, _, member = name.partition(".")
    if key == HOOKS and member.endswith(_OF_OTHERS):
        return "which may change a call after the guards judged it"
    if key == HOOKS:
        return "which holds the harness's own hooks, or may keep them from being read"
    if key == ENV and member in OFF_SWITCHES:
        return "with which Claude Code runs no hook"
    if key == ENV and steers(member):
        return "which decides what the guards themselves run"
    if key == PLUGINS:
        return "which decides which plugins' hooks run"
    if name in HARMLESS or key == ENV:
        return "of a form with which Claude Code may take no hook from the file"
    return "which this harness does not know"


def unread(settings: dict[str, Any]) -> str:
    """The first key whose value Claude Code cannot read, and then nothing of the file."""
    return next(
        (
            key
            for key, value in settings.items()
            if key in HARMLESS and not _fits(key, value, unchecked=True)
        ),
        "",
    )


def of_ours(plugin: str) -> bool:
    """Whether a name in `enabledPlugins` is the harness's own plugin."""
    return plugin.split("@")[0] == "harness"


def _parts(key: str, value: Any, carries: bool) -> Iterator[tuple[str, Any]]:
    if key in (HOOKS, ENV, PLUGINS) and not isinstance(value, dict):
        yield key, value
    elif key == HOOKS:
        for event, groups in value.items():
            yield from _of_event(event, groups, carries)
    elif key == ENV:
        for name, text in value.items():
            off = name in OFF_SWITCHES and is_on(text)
            if off or steers(name) or (carries and not isinstance(text, str)):
                yield f"{ENV}.{name}", text
    elif key == PLUGINS:
        for name, on in value.items():
            if of_ours(name) or (carries and not isinstance(on, (bool, list))):
                yield f"{PLUGINS}.{name}", on
    elif key in HARMLESS:
        if carries and not _fits(key, value):
            yield key, value
    elif key not in DANGEROUS or (value is not False and (value or carries)):
        yield key, value


def _of_event(event: str, groups: Any, carries: bool) -> Iterator[tuple[str, Any]]:
    entries = _entries(groups)
    if entries is None or event not in (*CHANGES_CALLS, *_OTHER_EVENTS.split()):
        yield f"{HOOKS}.{event}", groups
        return
    ours = [pair for pair in entries if _is_ours(pair[1])]
    others = [pair for pair in entries if not _is_ours(pair[1])]
    if ours:
        yield f"{HOOKS}.{event}", ours
    if event not in CHANGES_CALLS:
        others = [pair for pair in others if carries and not _is_read(pair[1])]
    if others:
        yield f"{HOOKS}.{event}{_OF_OTHERS}", others


def _entries(groups: Any) -> list[tuple[Any, Any]] | None:
    """(matcher, entry) of each hook of an event; None when the groups are no such lists."""
    found = []
    for group in groups if isinstance(groups, list) else [None]:
        inner = group.get(HOOKS) if isinstance(group, dict) else None
        matcher = group.get("matcher") if isinstance(group, dict) else None
        if not isinstance(inner, list) or not (matcher is None or isinstance(matcher, str)):
            return None
        found += [(matcher, entry) for entry in inner]
    return found


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return any(isinstance(word, str) and any(mark in word for mark in _OURS) for word in words)


def _is_read(entry: Any) -> bool:
    return _of_members(entry, _ENTRY, ("type", "command"), unchecked=False)


def _fits(key: str, value: Any, *, unchecked: bool = False) -> bool:
    """Whether the value of a harmless key has its form; `unchecked`: the answer where that is not
    looked at."""
    if key == "attribution" and isinstance(value, bool):
        return True
    return _has_form(value, HARMLESS[key], _NEEDED.get(key, ()), unchecked=unchecked)


def _has_form(value: Any, form: Any, needed: tuple[str, ...], *, unchecked: bool) -> bool:
    if isinstance(form, dict):
        return _of_members(value, form, needed, unchecked=unchecked)
    if isinstance(form, tuple):
        return value in form
    if form == FLAG:
        return isinstance(value, bool)
    if form == TEXT:
        return isinstance(value, str)
    if form == TEXTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if form in (NUMBER, COUNT, ABOVE_ZERO):
        return _is_number(value, whole=form == COUNT) and (form == NUMBER or value > 0)
    return form == ANY or unchecked


def _of_members(
    value: Any, form: dict[str, Any], needed: tuple[str, ...], *, unchecked: bool
) -> bool:
    return (
        isinstance(value, dict)
        and all(name in value for name in needed)
        and all(
            _has_form(inner, form.get(name, form.get("*", ANY)), (), unchecked=unchecked)
            for name, inner in value.items()
        )
    )


def _is_number(value: Any, *, whole: bool) -> bool:
    kinds = (int,) if whole else (int, float)
    return (
        isinstance(value, kinds) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST
    )
