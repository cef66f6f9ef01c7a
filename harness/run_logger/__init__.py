"""What training code imports: `from harness.run_logger import RunLogger`. Standard library only."""

from harness.run_logger.logger import RunLogger

__all__ = ["RunLogger"]
