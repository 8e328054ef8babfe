"""Fixtures shared by all three speeds."""

pytest_plugins = ["tests.support.postgres"]
