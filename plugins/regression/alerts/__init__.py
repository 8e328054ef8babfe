"""Alerts: what somebody has to be told of a night, once, and what became of it (see docs/alerts.md)."""
