"""Measures harness.detectors on injected faults, healthy runs and real logs: `python -m
bench.detectors`."""
