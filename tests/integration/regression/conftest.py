"""Fixtures of the results database."""

from tests.integration.regression.databases import database, newest_schema, roles
from tests.integration.regression.full_database import full

__all__ = ["database", "full", "newest_schema", "roles"]
