"""The table of alarms: meaning, thresholds with their source, what to try, and the detectors.

A threshold whose source is "measured" was chosen on one half of the injected faults and healthy
runs of `make detectors` and reported on the other. Detectors, and a row's alarms, keep this order.
"""

from collections.abc import Mapping

from harness.detectors.alarm_kind import AlarmKind, Threshold, persistent
from harness.detectors.compared_kinds import BEHIND_PARENT, REPLICA_APART
from harness.detectors.probe_kinds import PROBE_KINDS

STOP_ON = ("non_finite", "divergence")
"""Fatal alarms that stop a run unless the plan says otherwise."""

KINDS: Mapping[str, AlarmKind] = {
    "non_finite": AlarmKind(
        "A watched value is NaN or infinite, row after row.",
        {
            "rows": persistent(2),
            "fatal_rows": persistent(3, "rows in a row until it is fatal"),
            "often": persistent(4, "rows, not in a row, until the warning"),
            "within": persistent(10, "rows that hold so many"),
            "gradient_rows": Threshold(
                8,
                "rows in a row, for a gradient norm",
                "a gradient scaler starts at 2^16 and halves at each overflow",
            ),
        },
        (
            "Look at the first row of the evidence: the batch before it, its gradient norm and"
            " its learning rate.",
            "Lower the learning rate or clip gradients; with fp16 use a gradient scaler, or bf16.",
            "Check the inputs for NaN and the loss for log(0), 0/0 and sqrt(0).",
        ),
        # `watch` itself asks NonFinite, before all others: they see finite values only.
        (),
    ),
    "overfit": AlarmKind(
        "A value on rows that are not trained on gets worse while training goes on to improve.",
        {
            "worse": Threshold(0.1, "of the best value, for a loss", "measured"),
            "worse_score": Threshold(0.1, "of the best value, for a score", "measured"),
            "rows": persistent(3),
            "improves": Threshold(0.3, "of the training loss, since the best", "measured"),
            "gap": Threshold(2.0, "times the training loss", "measured"),
            "memorizes": Threshold(
                0.3, "of the training loss, since the best, with that gap", "measured"
            ),
        },
        (
            "Stop at the best checkpoint; more data, augmentation, weight decay or a smaller"
            " model.",
            "If it starts in the first rows, compare the labels of both splits: shuffled labels"
            " look like this.",
        ),
        ("harness.detectors.overfitting:Overfit",),
    ),
    "divergence": AlarmKind(
        "A loss went well above where it started, or far above its best, and stays there.",
        {
            "above_start": Threshold(1.5, "times the level of the first rows", "measured"),
            "above_best": Threshold(
                3.0, "times the best level, while above the start", "measured"
            ),
            "nats": Threshold(
                20.0, "nats, beside an accuracy", "a uniform guess among 50,000 classes has 10.8"
            ),
            "rows": persistent(2),
            "fatal_rows": persistent(6, "rows in a row until it is fatal"),
        },
        (
            "Lower the learning rate by 3 to 10 times, or warm it up.",
            "Clip the gradient norm; check that gradients are zeroed before each step.",
            "Go back to the checkpoint before the first row of the evidence.",
        ),
        (
            "harness.detectors.losses:Divergence",
            "harness.detectors.learning:ExplodedLogits",
        ),
    ),
    "loss_spike": AlarmKind(
        "A loss jumped far outside its recent spread and did not come back at once.",
        {
            "spreads": Threshold(
                7.0,
                "robust standard deviations above the recent median",
                "OLMo 2 (arXiv 2501.00656): spike score, 7 sd",
            ),
            "ratio": Threshold(1.5, "times the recent median", "measured"),
            "rows": persistent(2),
            "recovery_rows": Threshold(
                20, "rows within which a return counts as a recovery", "measured"
            ),
        },
        (
            "Look at the batch before the spike; skip it when it recurs.",
            "Clip gradients, lower the learning rate, or lower Adam's beta2.",
            "If it did not recover, go back to the checkpoint before it.",
        ),
        ("harness.detectors.losses:Spike",),
    ),
    "spike_recovered": AlarmKind(
        "A loss jumped far outside its recent spread and came back.",
        {
            "spreads": Threshold(
                7.0, "robust standard deviations above the recent median", "as loss_spike"
            )
        },
        ("Nothing, unless spikes come more often; then clip gradients.",),
        ("harness.detectors.losses:Spike",),
    ),
    "stall": AlarmKind(
        "A training loss repeats to the last bit: nothing is learned or the logger repeats itself.",
        {
            "rows": persistent(3, "equal rows after the first until the warning"),
            "rounded_rows": persistent(10, "the same, for values of at most four decimals"),
        },
        ("Check that optimizer.step() runs and that parameters require gradients.",),
        ("harness.detectors.losses:Stall",),
    ),
    "no_progress": AlarmKind(
        "Training does not learn: the loss is where it started, or accuracy stays at chance.",
        {
            "improvement": Threshold(0.02, "of the first loss", "measured"),
            "chance": Threshold(
                0.15,
                "relative distance of the loss from -ln(accuracy)",
                "a uniform guess has loss -ln(1/k)",
            ),
            "rows": persistent(4, "rows at chance until the warning"),
            "flat_rows": persistent(8, "rows without improvement until the warning"),
            "still_rows": persistent(40, "rows in which a return is the same to the last bit"),
            "score_rows": persistent(12, "rows in which a low score stays where it began"),
            "score_moves": Threshold(0.02, "of the scale: it moves", "made rows"),
            "share": Threshold(0.1, "of the planned epochs that must have passed", "measured"),
        },
        (
            "Check that the optimizer has the model's parameters, that the learning rate is not"
            " 0, that labels fit.",
            "Overfit one small batch first: a model that cannot do this has a fault in its code.",
        ),
        (
            "harness.detectors.learning:NoProgress",
            "harness.detectors.learning:StillReturn",
            "harness.detectors.learning:Chance",
            "harness.detectors.scores:StillScore",
        ),
    ),
    "out_of_range": AlarmKind(
        "A metric has a value that its name rules out.",
        {
            "slack": Threshold(1e-6, "beyond the range", "rounding"),
            "rows": persistent(3),
        },
        (
            "Check the unit (a share or a percentage), the denominator, and sums that were not"
            " divided.",
            "A negative cross-entropy: check the sign of the loss and the coding of the labels.",
        ),
        ("harness.detectors.scores:OutOfRange", "harness.detectors.scores:NegativeLoss"),
    ),
    "score_collapse": AlarmKind(
        "A score lost a large part of its best, whatever the loss does.",
        {
            "share": Threshold(0.4, "of its best level", "made rows"),
            "rows": persistent(4),
        },
        (
            "Compare the scored rows, the label order and the model's mode with those of the best"
            " row.",
            "Lower the weight decay; go back to the checkpoint of the best row.",
        ),
        ("harness.detectors.scores:ScoreCollapse",),
    ),
    "plateau": AlarmKind(
        "The training loss has not improved for a long part of the run.",
        {
            "share": Threshold(
                0.5, "of the planned epochs or steps without a new best", "measured"
            ),
            "improvement": Threshold(0.01, "of the loss: clearly better", "made rows"),
        },
        ("Lower the learning rate, or stop here and use the time for another hypothesis.",),
        ("harness.detectors.learning:Plateau",),
    ),
    "gradient_blow_up": AlarmKind(
        "The gradient norm is far above its usual size and stays there, or keeps growing.",
        {
            "ratio": Threshold(20.0, "times the level of the first rows", "measured"),
            "growth": Threshold(
                6.0,
                "times the least of the first rows, while it grows and the loss does not",
                "measured",
            ),
            "rising": Threshold(
                0.75, "of the recent rows (average over 8) above the one before", "measured"
            ),
            "rows": persistent(3),
        },
        (
            "Clip the gradient norm.",
            "Lower the learning rate; check that gradients are zeroed before each step.",
        ),
        ("harness.detectors.learning:Gradient",),
    ),
    "gradient_vanishing": AlarmKind(
        "The gradient norm is practically zero while the loss is not.",
        {
            "ratio": Threshold(1e-4, "of the level of the first rows", "measured"),
            "absolute": Threshold(1e-7, "gradient norm", "AutoTrainer (ICSE 2021) uses 1e-7"),
            "rows": persistent(3),
        },
        (
            "Look at the initialization and the activation (ReLU units that are all zero,"
            " saturated sigmoids).",
            "Check that the loss depends on the parameters and that layers are not frozen by"
            " mistake.",
        ),
        ("harness.detectors.learning:Gradient",),
    ),
    "throughput_drop": AlarmKind(
        "Rows come much more slowly than before.",
        {
            "ratio": Threshold(3.0, "times the usual time of a row", "measured"),
            "floor": Threshold(0.1, "seconds a row, below which no row is slow", "measured"),
            "rows": persistent(3),
        },
        (
            "Look at the data loader (workers, disk, network), other load, thermal limits and"
            " memory.",
        ),
        (
            "harness.detectors.resources:SlowRows",
            "harness.detectors.resources:LoggedThroughput",
        ),
    ),
    "short_rows": AlarmKind(
        "A row holds far less training than before: fewer samples or steps, or hardly any time.",
        {
            "share": Threshold(0.3, "of the usual samples or steps", "made rows"),
            "faster": Threshold(8.0, "times faster than the usual row", "made rows"),
            "floor": Threshold(1.0, "seconds a row, below which none is told", "made rows"),
            "rows": persistent(4),
        },
        ("Count an epoch's batches: a used-up loader, a sampler not set anew, a break.",),
        (
            "harness.detectors.row_sizes:FewSamples",
            "harness.detectors.row_sizes:ShortRows",
        ),
    ),
    "no_checkpoint": AlarmKind(
        "No checkpoint was reported for longer than the plan allows.",
        {
            "cadences": Threshold(
                2.0,
                "times the plan's checkpoint_every, in epochs",
                "the plan; one cadence of grace",
            )
        },
        (
            "Call log.checkpoint_saved(path, epoch=epoch) at the plan's cadence;"
            " harness.training.checkpointer.Checkpointer does.",
        ),
        ("harness.detectors.resources:NoCheckpoint",),
    ),
    "dead_learning_rate": AlarmKind(
        "The learning rate is zero, or next to it, although training goes on.",
        {
            "rate": Threshold(1e-12, "learning rate", "measured"),
            "of_peak": Threshold(1e-4, "of the highest rate: it trains no more", "made rows"),
            "of_peak_left": Threshold(
                0.2, "of the planned epochs left, for a rate above zero", "made rows"
            ),
            "of_peak_rows": persistent(12, "such rows, where the planned total is unknown"),
            "rows": persistent(2),
            "left": Threshold(
                0.1, "of the planned epochs that must be left", "schedules may end at zero"
            ),
        },
        (
            "Look at the schedule: its total steps, its warm-up, and whether it was restored on"
            " resume.",
        ),
        ("harness.detectors.resources:DeadLearningRate",),
    ),
    "memory_creep": AlarmKind(
        "Memory grows row after row and does not come back.",
        {
            "growth": Threshold(0.3, "over the level of the first rows", "measured"),
            "so_far": Threshold(
                0.1, "of growth, where the planned end would have the other", "made rows"
            ),
            "rising": Threshold(
                0.8, "of the recent rows that are above the one before", "measured"
            ),
            "rows": persistent(4, "rows that are averaged; no alarm before twice as many"),
        },
        (
            "Look for kept tensors with a graph (append(loss) instead of loss.item()) and for"
            " caches that only grow.",
        ),
        ("harness.detectors.resources:MemoryCreep",),
    ),
    "replica_apart": REPLICA_APART,
    "behind_parent": BEHIND_PARENT,
    "resume_discontinuity": AlarmKind(
        "After a resume the loss is far from where it was.",
        {
            "spreads": Threshold(
                4.0, "robust standard deviations above the median before the resume", "measured"
            ),
            "ratio": Threshold(1.15, "times the median before the resume", "measured"),
            "rows": persistent(2, "rows after the resume, all of them"),
        },
        (
            "Restore optimizer, scheduler, scaler and random states;"
            " harness.training.checkpointer.Checkpointer keeps them all.",
        ),
        ("harness.detectors.losses:ResumeJump",),
    ),
    "reward_spread_zero": AlarmKind(
        "All rewards of a group are equal: the advantage is zero and nothing is learned.",
        {
            "share": Threshold(0.95, "of the groups", "TRL: frac_reward_zero_std"),
            "spread": Threshold(1e-6, "standard deviation", "measured"),
            "rows": persistent(4),
        },
        (
            "Check the reward for a constant; take harder or easier prompts, or more"
            " generations a prompt.",
        ),
        ("harness.detectors.preferences:RewardSpread",),
    ),
    "reward_gap": AlarmKind(
        "The reward rises while what it should stand for does not.",
        {
            "rise": Threshold(0.2, "of the first level of the reward", "made rows"),
            "fall": Threshold(
                0.25, "of its best, for a score on other rows that is below its start", "made rows"
            ),
            "length": Threshold(1.5, "times the first length", "made rows"),
            "kl": Threshold(1.0, "nats of KL", "made rows"),
            "entropy": Threshold(0.4, "of the first entropy", "made rows"),
            "rows": persistent(3),
        },
        (
            "Read samples of the newest rows: what is rewarded that nobody wants (length, format,"
            " a phrase)?",
            "Go back to the checkpoint of the best other score; bound the reward, raise beta.",
        ),
        ("harness.detectors.reward_gap:RewardGap",),
    ),
    "kl_high": AlarmKind(
        "The policy is far from its reference.",
        {
            "kl": Threshold(
                10.0, "nats a sequence or token, as logged", "InstructGPT-style runs; measured"
            ),
            "rows": persistent(3),
        },
        ("Raise beta or lower the learning rate; look at samples for reward hacking.",),
        ("harness.detectors.preferences:KlHigh",),
    ),
    "entropy_collapse": AlarmKind(
        "The policy's entropy fell to a small part of what it was.",
        {
            "share": Threshold(
                0.05,
                "of the highest entropy",
                "DAPO (arXiv 2503.14476) shows the collapse; measured",
            ),
            "rows": persistent(5),
        },
        ("Raise the clip range's upper side or the temperature; add an entropy bonus.",),
        ("harness.detectors.preferences:EntropyCollapse",),
    ),
    "dpo_stuck": AlarmKind(
        "The preference loss stays at ln 2: chosen and rejected are not told apart.",
        {
            "distance": Threshold(
                2e-3, "from ln 2", "a margin of zero: eq. 7 of arXiv 2305.18290"
            ),
            "rows": persistent(20),
            "exact_rows": persistent(3, "the same, at ln 2 to 1e-6"),
        },
        (
            "Check that adapters are trained, the reference is not the policy itself, rows are"
            " not cut to equality.",
        ),
        ("harness.detectors.preferences:DpoStuck",),
    ),
    "channel_silent": AlarmKind(
        "A channel of a composed loss has a weight and fires on no row: it adds nothing.",
        {"rows": Threshold(8, "rows in a row without one", "chosen: a step may lack a success")},
        ("Give rows a hint; take a reward that tells completions apart; else set weight to 0.",),
        ("harness.detectors.preferences:ChannelSilent",),
    ),
    **PROBE_KINDS,
}
