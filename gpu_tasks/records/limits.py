"""How large the numbers of a run may be: the params of the DAGs, the options of the programs and a request agree."""

from __future__ import annotations

MAX_DRAWS = 100
"""Draws of a set; their numbers begin at 0."""

MAX_ROUNDS = 100
"""Of one run, and again as many that confirm them."""

MAX_ROUND = 2 * MAX_ROUNDS - 1
"""Number of the last round that a run can have."""

MAX_BLOCKS = 100
"""Interleaved ones of one measurement: most of an hour with four arms."""

MAX_REPEATS = 1_000_000_000
"""Replays in a round."""

MAX_SEED = 2**32 - 1
"""Of the simulated device's noise."""
