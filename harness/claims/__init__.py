"""Numbers in prose: find them, tie each to a metric and an experiment, compare it with the facts.

Pure: texts and facts come in, judged claims go out. Nothing here reads the ledger.
"""
