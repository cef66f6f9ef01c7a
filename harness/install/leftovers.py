"""What a killed installation left half written: temporary files beside everything that an
installation writes."""

from harness.contract.artifacts import BY_NAME
from harness.contract.installation import VENDORED
from harness.files import remove_leftovers
from harness.install import manifest as manifests
from harness.install.changes import inside
from harness.install.place import Place
from harness.install.undo import undo_of
from harness.install.wanted import MERGED
from harness.plans.scaffold import forms
from harness.rendering.render import expected, installed_texts
from harness.rendering.vendored import vendored_files
from harness.settings import CONFIG


def sweep(place: Place) -> None:
    """Remove them; what another process is writing now stays."""
    layout, plan = place.layout, BY_NAME["plan"].path
    names = {CONFIG, manifests.PATH, *MERGED, *forms(plan), *forms(f".harness/{plan}")}
    names |= {f"{VENDORED}/{name}" for name in vendored_files()} | {
        str(path) for path in installed_texts()
    }
    names |= {str(path) for path in expected(place.root)} if place.own else set()
    derived = [layout.project(name) for name in ("policy", "checklist", "priors")]
    derived += [
        layout.decision_log,
        layout.state_md,
        layout.briefing,
        layout.project("config_toml"),
    ]
    state = [
        layout.accepted,
        layout.accepted_next,
        layout.approved_config,
        *undo_of(layout.state, place.root).paths(),
    ]
    remove_leftovers([*(inside(place.root, name) for name in sorted(names)), *derived, *state])
