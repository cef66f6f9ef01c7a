"""A model's lineage: dataset, run, checkpoint, evaluations, promotions."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from harness.errors import RefusedError
from harness.ledger.facts import Model
from harness.ledger.project import Project
from harness.posttrain.vocabulary import Profile


def lineage(project: Project, name: str) -> dict[str, Any]:
    """Lineage of an experiment (exp-0007) or of a model (the beginning of its id): {experiment,
    specification, runs[], served[]}.

    A run has {id, status, reason, attempt, judgement, earlier_judgements[] of earlier attempts,
    models[]}; a model has, beside its own fields, evaluations[], observations[], moves[].
    """
    ledger = project.ledger
    experiment = name if name.startswith("exp-") else ledger.model(name).experiment
    ledger.experiment(experiment)
    program = ledger.program(experiment)
    if program is None:
        raise RefusedError(
            f"{experiment} is not a training program.",
            hint=f"Show it with `harness experiment show {experiment}`.",
            code="no_program",
        )
    judged: dict[str, list[dict[str, Any]]] = {}
    for judgement in ledger.judgements(experiment):
        judged.setdefault(judgement.run, []).append(asdict(judgement))
    known = {model.id: model for model in ledger.models()}
    runs = []
    for run in ledger.runs(experiment):
        judgements = judged.get(run.id, [])
        newest = judgements[-1] if judgements else None
        made = newest["artifact"] if newest is not None and newest["accepted"] else None
        runs.append(
            {
                "id": run.id,
                "status": run.status.value,
                "reason": run.reason,
                "seed": run.seed,
                "attempt": run.attempt,
                "seconds": run.seconds,
                "judgement": newest,
                "earlier_judgements": judgements[:-1],
                "models": [_of_model(project, known[made])] if made in known else [],
            }
        )
    served = [asdict(serving) for serving in ledger.servings(program.spec["profile"])]
    return {
        "experiment": experiment,
        "specification": asdict(program),
        "runs": runs,
        "served": served,
    }


def _of_model(project: Project, model: Model) -> dict[str, Any]:
    history = project.ledger.model_history(model.id)
    evaluations = tuple({"id": each.id, **asdict(each)} for each in history.evaluations)
    return {
        "id": model.id,
        **asdict(model),
        **asdict(history),
        "evaluations": evaluations,
    }


def overview(project: Project) -> dict[str, Any]:
    """{programs[]: {experiment, backend, runs[]}, approved[], models[], served: {profile:
    model id}}."""
    ledger = project.ledger
    programs = [
        {
            "experiment": program.experiment,
            "backend": program.spec["backend"],
            "runs": [
                {
                    "id": run.id,
                    "status": run.status.value,
                    "attempt": run.attempt,
                    "reason": run.reason,
                }
                for run in ledger.runs(program.experiment)
            ],
        }
        for program in ledger.programs()
    ]
    models = [
        {
            "id": model.id,
            "experiment": model.experiment,
            "profile": model.profile,
            "state": model.state.value,
        }
        for model in ledger.models()
    ]
    served = {
        name.value: history[-1].model for name in Profile if (history := ledger.servings(name))
    }
    approved = [asdict(one) for one in ledger.approved_benchmarks()]
    return {"programs": programs, "approved": approved, "models": models, "served": served}


def drawn(tree: dict[str, Any]) -> str:
    """The lineage as lines for a terminal."""
    spec = tree["specification"]["spec"]
    dataset, trained = spec["dataset"], f"{spec['mode']} of {spec['model']['id']}"
    lines = [
        f"dataset {dataset['path']}  {dataset['rows']} rows  {dataset['sha256'][:12]}",
        f"+- {tree['experiment']}  {spec['backend']} {trained}, seed {spec['seed']}",
    ]
    for run in tree["runs"]:
        again = f", attempt {run['attempt']}" if run["attempt"] > 1 else ""
        lines.append(f"   +- {run['id']}{again}  {run['status']}: {run['reason'][:100]}")
        for model in run["models"]:
            lines.append(f"      +- model {model['id'][:12]}  {model['state']}")
            for evaluation in model["evaluations"]:
                head = f"{evaluation['id']}  {evaluation['mode']}  {evaluation['verdict']}"
                lines.append(f"         +- {head}: {evaluation['reason'][:100]}")
            for move in model["moves"]:
                head = f"{move['before']} -> {move['after']}  by {move['by']}"
                lines.append(f"         +- {head}: {move['why'][:80]}")
    return "\n".join(lines)


def trained_on(project: Project, digests: Collection[str]) -> list[dict[str, Any]]:
    """The programs whose dataset has one of these SHA-256, and what came of each: {experiment,
    dataset, sha256, runs, models: [{id, state, profile, served}]}."""
    ledger = project.ledger
    served = {history[-1].model for name in Profile if (history := ledger.servings(name))}
    found = []
    for program in ledger.programs():
        dataset = program.spec["dataset"]
        if dataset["sha256"] not in digests:
            continue
        models = [
            {
                "id": model.id,
                "state": model.state.value,
                "profile": model.profile,
                "served": model.id in served,
            }
            for model in ledger.models(experiment=program.experiment)
        ]
        found.append(
            {
                "experiment": program.experiment,
                "dataset": dataset["path"],
                "sha256": dataset["sha256"],
                "runs": [run.id for run in ledger.runs(program.experiment)],
                "models": models,
            }
        )
    return found
