"""Fixtures of the results database."""

from tests.integration.regression.databases import database, roles

__all__ = ["database", "roles"]
