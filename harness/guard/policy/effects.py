"""What a program with its arguments does: the value that `program_effects.effects` returns."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .arguments import Argument


class Effects:
    """`trees` are changed with all that lies below them; `given` is handed to a program of which
    nothing more is known; `code` is program text of another language, `scripts` shell text that is
    run, `programs` further command lines; `scanned` are read with all that lies below them; `only`:
    of `trees` and `scanned` just what is called like one of these wildcards; `hint`: what to do
    instead of changing `trees`; `unsure` says why more may be touched than is listed, and is empty
    when not."""

    __slots__ = (
        "changes",
        "code",
        "given",
        "hint",
        "only",
        "programs",
        "reads",
        "scanned",
        "scripts",
        "trees",
        "unsure",
    )

    def __init__(
        self,
        *,
        changes: list[Argument] | None = None,
        trees: list[Argument] | None = None,
        given: list[Argument] | None = None,
        reads: list[Argument] | None = None,
        scanned: list[Argument] | None = None,
        code: list[str] | None = None,
        scripts: list[str] | None = None,
        programs: list[list[Argument]] | None = None,
        unsure: str = "",
        only: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        self.changes = changes or []
        self.trees = trees or []
        self.given = given or []
        self.reads = reads or []
        self.scanned = scanned or []
        self.code = code or []
        self.scripts = scripts or []
        self.programs = programs or []
        self.unsure = unsure
        self.only = only
        self.hint = hint
