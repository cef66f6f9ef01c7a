"""Finding codes about predictions, scores, claims, data and the held-out gate."""

from harness.gates.finding_kind import FAIL, INCONCLUSIVE, PASS, FindingKind

SCORE_FINDINGS: dict[str, FindingKind] = {
    # the score
    "evaluation_missing": FindingKind(
        "A seed's checkpoint was not evaluated on this split.",
        "Run `harness evaluate EXP`.",
        INCONCLUSIVE,
    ),
    "evaluation_failed": FindingKind(
        "An evaluation gave no score.", "See its findings in evaluation.json.", INCONCLUSIVE
    ),
    "isolation_absent": FindingKind(
        "The plan requires isolation, and training, predict or a session was not isolated.",
        "Install bubblewrap or use Linux 6.7 or newer (Landlock), then train and evaluate again.",
        FAIL,
    ),
    "below_tier": FindingKind(
        "The score does not reach the plan's least tier.",
        "Try another hypothesis in the next experiment.",
        FAIL,
    ),
    "claim_disagrees": FindingKind(
        "A claim in result.md is not the number that the harness recomputed.",
        "Claim the recomputed number in result.md, or none.",
        FAIL,
    ),
    "claim_too_coarse": FindingKind(
        "A claim in result.md has too few digits to say anything.",
        "Claim the recomputed number in result.md with at least two significant digits.",
        FAIL,
    ),
    "claim_unsupported": FindingKind(
        "A claim in result.md has no recomputed evaluation behind it.",
        "Remove it from result.md: only the plan's metric, recomputed, can be claimed.",
        FAIL,
    ),
    "prose_disagrees": FindingKind(
        "A number in the text of result.md is not the one that the harness recomputed.",
        "Write the recomputed number in result.md, or none.",
        FAIL,
    ),
    "prose_unsupported": FindingKind(
        "The text of result.md states a number about the plan's metric or an experiment, and no"
        " recomputed score supports it.",
        "Remove it from the text of result.md, or evaluate first.",
        FAIL,
    ),
    "prose_unproven": FindingKind(
        "The text of result.md states another number that neither logs nor evidence contain.",
        "Name its source; docs/claims.md says how.",
        PASS,
    ),
    # what an evaluation found: the experiment's fault
    "code_unavailable": FindingKind(
        "The code snapshot of a run cannot be laid out.",
        "Train again, so that a snapshot is taken.",
        FAIL,
    ),
    "predict_crashed": FindingKind(
        "The predict command ended with an error.", "Run it by hand and fix it.", FAIL
    ),
    "predict_timed_out": FindingKind(
        "The predict command hit its limit.",
        "Make it faster, or let a person set oracle.predict_minutes in the plan and approve it.",
        FAIL,
    ),
    "predict_longer_than_training": FindingKind(
        "The predict command took longer than the training, and the plan does not say that it may.",
        "Do the work in training, or let a person set oracle.predict_minutes and approve the plan.",
        PASS,
    ),
    "predictions_absent": FindingKind(
        "The predict command wrote nothing.",
        "Write to the path in HARNESS_PREDICTIONS.",
        FAIL,
    ),
    "predictions_empty": FindingKind(
        "The predictions have no rows.",
        "Write one row for each row of HARNESS_INPUTS.",
        FAIL,
    ),
    "predictions_unreadable": FindingKind(
        "The predictions cannot be read.", "Write UTF-8 csv with a header, or npz.", FAIL
    ),
    "predictions_too_large": FindingKind(
        "The predictions file is larger than any valid answer.",
        "Write `id` and `prediction` only.",
        FAIL,
    ),
    "predictions_wrong_columns": FindingKind(
        "The predictions have the wrong columns.",
        "Write the columns that the finding names.",
        FAIL,
    ),
    "predictions_wrong_type": FindingKind(
        "Predictions are not of the metric's form.",
        "Write the form that the finding names.",
        FAIL,
    ),
    "predictions_missing": FindingKind(
        "Rows have no prediction.", "Write one row for each row of HARNESS_INPUTS.", FAIL
    ),
    "predictions_duplicate": FindingKind(
        "Rows have several predictions.",
        "Write one row for each row of HARNESS_INPUTS.",
        FAIL,
    ),
    "predictions_extra": FindingKind(
        "Predictions name rows that are not in HARNESS_INPUTS.",
        "Keep the ids of HARNESS_INPUTS.",
        FAIL,
    ),
    "predictions_non_finite": FindingKind(
        "Predictions are NaN or infinite.", "Find where they come from in the model.", FAIL
    ),
    "predictions_unknown_class": FindingKind(
        "Predictions name a class that no label has.", "Write one of the classes.", FAIL
    ),
    "predictions_not_probabilities": FindingKind(
        "Probabilities are outside [0, 1] or do not sum to 1.",
        "Write softmax outputs.",
        FAIL,
    ),
    "predictions_not_reproducible": FindingKind(
        "The same rows got different predictions the second time.",
        "Predict each row by itself, without sampling.",
        FAIL,
    ),
    "weights_unused": FindingKind(
        "predict gives the same answers whatever weights it is given.",
        "Let predict answer with what it loads from HARNESS_CHECKPOINT, then train again.",
        FAIL,
    ),
    "weights_not_probed": FindingKind(
        "Whether predict uses its weights could not be tried.",
        "Save weights as npz, safetensors or with torch.save.",
        PASS,
    ),
    "libraries_changed": FindingKind(
        "A library that predict may import changed since the evaluation.",
        "Put back what was there, or run `harness evaluate EXP` again.",
        INCONCLUSIVE,
    ),
    "libraries_added": FindingKind(
        "A package came into the environment since the evaluation; predict does not name it.",
        "Nothing to do.",
        PASS,
    ),
    "score_not_finite": FindingKind(
        "The score is not finite.", "Look at the size of the predictions.", FAIL
    ),
    # what an evaluation found: not the experiment's fault
    "scorer_failed": FindingKind(
        "The scorer failed.", "A person fixes it and approves the plan again.", INCONCLUSIVE
    ),
    "split_unusable": FindingKind(
        "A split cannot be used.", "A person fixes the data or the plan.", INCONCLUSIVE
    ),
    # notes of plan check
    "splits_overlap": FindingKind(
        "The same rows are in two splits.", "Remove them from the training rows.", PASS
    ),
    "splits_near_duplicates": FindingKind(
        "Rows of two splits are nearly the same.",
        "Remove them from the training rows.",
        PASS,
    ),
    "splits_not_compared": FindingKind(
        "What lies in the vault is compared with other splits for a person only.",
        "A person runs `harness plan check`.",
        PASS,
    ),
    "feature_tells_label": FindingKind(
        "One column alone predicts the label.",
        "Leave it out, or explain why it is known at prediction time.",
        PASS,
    ),
    "validation_small": FindingKind(
        "Validation has few rows: only a large gain can be told from luck.",
        "Give it more rows.",
        PASS,
    ),
    "groups_too_few": FindingKind(
        "A split has so few groups that no difference is beyond their luck.",
        "Put more groups into it, or compare by another column.",
        PASS,
    ),
    "bits_spent": FindingKind(
        "What may be told of secret labels is spent.",
        "A person sets oracle.bits higher and approves the plan; then evaluate again.",
        INCONCLUSIVE,
    ),
    "bits_few": FindingKind(
        "The plan's bits are few for its number of experiments.",
        "Set oracle.bits higher before approval.",
        PASS,
    ),
    "tree_without_scores": FindingKind(
        "A tree of experiments needs scores, and those on hidden labels are not told.",
        "Name a validation table, or leave loop.search out.",
        PASS,
    ),
    "scorer_not_probed": FindingKind(
        "A script scorer was not tried: without a sandbox it runs for a person only.",
        "A person runs `harness plan check`; approval tries it in any case.",
        PASS,
    ),
    "id_tells_label": FindingKind(
        "The ids tell the label.", "Give the rows ids that say nothing.", PASS
    ),
    "held_out_perhaps_elsewhere": FindingKind(
        "A file holds a little of held-out, perhaps by accident.",
        "Look at it before you approve.",
        PASS,
    ),
    "rows_not_looked_for": FindingKind(
        "Some files were not searched for rows of held-out.",
        "Make sure yourself that they hold none.",
        PASS,
    ),
    "scorer_imports_missing": FindingKind(
        "The scorer imports what it will not find.", "Use the standard library.", PASS
    ),
    "seeds_too_few": FindingKind(
        "There are too few seeds to tell experiments apart.",
        "Set oracle.seeds to 3 or more.",
        PASS,
    ),
    "verdict_stale": FindingKind(
        "The evidence of the verdict has changed since.",
        "Run `harness gate check EXP` again.",
        PASS,
    ),
    "metric_unknown": FindingKind(
        "The scorer does not compute this metric.", "Name the one that it computes.", PASS
    ),
    "metric_weak": FindingKind(
        "The metric rewards what knows nothing of a row.", "Take another one.", PASS
    ),
    "direction_against_name": FindingKind(
        "The metric's name says that the other direction is better.", "Correct one of both.", PASS
    ),
    "reference_not_in_place": FindingKind(
        "The plan's references name what is not there.", "Correct the path.", PASS
    ),
    "script_not_in_place": FindingKind(
        "A command's script is not in the project.", "Write it.", PASS
    ),
    # statistics
    "split_contaminated": FindingKind(
        "The training rows contain more rows of a split than such data repeats by chance.",
        "A person removes these rows from the training data and approves the plan again.",
        INCONCLUSIVE,
    ),
    "reference_seeds_fewer": FindingKind(
        "The experiment that it is compared with has fewer scored seeds.",
        "Give the parent as many seeds as its child.",
        INCONCLUSIVE,
    ),
    "parent_not_scored": FindingKind(
        "The parent has no score, so something else is the reference.",
        "Evaluate the parent, if it was trained.",
        PASS,
    ),
    "parent_not_reference": FindingKind(
        "The parent is weaker than what was kept, than those before it or than the trivial"
        " predictor: the better one is the reference.",
        "Nothing to do: the comparison with the parent stands beside it.",
        PASS,
    ),
    "reference_older": FindingKind(
        "The reference changed since the comparison on hidden labels was told, and the plan's bits"
        " do not reach for another.",
        "A person sets oracle.bits higher and approves the plan again; or the comparison stays.",
        PASS,
    ),
    "approved_anew": FindingKind(
        "A person approved another scorer, other thresholds or other data since the experiment was"
        " opened.",
        "Nothing to do: scores count under the version in force alone.",
        PASS,
    ),
    "kept_not_scored": FindingKind(
        "What was kept has no score under the version of the plan in force.",
        "Evaluate it again.",
        PASS,
    ),
    # held-out
    "validation_not_passed": FindingKind(
        "There is no PASS on validation.",
        "Run `harness gate check EXP --gate validation`.",
        FAIL,
    ),
    "validation_overfitted": FindingKind(
        "The score on validation does not carry over to held-out.",
        "Something was selected on validation: many tries in one run, or its rows in training. A"
        " person reviews the code and decides; a new experiment may draw another validation split.",
        INCONCLUSIVE,
    ),
    "held_out_too_good": FindingKind(
        "The score on held-out is better than validation explains.",
        "Either rows of held-out stand where the code could read them, as they are, hashed or"
        " encrypted, or held-out is easier than validation. A person looks at what training and"
        " predict read; a plan with held-out rows that were drawn anew tells which it is.",
        INCONCLUSIVE,
    ),
    "improvement_not_confirmed": FindingKind(
        "What was better than its reference on validation is worse than it on held-out.",
        "This is luck, or something was selected on validation. A person reviews the code and"
        " decides; more seeds, or more rows in both splits, can show a small improvement.",
        INCONCLUSIVE,
    ),
    "validation_stale": FindingKind(
        "The evidence behind the PASS on validation has changed.",
        "Run `harness gate check EXP --gate validation` again.",
        FAIL,
    ),
}
