"""Programs that train, `python -m harness.training.trainers.NAME --spec FILE --output-dir DIR`.

docs/training-programs.md holds what goes in and out.
"""

from harness.training import model_program as model_program
