"""Logs of runs that the harness did not start, read as they grow. They are `logged` at best."""
