"""The append-only, hash-chained store of facts. Its database is opened nowhere else."""

from harness.ledger.chain import StoredFact
from harness.ledger.ledger import Ledger

__all__ = ["Ledger", "StoredFact"]
