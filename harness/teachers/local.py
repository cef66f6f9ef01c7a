"""A teacher on this machine: a folder of a transformers model, in a process of its own."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.clock import Clock
from harness.domain.commands import for_helpers
from harness.errors import RunError
from harness.files import canonical_json
from harness.teachers.asking import Answer, Question, always
from harness.teachers.lines import object_of

_PROGRAM = "harness.training.teacher_program"


class LocalTeacher:
    """The process starts with the first question."""

    def __init__(
        self,
        model: str,
        folder: Path,
        *,
        interpreter: str,
        inherited: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self.model, self.lost = model, 0
        self._words = [interpreter, "-I", "-m", _PROGRAM, "--model", str(folder.resolve())]
        self._environment, self._clock = for_helpers(inherited), clock
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, question: Question, may_try: Callable[[int], bool] = always) -> Answer:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        began = self._clock.monotonic()
        asked = {"text": question.text, "longest": question.longest}
        try:
            process.stdin.write(canonical_json(asked) + b"\n")
            process.stdin.flush()
        except BrokenPipeError:  # it has ended; its answer is missing below
            pass
        row = object_of(process.stdout.readline())
        if not isinstance(row.get("text"), str):
            raise RunError(
                f"The local teacher {self.model} gave no answer; what it said is above.",
                hint="Give a folder that `harness posttrain model add` takes.",
                code="teacher_unavailable",
            )
        return Answer(
            text=row["text"],
            cut=bool(row["cut"]),
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
            seconds=round(self._clock.monotonic() - began, 3),
        )

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._words,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process
