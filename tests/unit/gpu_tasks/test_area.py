"""Area reduction: the weights, and the order of the sums."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gpu_tasks.float32 import fma
from gpu_tasks.workloads.area import area_matrix, reduce_images
from gpu_tasks.workloads.base import Workload


def test_weights_are_exact_overlaps() -> None:
    for cells, pixels in ((3, 28), (9, 28), (4, 8)):
        weights = area_matrix(cells, pixels)
        for i in range(cells):
            for k in range(pixels):
                low, high = Fraction(i * pixels, cells), Fraction((i + 1) * pixels, cells)
                overlap = max(Fraction(0), min(high, Fraction(k + 1)) - max(low, Fraction(k)))
                assert abs(Fraction(float(weights[i, k])) - overlap * cells / pixels) < Fraction(1, 2**25)


def test_reduction_is_the_written_out_sum() -> None:
    """Every entry again, one scalar fma at a time."""
    image = np.random.default_rng(1).integers(0, 256, (1, 28, 28), dtype=np.uint8)
    weights, grey = area_matrix(3, 28), image[0].astype(np.float32) / np.float32(255)
    found = reduce_images(image, 3)[0]
    for i in range(3):
        row = [np.float32(0)] * 28
        for k in range(28):
            row = [fma(weights[i, k], grey[k, c], row[c]) for c in range(28)]
        for j in range(3):
            total = np.float32(0)
            for k in range(28):
                total = fma(row[k], weights[j, k], total)
            assert found[i, j] == total


def test_features_of_black_and_white(qda: Workload) -> None:
    images = np.zeros((2, 28, 28), np.uint8)
    images[1] = 255
    features = qda.features(images)
    assert features.dtype == np.float32
    assert features.shape == (2, 9)
    assert features[0].tolist() == [-0.5] * 9
    np.testing.assert_allclose(features[1], 3.5, atol=1e-6)
