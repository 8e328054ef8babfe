"""``score`` of class_blocks in numba's CUDA Python, run by numba's simulator; prints the seconds of one launch.

The nearest to the PTX that the simulator can run: same grid and block, same shared arrays and barriers, the same
arithmetic (without fused multiply-add, which Python has not). Argument: an .npz of model, q and predictions.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda, float32


@cuda.jit
def score(model, q, predictions):
    queries = cuda.shared.array(288, float32)
    scores = cuda.shared.array(320, float32)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    lane, warp = thread % 32, thread // 32
    if thread < 288 and 288 * block + thread < 9000:
        queries[thread] = q[block * 32 + thread // 9, thread % 9]
    row = model[warp]
    cuda.syncthreads()
    residual = cuda.local.array(9, float32)
    for i in range(9):
        residual[i] = queries[9 * lane + i] - row[i] - row[9 + i]
    distance = float32(0)
    multiplier = 18
    for pivot in range(9):
        distance += residual[pivot] * row[54 + pivot] * residual[pivot]
        for i in range(pivot + 1, 9):
            residual[i] += row[multiplier] * residual[pivot]
            multiplier += 1
    scores[thread] = row[63] - float32(0.5) * distance
    cuda.syncthreads()
    if warp == 0 and 32 * block + lane < 1000:
        best = 0
        for label in range(1, 10):
            if scores[32 * label + lane] > scores[32 * best + lane]:
                best = label
        predictions[32 * block + lane] = best


def main() -> None:
    """Run one launch, check it, print its seconds."""
    with np.load(sys.argv[1]) as arrays:
        model, q, expected = arrays["model"], arrays["q"], arrays["predictions"]
    predictions = np.full(1000, -1, np.int32)
    start = perf_counter()
    score[32, 320](model, q, predictions)
    seconds = perf_counter() - start
    agreed = int((predictions == expected).sum())
    if agreed < 999:
        sys.exit(f"the simulated kernel agrees on {agreed} of 1000 only")
    print(seconds)


if __name__ == "__main__":
    main()
