"""Area reduction of square images, with every bit fixed: the order of the sums is part of the definition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu_tasks.float32 import Float32Array, fma


def area_matrix(cells: int, pixels: int) -> Float32Array:
    """(cells, pixels) float32 weights: the share of each pixel in each cell, every row summing to about 1.

    ``W[i, k] = max(0, min((i+1)*pixels/cells, k+1) - max(i*pixels/cells, k)) * cells/pixels``, in float64 and then
    rounded to float32.
    """
    cell = np.arange(cells, dtype=np.float64)[:, None]
    pixel = np.arange(pixels, dtype=np.float64)[None, :]
    low, high = cell * pixels / cells, (cell + 1) * pixels / cells
    overlap = np.maximum(0.0, np.minimum(high, pixel + 1) - np.maximum(low, pixel))
    weights: Float32Array = (overlap * cells / pixels).astype(np.float32)
    return weights


def reduce_images(images: npt.NDArray[np.uint8], cells: int) -> Float32Array:
    """Mean grey of each cell of a ``cells`` x ``cells`` grid, 0 (black) to 1, as (n, cells, cells) float32.

    ``images`` is (n, side, side) uint8. Computed as ``W @ (image / 255) @ W.T``, left product first, each entry a
    sequential sum of fused multiply-adds from index 0 upwards: written out, because a BLAS may sum in any order.
    """
    weights = area_matrix(cells, images.shape[-1])
    grey = images.astype(np.float32) / np.float32(255)
    rows = np.zeros((len(images), cells, images.shape[-1]), np.float32)
    reduced = np.zeros((len(images), cells, cells), np.float32)
    for source, target in ((grey, rows), (rows.transpose(0, 2, 1), reduced.transpose(0, 2, 1))):
        for i, k in np.argwhere(weights):  # a weight of 0 would leave the sum as it is, and most are
            target[:, i] = fma(weights[i, k], source[:, k], target[:, i])
    return reduced
