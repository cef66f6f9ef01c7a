"""Finding codes about runs, files, checkpoints and what was frozen."""

from harness.gates.finding_kind import FAIL, INCONCLUSIVE, PASS, FindingKind

RUN_FINDINGS: dict[str, FindingKind] = {
    # how the runs went
    "run_logger_bypassed": FindingKind(
        "Training did not report through the run logger.",
        "Train with `harness.run_logger.RunLogger.from_environment()`: start, epoch,"
        " checkpoint_saved, end; call start first of all.",
        FAIL,
    ),
    "path_not_in_workspace": FindingKind(
        "Training missed a path that the project has and its workspace has not.",
        "Let a person declare it in `readable` of .harness/config.toml, or commit it; then train"
        " again. A folder to write in: let the code make it.",
        INCONCLUSIVE,
    ),
    "files_not_copied": FindingKind(
        "Files of more than 50 MB that git neither tracks nor ignores are not in the workspace.",
        "Commit them, let git ignore them, or let a person declare them in `readable` of"
        " .harness/config.toml.",
        PASS,
    ),
    "runs_missing": FindingKind(
        "No run was registered.",
        "Train with `harness train EXP -- CMD`; the harness starts one run a seed.",
        INCONCLUSIVE,
    ),
    "placement_lost": FindingKind(
        "The engine that was given a seed does not run it any more, and its supervisor left no"
        " answer.",
        "`harness train EXP --resume` goes on with what it began; without, it begins anew.",
        INCONCLUSIVE,
    ),
    "seeds_outstanding": FindingKind(
        "Not every seed has a completed run of the newest code and command.",
        "Fix what stopped the run (its stderr.log), then train again; completed seeds are not"
        " repeated.",
        INCONCLUSIVE,
    ),
    "seeds_not_of_the_plan": FindingKind(
        "A run has a seed that the harness did not choose.",
        "Open a new experiment and train it with `harness train`: it takes the plan's seeds.",
        FAIL,
    ),
    "run_open": FindingKind(
        "A run has not ended yet.",
        "Wait for its end, then ask the gate again.",
        INCONCLUSIVE,
    ),
    "seed_ignored": FindingKind(
        "Two seeds gave the same weights, or the same but for noise.",
        "Let the training code take its seed from the run logger (`log.seed`), for every source of"
        " randomness; where it has none, a person sets training.deterministic in the plan.",
        FAIL,
    ),
    "seeds_are_one": FindingKind(
        "Training draws nothing at random, as the plan says: its seeds count as one.",
        "Nothing to do.",
        PASS,
    ),
    "seeds_answer_alike": FindingKind(
        "Seeds with other weights answer all rows of the split alike.",
        "Look at what differs in their weights; on an easy task good models agree.",
        PASS,
    ),
    # what a supervisor found
    "run_end_missing": FindingKind(
        "A run's rows have no end row.",
        "Call `log.end()` at the end of training, then train again.",
        FAIL,
    ),
    "checkpoint_unreadable": FindingKind(
        "A checkpoint cannot be read.", "Save regular files, then train again.", FAIL
    ),
    "checkpoint_cadence": FindingKind(
        "More epochs than the plan says passed without a checkpoint.",
        "Save every `log.checkpoint_every` epochs and call `log.checkpoint_saved(path,"
        " epoch=epoch)`; harness.training.checkpointer.Checkpointer does both.",
        FAIL,
    ),
    "stopped_by_alarm": FindingKind(
        "A fatal alarm ended a run.",
        "Read its diagnosis, change what it names, train again.",
        INCONCLUSIVE,
    ),
    "alarm_undiagnosed": FindingKind(
        "A run raised an alarm that no diagnosis explains.",
        "Let the training-checker explain it with record_diagnosis: what happened, by which"
        " mechanism, which rows show it.",
        FAIL,
    ),
    "alarm_open": FindingKind(
        "A run raised an alarm that is still open.",
        "Look at its rows; the training-checker explains it.",
        PASS,
    ),
    "run_not_completed": FindingKind(
        "A run did not complete.", "Fix what stopped it, then train again.", INCONCLUSIVE
    ),
    "budget_spent": FindingKind(
        "The plan's training minutes are used up.",
        "A person may raise budget.total_minutes.",
        INCONCLUSIVE,
    ),
    "processes_left": FindingKind(
        "Some processes of a run could not be killed.",
        "Find them with `ps` and end them.",
        PASS,
    ),
    "result_rejected": FindingKind(
        "A trainer's result does not agree with its specification or with the files.",
        "Correct the trainer, then run it again.",
        FAIL,
    ),
    "run_recovered": FindingKind(
        "A run was closed after its supervisor died.", "Nothing to do.", PASS
    ),
    # artifacts
    "artifact_missing": FindingKind(
        "A required file is not there.", "Write it in the experiment's folder.", FAIL
    ),
    "artifact_empty": FindingKind(
        "A required file holds nothing.", "Write what its form asks for.", FAIL
    ),
    "artifact_linked": FindingKind(
        "A required file, or a folder above it, is a symbolic link.",
        "Put a regular file in its place: what a link leads to can change unnoticed.",
        FAIL,
    ),
    "artifact_unreadable": FindingKind(
        "A required file cannot be read in its form.",
        "Correct the line that is named.",
        FAIL,
    ),
    "config_changed": FindingKind(
        "config.yaml says another thing than when the runs were registered.",
        "Read it with that in mind: what was trained is in the run's command and code.",
        PASS,
    ),
    "prior_not_held": FindingKind(
        "The experiment does not hold what an active prior asks for.",
        "Change the named value or write the named file, then train again; a person retires a rule"
        " that is wrong: `harness priors retire`.",
        FAIL,
    ),
    "configuration_tried_before": FindingKind(
        "An earlier experiment trained the same code, command, configuration and data.",
        "Change what the hypothesis is about; `harness reproduce` trains a kept one again.",
        PASS,
    ),
    "idea_tried_before": FindingKind(
        "An earlier experiment has the same idea.",
        "Read how it went first; each try is counted.",
        PASS,
    ),
    "value_not_read": FindingKind(
        "A value of --set was not asked for by the training.",
        "Read it from the run logger, `log.config`, or hand it to the command.",
        PASS,
    ),
    "metrics_without_epochs": FindingKind(
        "metrics.jsonl holds no epoch row.",
        "Call `log.epoch(epoch, metrics)` once an epoch.",
        FAIL,
    ),
    "metrics_of_another_run": FindingKind(
        "metrics.jsonl does not belong to the run.",
        "Train again: only the run logger writes this file.",
        FAIL,
    ),
    "metrics_changed": FindingKind(
        "metrics.jsonl is not what it was when the run ended.",
        "Train again: nothing writes this file after the run's end.",
        FAIL,
    ),
    "metrics_rewritten": FindingKind(
        "Rows that a run had logged are not in metrics.jsonl any more, or not as they were.",
        "Train again: rows are appended by the run logger and never edited, also not by the"
        " training code.",
        FAIL,
    ),
    "metrics_out_of_time": FindingKind(
        "Rows do not say when they were written.",
        "Train again, and call the run logger while it trains: rows cannot be written later.",
        FAIL,
    ),
    "clock_set": FindingKind(
        "The clock was set, or the machine slept, before or during a run; the times of its rows"
        " are not checked.",
        "Nothing to do.",
        PASS,
    ),
    "run_restarted": FindingKind(
        "The training command was started again inside a run.",
        "After a crash nothing needs to be done. Register each further attempt as a run of its own:"
        " `harness train`.",
        PASS,
    ),
    "resume_not_exact": FindingKind(
        "A resumed run did not restore its whole state, so it differs from an unbroken run.",
        "Save the named parts too. Where bit-exact results matter, train from the start.",
        PASS,
    ),
    "launches_beyond_seeds": FindingKind(
        "The experiment was launched more often than it has seeds.",
        "Read the score with that in mind: `harness experiment show EXP` lists every launch.",
        PASS,
    ),
    "status_of_another_run": FindingKind(
        "training_status.json does not belong to the run or does not say that it completed.",
        "End the training code with `log.end()`, then train again.",
        FAIL,
    ),
    "status_changed": FindingKind(
        "training_status.json is not what it was when the run ended.",
        "Train again: nothing writes this file after the run's end.",
        FAIL,
    ),
    "checkpoint_missing": FindingKind(
        "A run left no final checkpoint that the harness recorded.",
        "Save into `log.checkpoint_dir` and call `log.checkpoint_saved(path, final=True)` before"
        " the end.",
        FAIL,
    ),
    "checkpoint_changed": FindingKind(
        "A checkpoint is not what it was when the run told of it, or when the harness recorded it.",
        "Call `log.checkpoint_saved` after each save and leave the file alone then; train again.",
        FAIL,
    ),
    "checkpoint_overwritten": FindingKind(
        "A checkpoint that is not the final one was written again, and not told of again.",
        "Call `log.checkpoint_saved` after each save.",
        PASS,
    ),
    "checkpoint_removed": FindingKind(
        "A checkpoint was removed by `harness gc` after its experiment was discarded.",
        "It cannot be judged again. To train it again, open a new experiment.",
        INCONCLUSIVE,
    ),
    "checkpoints_taken": FindingKind(
        "The weights are those of earlier runs: what is changed is predict.",
        "Nothing to do.",
        PASS,
    ),
    "checkpoint_copied": FindingKind(
        "A checkpoint has the bytes of one that another experiment or another seed left earlier.",
        "Where only predict is to change, take the checkpoints: `harness train EXP --from OTHER`."
        " Else train this experiment's own configuration; only the same training code,"
        " command, data and seed may leave these bytes.",
        FAIL,
    ),
    "checkpoint_known": FindingKind(
        "A checkpoint has the bytes of a file that stood there before its run.",
        "Save the weights after training; the weights that a run starts from are not its result.",
        FAIL,
    ),
    "checkpoint_out_of_window": FindingKind(
        "A checkpoint was written before its run began.",
        "Save the checkpoint during training: a file that was moved or copied in is no result.",
        FAIL,
    ),
    "checkpoint_untrained": FindingKind(
        "The final checkpoint has the bytes of the weights that its run started from.",
        "Find out why the training changes nothing (the optimizer's step, frozen layers), then"
        " train again.",
        FAIL,
    ),
    "weights_unchanged": FindingKind(
        "All checkpoints of a run have the same bytes.",
        "Find out whether the training changes anything.",
        PASS,
    ),
    # what was frozen
    "plan_changed": FindingKind(
        "plan.md is not the plan that was approved.",
        "Restore it, or let a person run `harness plan approve`.",
        FAIL,
    ),
    "scorer_changed": FindingKind(
        "The scorer is not the one that was frozen.",
        "Restore it, or let a person run `harness plan approve`.",
        FAIL,
    ),
    "split_changed": FindingKind(
        "A data split is not the one that was frozen.",
        "Restore it, or let a person run `harness plan approve`.",
        FAIL,
    ),
    "data_not_here": FindingKind(
        "A data split is not in this working tree, and never was.",
        "A person links or copies it from the tree in which the plan was approved.",
        INCONCLUSIVE,
    ),
    "tampering_noticed": FindingKind(
        "Something recorded was changed during this experiment.",
        "Open a new experiment; leave what the harness wrote as it is.",
        FAIL,
    ),
    "protected_path_changed": FindingKind(
        "A control file (hooks, settings, policy) changed during this experiment.",
        "Let a person look at it with `harness audit`, then restore it or accept it with"
        " `harness audit --accept`.",
        FAIL,
    ),
}
