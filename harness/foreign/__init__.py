"""Logs of runs that the harness did not start: read as they grow, whatever wrote them. They are
`logged` at best."""
