"""Several replicas as one run: `python -m harness.training.replicas [--replicas N] -- CMD`.

Starts a lighthouse and the replicas, watches each, starts failed ones again within a budget, and
logs their rows as one. No torch here: what trains is in harness.training.diloco.
"""
