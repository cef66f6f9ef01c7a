"""Programs that score a model: `python -m harness.training.evaluators.NAME --request FILE --output
FILE`."""

from harness.training import model_program as model_program
