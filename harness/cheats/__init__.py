"""Attacks with a known truth: each is tried where nothing defends and where everything does."""
