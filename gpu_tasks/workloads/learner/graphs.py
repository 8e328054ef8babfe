"""Steps of a task as what runs them: on a CPU the function itself, on a GPU a CUDA graph of it.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Step = Callable[[], None]

WARM_UPS = 3
"""Runs before a capture: libraries load their kernels and take their workspaces in the first ones."""


class Graphs:
    """Captures steps one after another into one pool of memory: they are replayed one at a time, never side by side."""

    def __init__(self) -> None:
        self._pool: Any = torch.cuda.graph_pool_handle()

    def capture(self, step: Step) -> Step:
        """Run ``step`` a few times on a stream of its own, capture it, and return what replays it.

        ``step`` may wait for nothing and must read and write the same tensors each time.
        """
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            step()
        replay: Step = graph.replay
        return replay
