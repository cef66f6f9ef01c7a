"""Where a model came from and what became of it: dataset, run, checkpoint, evaluations,
promotions."""

from dataclasses import asdict
from typing import Any

from harness.domain.models import Model
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.posttrain.vocabulary import Profile


def lineage(project: Project, name: str) -> dict[str, Any]:
    """Of an experiment (exp-0007) or of a model (the beginning of its id): {experiment,
    specification, runs[]: {id, status, reason, attempt, judgement, earlier_judgements[] of attempts
    before, models[]: {..., evaluations[], observations[], moves[]}}, served[]}."""
    ledger = project.ledger
    experiment = name if name.startswith("exp-") else ledger.model(name).experiment
    ledger.experiment(experiment)
    program = ledger.program(experiment)
    if program is None:
        raise RefusedError(
            f"{experiment} is no training program.",
            hint="Look at it with `harness experiment show`.",
            code="no_program",
        )
    judged: dict[str, list[dict[str, Any]]] = {}
    for item in ledger.judgements(experiment):
        judged.setdefault(item.run, []).append(asdict(item))
    known = {model.id: model for model in ledger.models()}
    runs = []
    for run in ledger.runs(experiment):
        of_it = judged.get(run.id, [])
        judgement, refused = (of_it[-1] if of_it else None), of_it[:-1]
        made = judgement["artifact"] if judgement is not None and judgement["accepted"] else None
        models = [_of_model(project, known[made])] if made in known else []
        told = {"id": run.id, "status": run.status.value, "reason": run.reason, "seed": run.seed}
        how = {
            "attempt": run.attempt,
            "seconds": run.seconds,
            "judgement": judgement,
            "earlier_judgements": refused,
        }
        runs.append({**told, **how, "models": models})
    served = [asdict(item) for item in ledger.servings(program.spec["profile"])]
    return {
        "experiment": experiment,
        "specification": asdict(program),
        "runs": runs,
        "served": served,
    }


def _of_model(project: Project, model: Model) -> dict[str, Any]:
    history = project.ledger.model_history(model.id)
    return {**asdict(model), **asdict(history)}


def overview(project: Project) -> dict[str, Any]:
    """{programs[]: {experiment, backend, runs[]}, models[], served: {profile: model id or
    None}}."""
    ledger = project.ledger
    programs = [
        {
            "experiment": item.experiment,
            "backend": item.spec["backend"],
            "runs": [
                {
                    "id": run.id,
                    "status": run.status.value,
                    "attempt": run.attempt,
                    "reason": run.reason,
                }
                for run in ledger.runs(item.experiment)
            ],
        }
        for item in ledger.programs()
    ]
    models = [
        {
            "id": item.id,
            "experiment": item.experiment,
            "profile": item.profile,
            "state": item.state.value,
        }
        for item in ledger.models()
    ]
    served = {
        name.value: history[-1].model for name in Profile if (history := ledger.servings(name))
    }
    return {"programs": programs, "models": models, "served": served}


def drawn(tree: dict[str, Any]) -> str:
    """The lineage as lines for a terminal."""
    spec = tree["specification"]["spec"]
    lines = [
        f"dataset {spec['dataset']['path']}  {spec['dataset']['rows']} rows "
        f" {spec['dataset']['sha256'][:12]}"
    ]
    lines.append(
        f"+- {tree['experiment']}  {spec['backend']} {spec['mode']} of {spec['model']['id']}, seed"
        f" {spec['seed']}"
    )
    for run in tree["runs"]:
        again = f", attempt {run['attempt']}" if run["attempt"] > 1 else ""
        lines.append(f"   +- {run['id']}{again}  {run['status']}: {run['reason'][:100]}")
        for model in run["models"]:
            lines.append(f"      +- model {model['id'][:12]}  {model['state']}")
            for item in model["evaluations"]:
                lines.append(
                    f"         +- {item['id']}  {item['mode']}  {item['verdict']}:"
                    f" {item['reason'][:100]}"
                )
            for item in model["moves"]:
                lines.append(
                    f"         +- {item['before']} -> {item['after']}  by {item['by']}:"
                    f" {item['why'][:80]}"
                )
    return "\n".join(lines)
