"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile(
    "long", deadline=None, max_examples=10_000
)  # `make fuzz` where atheris is missing
settings.load_profile("repeatable")  # `--hypothesis-profile default` searches at random instead
