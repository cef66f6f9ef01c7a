"""Every claim of a text, judged."""

from collections.abc import Mapping

from harness.artifacts.experiment_files import Claim
from harness.claims.judge import JudgedClaim, judge_statement
from harness.claims.known import Known
from harness.claims.passages import Sentence
from harness.claims.statements import statements


def judged(found: list[Sentence], known: Known, *, file: str) -> list[JudgedClaim]:
    """The claims of a text's sentences, in their order."""
    return [
        judge_statement(statement, known, file=file)
        for sentence in found
        for statement in statements(sentence, known.metrics)
    ]


def front_matter_claims(
    text: str, claims: Mapping[str, Claim], known: Known, *, experiment: str, file: str
) -> list[JudgedClaim]:
    """The claims of a result's front matter, read as `metric: number`, about validation as the gate
    reads them."""
    lines = text.split("\n")
    found = []
    for name, claim in claims.items():
        line = next(
            (number for number, said in enumerate(lines, 1) if name in said and claim.text in said),
            1,
        )
        sentence = Sentence(
            line=line,
            text=f"{name}: {claim.text} on validation",
            experiment=experiment,
            report=True,
            around=name,
        )
        metrics = known.metrics | {name}
        found += [
            judge_statement(item, known, file=file) for item in statements(sentence, metrics)[:1]
        ]
    return found
