"""The patterns that tell a claimed number from other numbers.

Each ends with `$` when it is searched in the text before a number, and begins without an anchor
when it is matched on the text after it. `[^.;]{0,40}$` keeps a word within its own clause.
"""

import re

_SHARES = tuple(
    f"{part} of {right} {rows}"
    for part in ("share", "fraction", "proportion")
    for right in ("right", "correct")
    for rows in ("answers", "rows")
)
METRICS = (
    "balanced accuracy",
    "accuracy",
    "acc",
    "error rate",
    "f1",
    "macro f1",
    "auc",
    "roc auc",
    "auroc",
    "precision",
    "recall",
    "log loss",
    "logloss",
    "loss",
    "perplexity",
    "bleu",
    "rouge",
    "rmse",
    "mae",
    "mse",
    "r2",
    "pass rate",
    "top-1 accuracy",
    "top-1",
    "top1",
    "classification error",
    "validation error",
    "val error",
    "hit rate",
    *_SHARES,
)
"""Metric names that are always known, beside those of the project."""
SAME = {
    "acc": "accuracy",
    "auroc": "roc auc",
    "logloss": "log loss",
    "top 1 accuracy": "accuracy",
    "top 1": "accuracy",
    "top1": "accuracy",
    "classification error": "error rate",
    "validation error": "error rate",
    "val error": "error rate",
    "hit rate": "accuracy",
    **dict.fromkeys(("hit rate", *_SHARES), "accuracy"),
}
COMPLEMENT = {"error rate": "accuracy"}
"""Metric -> the metric of which it is the complement to 1."""

SPLITS = re.compile(
    r"\b(?:(?P<validation>validation|val|dev)|(?P<held_out>held[- _]?out"
    r"|test(?= (?:set|split|data|accuracy"
    r"|score)))|(?P<train>train(?:ing)?))\b",
    re.I,
)
EXPERIMENT = re.compile(r"\bexp-\d{4,}\b")
_NO_AUTHOR = (
    r"(?!(?:Accurac|Validation|Model"
    r"|Run|Test|Train|Network"
    r"|Experiment|Result|Score"
    r"|Table|Figure|Section"
    r"|Version|Seed|Loss|Error|Held)\w*)"
)
_AUTHOR = (
    r"(?:\bet al\.?,?\s\(?(?:19|20)\d\d\b\)?"
    rf"|\b{_NO_AUTHOR}[A-Z][\w-]+(?: and [A-Z][\w-]+)? \((?:19|20)\d\d\)"
    rf"|\b{_NO_AUTHOR}[A-Z][\w-]+(?: and [A-Z][\w-]+)?, (?:19|20)\d\d\b)"
)
_PUBLISHED = (
    rf"(?:{_AUTHOR}|\bdoi[:.]|\barXiv[: ]\s?\d{{4}}\.\d{{4,5}}"
    r"|https?://(?:www\.|dx\.)?(?:arxiv|doi|openreview|aclanthology)\.(?:org|net)/)"
)
PUBLISHED = re.compile(_PUBLISHED)
CITED = re.compile(rf"https?://|{_PUBLISHED}")
"""A source: where else a number stands."""
SOURCE_BESIDE = re.compile(
    r"[,(\[]?\s*(?:https?://[^\s,)\]]+|doi:[^\s,)\]]+|arXiv:[^\s,)\]]+)[,)\]]*", re.I
)
"""A source with the marks around it, as in `Smith et al. (2021), https://..., report`."""
CITED_BEHIND = re.compile(
    rf"\s*%?\s*(?:on [\w -]{{1,40}})?[(\[,]\s*(?:\w+ )?(?:[A-Z][\w-]+ )?{_PUBLISHED}"
)
"""After a number: `0.41 (Smith et al., 2021)`."""
ATTRIBUTES = re.compile(
    r"\b(?:publish\w*|publications?"
    r"|papers?|articles?|literature"
    r"|(?:prior|related|earlier) work"
    r"|state[- ]of[- ]the[- ]art|sota"
    r"|leaderboards?|according to"
    r"|model card|(?:reported|stated"
    r"|claimed|given) (?:by|in)"
    r"|authors?|theirs?|others)\b"
    rf"|(?-i:{_AUTHOR})\s*[^.;,]{{0,30}}?"
    r"\b(?:reports?|reported|have|has"
    r"|had|gets?|got|reach\w*"
    r"|achiev\w*|obtain\w*|find|found"
    r"|shows?|showed|claims?|claimed"
    r"|gives?|gave|states?|stated"
    r"|measured?|scores?|scored)\b",
    re.I,
)
"""Says that a number is somebody else's; a link beside it says where it stands, not whose it is."""
CONTRASTS = re.compile(
    r"\A\s*(?:while|whereas|although|though|unlike)\b[^,]*,"
    r"|;\s|,\s+(?:and|but|while|whereas|yet)\s|\s(?:while|whereas)\s",
    re.I,
)
"""Where a sentence that speaks of others may go on with something else."""
_OTHERS_TOO = r"(?! (?:data|data ?set|benchmark|task|corpus|table|split)\b)"
OWN = re.compile(
    rf"\bexp-\d|\b(?:we|our|ours|us|ourselves|this{_OTHERS_TOO}|it|here|mine|my)\b", re.I
)
"""Speaks of one's own work."""
SCORE = re.compile(r"\b(?:scores?|(?<!as a )result)\b[^,;\d]{0,40}$", re.I)
"""Means the plan's metric in a text about an experiment."""
REACHED = re.compile(
    r"\b(?:reach(?:ed|es)?|achiev\w+|attain\w*|obtain\w*|best|scored|came to|got|gave|we have)\b",
    re.I,
)
"""Says that a score is of this work, not of another's nor a goal."""
ACHIEVES = re.compile(
    r"\b(?:reach\w*|achiev\w*|scor\w+|hits?|got|gets?|obtain\w*|attain\w*"
    r"|(?:ends?|ended|lands?|landed) (?:up )?(?:at"
    r"|with)|beats?|recomputed|now at"
    r"|climb\w* to|rose to|right)\b[^.;]{0,40}$"
    r"|\b(?:gives?|gave|yields?|yielded)(?: (?:about"
    r"|only))? $",
    re.I,
)
"""Verbs of a network before its score, whatever the metric is called."""
BEING = re.compile(r"\b(?:is|was|are|were|has|had|measured|correct\w*|at)\b[^.;]{0,40}$", re.I)
"""General verbs: they mark a score only after a network, an experiment or a split."""
OF_A_NETWORK = re.compile(
    r"\b(?:models?|networks?|nets?|classifiers?"
    r"|it|we|ours|one|this|candidate|variant"
    r"|ensemble|baseline|parent|run|experiment)(?: [\w-]+)? (?:is"
    r"|was|has|had|have|measured|stands"
    r"|comes? out|came out)"
    r"(?: (?:now|at|about|only|some|around|still|nearly"
    r"|over|above|almost|an?|with|then)){0,3}\s*$",
    re.I,
)
_SETTINGS = (
    r"lr|learning[- ]rate|(?<!error )(?<!pass )(?<!hit )rate"
    r"|dropout|momentum|decay|alpha|betas?\d?"
    r"|gamma"
    r"|lambda|width|depth|seeds?|epochs?|steps?"
    r"|batch(?:[- ]size)?|temperature|probability|fraction"
    r"|quantile|percentile|version|weights?|noise"
    r"|sigma|eps(?:ilon)?|cut|clip\w*|patience|factor"
    r"|size|scale|confidence|significance|p|smoothing"
    r"|ema|norms?|thresholds?|coef\w*|warm-?up|floor"
    r"|holm|discount|top-[pk]|rank|ratio|penalty"
    r"|rho|tau|mu|delta|tolerance|tol|erasing|mixup"
    r"|cutmix|jitter|range|level|entropy|kl"
)
HYPER = re.compile(
    rf"(?:\b(?:{_SETTINGS})\b|ε|σ|α|β|λ)\)?"
    r"(?: (?:rose|fell|went|dropped|raised|lowered"
    r"|grew|increased|decreased|annealed))?"
    r"(?: (?:of|is|was|were|at|to|by|from|set to"
    r"|fixed at|from [\d.e-]+ to))?\s*[=:(]?\s*"
    r"(?P<further>(?:[\d.e-]+%?(?:,| and"
    r"| or|,? then| to| instead of|/)\s*)*)$",
    re.I,
)
SETTING_WORD = re.compile(rf"\b(?:{_SETTINGS})\b", re.I)
ASIDE = re.compile(
    r"\b(?:with|without|after|over|across|at|for"
    r"|using|under|in|on)\s+(?:[\w-]+\s+){0,3}?[\w-]+"
    r" (?:is|was)\s+"
    r"(?:(?:about|only|now|at|over|above) )*$",
    re.I,
)
"""A setting between a metric and its number: `accuracy after 30 epochs is`."""
SETTING_AFTER = re.compile(
    r"\s+(?:[\w-]+ )?(?:dropout|smoothing|momentum"
    r"|quantile|percentile|utili[sz]ation|sparsity"
    r"|probability|ratio|correlation|similarity|noise|decay|threshold)\b",
    re.I,
)
QUANTITY = re.compile(
    r"\b(?:utili[sz]ation|correlation|similarity"
    r"|sparsity|norms?|entropy|kl|divergence|variance"
    r"|kappa|iou|thresholds?|coefficients?|overlap"
    r"|p-value|power|gap|memory|occupancy|load"
    r"|throughput|density|drift|quantile|percentile"
    r"|normali[sz]\w*|standardi[sz]\w*|scaled"
    r"|share|reward|returns?|ece|brier)\b",
    re.I,
)
"""Other measured quantities: the number is theirs unless a metric is in between."""
NOUN_AFTER = re.compile(
    r"\s?-?(?:s|ms|us|µs|secs?|seconds?|mins?"
    r"|minutes?|h|hours?|days?|weeks?|[kKMGT]i?B|bytes"
    r"|cores?|cpus?|gpus?|epochs?|layers?|steps?|units?"
    r"|neurons?|param\w*|tokens?|classes|features?"
    r"|columns?|heads?|folds?|characters|lines?"
    r"|files?|experiments?|queries|trees|iterations?"
    r"|batches|hidden|mb|gb|kb|fold cross\w*"
    r"|dimension\w*|pixels?|hz|workers?"
    r"|[kKMB](?!\w)"
    r"|(?:or more )?rows|examples|samples|million"
    r"|billion|thousand|processes|°|degrees?)\b"
)
THRESHOLD = re.compile(
    r"\b(?:tiers?|thresholds?|goals?|targets?|aims?"
    r"|limits?|requires?|required|demands?|needs?"
    r"|asks? for|must|should|could|budget|floor|cut-?off|bar)\b[^.;]{0,40}$",
    re.I,
)
COMPARABLE = re.compile(r"\b(?:it|models?|networks?|parent|baseline|score|result)\b", re.I)
TIER_AFTER = re.compile(
    r"\s*(?:tier|goal|target|bar|threshold|that (?:the )?(?:must|should|could))\b", re.I
)
GOAL = re.compile(r"\b(?:tier|goal|target|bar)s?(?: (?:of|at|is|was))? $", re.I)
MET = re.compile(
    r"\b(?:met|meets|passed|passes|reached|reaches|cleared|exceed\w*|beat|beaten|achieved)\b", re.I
)
NOT_MET = re.compile(
    r"\b(?:not|never|no|neither|miss\w*|short|fails?|failed|below|under|would|if)\b|n['’]t\b", re.I
)
LIMIT = re.compile(
    r"(?:\b(?:at most|up to|within|no more than"
    r"|limit\w*|timeouts?|every|each"
    r"|for at most|default\w*|older than|newer than"
    r"|after|until|waits?|fewer than|less than"
    r"|more than|at least|sleep\w*)|[<>≤≥]=?)[^.;,]{0,20}$",
    re.I,
)
CONJECTURE = re.compile(
    r"\b(?:would|might|may|(?:we|i|and) (?:expect"
    r"|hope)|expect(?:ing|s)|hop(?:e to|ing)|e\.g\."
    r"|for example|such as|suppose|if|hypothes\w+"
    r"|guess\w*|next:|try|whether|plan(?:ned|s)? to)\b",
    re.I,
)
NO_LESS = re.compile(
    r"(?:at least|no less than|above|over|more than|exceed\w*|beyond|>=?|≥)\s*(?:an? )?$", re.I
)
NO_MORE = re.compile(r"(?:at most|no more than|below|under|less than|<=?|≤)\s*(?:an? )?$", re.I)
_NOT = (
    r"(?:\b(?:not(?! only| just| merely)|never|no longer|nor|neither|hardly"
    r"|in no (?:seed|run|case)|no (?:seed|run))\b"
    r"|n['’]t\b)[^.;,]{0,60}?"
)
_MORE_THAN = r"(?:above|over|more than|higher than|greater than|exceed\w*|beyond|reach\w*|>)"
_LESS_THAN = r"(?:below|beneath|under|less than|lower than|smaller than|worse than|<)"
_NOT_LESS = re.compile(rf"{_NOT}\b{_LESS_THAN}\s*(?:an? )?$", re.I)
_NOT_MORE = re.compile(rf"{_NOT}\b{_MORE_THAN}\s*(?:an? )?$", re.I)
CROSSES = re.compile(r"\b(?:above|beyond|below|beneath|under)\s*$", re.I)


def bound(before: str) -> int:
    """1 when the number behind `before` is a least value, -1 when it is a most, else 0."""
    if _NOT_LESS.search(before):
        return 1
    if _NOT_MORE.search(before):
        return -1
    return 1 if NO_LESS.search(before) else -1 if NO_MORE.search(before) else 0


BEST = re.compile(r"\b(?:best|luckiest|highest|top|maximum|max)\b[^.;]{0,60}$", re.I)
SEED_VALUE = re.compile(r"\b(?:(?<!over )(?<!seeds )seed|run-\d+|run)\b[^.;]{0,30}$", re.I)
BASELINE = re.compile(r"\b(?:trivial|majority|chance|baseline|dummy)\b[^.;]{0,40}$", re.I)
WHILE_TRAINING = re.compile(
    r"\b(?:epochs?|logged|while training|during training|train(?:ing)?)\b", re.I
)
BY = re.compile(
    r"\b(?:(?P<up>improv\w+|gain\w*|better|rose|rises?"
    r"|increas\w+|higher|(?<!makes )(?<!made )up"
    r"|ahead|adds?|beats? [^.;]{0,30})"
    r"|(?P<down>drop(?:s|ped)?\b|fell|falls?"
    r"|decreas\w+|lower|worse|los[et]s?|behind|down))"
    r"(?: of| by| again)?(?: (?:another|an? "
    r"|about|some|nearly|almost|over|more than))?"
    r"(?: (?!(?:from|to|at|than)\b)[\w-]+)?(?: by| of)?\s*$",
    re.I,
)
BETTER_AFTER = re.compile(
    r"\s*(?:absolute |relative )?(?:(?P<up>better|higher|more accurate|above"
    r"|over(?! (?:the |all |these |our "
    r"|\w+ )?(?:seeds|runs|epochs|rows|classes))|ahead"
    r"|improvement|gain|more than exp)"
    r"|(?P<down>worse|lower|below|behind|drop|less than exp))\b",
    re.I,
)
SPREAD = re.compile(
    r"(?:±|\+/-|\+-|plus or minus|(?:spread|std|standard deviation|sd)"
    r"(?: over seeds)?(?: of| is|:|=)?)\s*$"
)
INTERVAL = re.compile(
    r"\b(?:intervals?|CI|confidence (?:limits?"
    r"|bounds?))\b[^.;\d]{0,25}(?:\d[\d.]*\s?%?\s*(?:-|–"
    r"|to|and|,|\.\.)\s*)?$",
    re.I,
)
GAIN_COLUMN = re.compile(
    r"\b(?:gain|delta|diff\w*|change|improvement|(?:over|vs\.?|to) (?:the |its )?parent)\b|Δ", re.I
)
"""The head of a row or column of differences."""
COUNTED = re.compile(
    r"\s?-?(?:(?P<seeds>(?:random |different )?seeds?)|"
    r"(?P<rows>(?:[\w-]+ )?(?:rows|examples|samples))"
    r"|(?P<runs>(?:registered )?(?:runs|launches"
    r"|tries|attempts)(?! compared)))\b",
    re.I,
)
COUNT_BEFORE = re.compile(
    r"\b(?:(?P<seeds>seeds|n_seeds)|(?P<rows>rows"
    r"|n_rows|n)|(?P<runs>runs|launches))\s*[:=]\s*$",
    re.I,
)
SAVING_WORDS = (
    r"fast\w*|quick\w*|slow\w*|speed\w*"
    r"|cheap\w*|saves?|saving\w*|saved|smaller"
    r"|less (?:memory|time|disk|compute|money)"
    r"|fewer tokens|memory|cost\w*|throughput|latency|time"
    r"|overhead|tokens"
)
SAVING = re.compile(rf"\b(?:{SAVING_WORDS})\b", re.I)
SAVES = re.compile(
    r"\b(?:saves?|saving\w*|saved|cuts?|reduc\w+|halv\w+|shrinks?|lowers?"
    r"|speeds? up|speed-?ups?|less|fewer|faster|as fast"
    r"|as quick\w*|as slow|slower|quicker|cheaper"
    r"|smaller|overhead"
    r"|more throughput|baseline)\b",
    re.I,
)
SAID_HOW = re.compile(r"\b(?:measured|projected)\b", re.I)
PROJECTED = re.compile(r"\bprojected\b", re.I)
RUNS_FOR = re.compile(
    r"\b(?:takes?|took|runs?|ran|lasts?|lasted|needs?"
    r"|measured|costs?|spent|finish\w*|done|starts?"
    r"|answers?|in|tests|uses?|peaks?|for"
    r"|and|median|about|to)\b[^.;]{0,30}$",
    re.I,
)
DURATION_VERB = re.compile(
    r"\b(?:takes?|took|lasts?|lasted|measured"
    r"|costs?|spent|finish\w*|peaks?|median"
    r"|runs? (?:for )?(?:about )?\d|ran (?:in|for)|uses about|the tests \d)",
    re.I,
)
AMOUNT_AFTER = re.compile(
    r"\s?(?:ms|us|µs|s|secs?|seconds?|min|minutes?"
    r"|h|hours?|[kKMGT]i?B|megabytes?|gigabytes?)"
    r"(?![\w-])(?! (?:budget|limit))"
)
OUTCOME_AFTER = re.compile(
    r"\s+(?:(?:of|out of) (?:the )?\d+ )?(?:[\w-]+ ){0,3}?"
    r"(?:passed|failed|caught|missed|refused"
    r"|succeed\w*|stopped|got through)\b",
    re.I,
)
OF_CASES = re.compile(
    r"\s+of (?:the )?(?:[\w-]+ )?(?:cases|attempts"
    r"|attacks|calls|runs|tests|sessions|controls)\b",
    re.I,
)
