"""What one draw consists of: array names in file order, shapes, dtypes and the exact form of their .npy headers."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod

from gpu_tasks.workloads.base import DrawnWorkload

NPY_HEADER_BYTES = 128


@dataclass(frozen=True)
class ArrayLayout:
    """Shape and dtype (``float32`` or ``int64``, little endian, C order) of one array of a draw."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def descr(self) -> str:
        """The dtype as a .npy header writes it."""
        return {"float32": "<f4", "int64": "<i8"}[self.dtype]

    @property
    def data_bytes(self) -> int:
        """Bytes of the array's data."""
        return prod(self.shape) * int(self.descr[-1])

    @property
    def npy_bytes(self) -> int:
        """Bytes of the array as a .npy file."""
        return NPY_HEADER_BYTES + self.data_bytes

    def npy_header(self) -> bytes:
        """The .npy version 1.0 header of this array, byte for byte as numpy writes it.

        Written out so that the files do not depend on the numpy version that builds them. numpy fills with spaces to
        a multiple of 64 bytes, which is 128 for any array of one or two dimensions.
        """
        text = f"{{'descr': '{self.descr}', 'fortran_order': False, 'shape': {self.shape!r}, }}"
        body = text.ljust(NPY_HEADER_BYTES - 11).encode("ascii") + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


def draw_layout(workload: DrawnWorkload) -> dict[str, ArrayLayout]:
    """The arrays of one draw of ``workload``, in the order of the .npz file."""
    return {
        "x": ArrayLayout((workload.train_samples, workload.feature_count), "float32"),
        "labels": ArrayLayout((workload.train_samples,), "int64"),
        "q": ArrayLayout((workload.query_samples, workload.feature_count), "float32"),
        "frozen_predictions": predictions_layout(workload),
        "test_labels": ArrayLayout((workload.query_samples,), "int64"),
        "dataset_seed": ArrayLayout((), "int64"),
    }


def predictions_layout(workload: DrawnWorkload) -> ArrayLayout:
    """The array in ``predictions/draw-NN.npy``."""
    return ArrayLayout((workload.query_samples,), "int64")
