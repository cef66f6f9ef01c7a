"""Numbers in prose: found, tied to a metric, an experiment or a measurement, and compared with what
is known.

Pure: texts and facts come in, judged claims go out. Nothing here reads the ledger.
"""
