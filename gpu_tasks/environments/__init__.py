"""Environments of the programs, one folder each with its lock, and what makes them (standard library only)."""
