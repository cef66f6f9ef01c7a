"""Check of the Python that the settings name: there, itself and no stand-in, and able to run the
guard."""

from harness.doctor.report import INSTALL, Check, dead, good, note
from harness.doctor.scene import Scene
from harness.errors import RefusedError
from harness.install.interpreter import choose


def interpreter(scene: Scene) -> Check:
    """Whether every Python of our entries passes the test by which `harness init` chooses one."""
    programs = sorted(
        {hook.words[0] for hook in scene.own() if isinstance(hook.body.get("args"), list)}
    )
    if not programs:
        return note("interpreter", "No entry of ours names an interpreter.")
    faults = []
    for program in programs:
        try:
            choose([program])
        except RefusedError as error:
            faults.append(error.message)
    if faults:
        return dead("interpreter", " ".join(faults), f"{INSTALL} It chooses a Python that works.")
    return good("interpreter", f"{', '.join(programs)} runs the hooks")
