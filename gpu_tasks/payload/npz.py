"""The .npy and .npz files of a payload: written byte by byte, read without trusting them.

Writing is spelled out instead of left to ``numpy.savez``, whose bytes depend on the zipfile module beneath it (system
byte, zip64 fields) and on numpy's header padding: a frozen draw has one sha256 on every machine. The form is the
one ``numpy.savez`` gives on Linux with numpy 2, so ``numpy.load`` reads the files as usual.

Reading looks at names, sizes, headers and shapes before it touches array data, and never unpickles.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.payload.errors import PayloadDefect
from gpu_tasks.payload.layout import ArrayLayout

Array = npt.NDArray[Any]

_DATE_1980 = 0x21
_ZIP64_VERSION = 45
_UNIX = 3
_OWNER_READ_WRITE = 0o600 << 16


def npy_bytes(array: Array, layout: ArrayLayout) -> bytes:
    """The .npy file of ``array``, which must have the shape and dtype of ``layout``."""
    if array.shape != layout.shape or array.dtype != np.dtype(layout.dtype):
        raise ValueError(f"expected {layout.dtype} {layout.shape}, found {array.dtype} {array.shape}")
    return layout.npy_header() + array_bytes(array)


def array_bytes(array: Array) -> bytes:
    """C-order little-endian bytes of an array: what the manifest's array hashes are taken of."""
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


def npz_bytes(arrays: Mapping[str, Array], layouts: Mapping[str, ArrayLayout]) -> bytes:
    """An uncompressed .npz of ``arrays`` in the order of ``layouts``."""
    body, directory = bytearray(), bytearray()
    for name, layout in layouts.items():
        member = f"{name}.npy".encode("ascii")
        data = npy_bytes(arrays[name], layout)
        checksum, size, offset = zlib.crc32(data), len(data), len(body)
        zip64 = struct.pack("<HHQQ", 1, 16, size, size)
        shared = struct.pack("<HHHHHL", _ZIP64_VERSION, 0, zipfile.ZIP_STORED, 0, _DATE_1980, checksum)
        body += b"PK\x03\x04" + shared + struct.pack("<LLHH", 0xFFFFFFFF, 0xFFFFFFFF, len(member), len(zip64))
        body += member + zip64 + data
        directory += b"PK\x01\x02" + struct.pack("<BB", _ZIP64_VERSION, _UNIX) + shared
        directory += struct.pack("<LLHHHHHLL", size, size, len(member), 0, 0, 0, 0, _OWNER_READ_WRITE, offset) + member
    count = len(layouts)
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)


def read_npy(data: bytes, layout: ArrayLayout, file: str, field: str) -> Array:
    """The array in the bytes of one .npy file; raises ``PayloadDefect``. The array is read-only."""
    header = layout.npy_header()
    found = data[: len(header)]
    if found != header:
        raise PayloadDefect(file, f"{field} header", _described(header), _described(found))
    if len(data) != layout.npy_bytes:
        raise PayloadDefect(file, f"{field} size", f"{layout.npy_bytes} bytes", f"{len(data)} bytes")
    return np.frombuffer(data, np.dtype(layout.descr), offset=len(header)).reshape(layout.shape)


def read_npz(data: bytes, layouts: Mapping[str, ArrayLayout], file: str) -> dict[str, Array]:
    """The arrays in the bytes of one .npz file, all of ``layouts`` and no other; raises ``PayloadDefect``."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_members(members, layouts, file)
            contents = {m.filename.removesuffix(".npy"): archive.read(m) for m in members}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        raise PayloadDefect(file, "zip archive", "a readable .npz", str(error) or type(error).__name__) from None
    return {name: read_npy(contents[name], layout, file, name) for name, layout in layouts.items()}


def _check_members(members: list[zipfile.ZipInfo], layouts: Mapping[str, ArrayLayout], file: str) -> None:
    expected = [f"{name}.npy" for name in layouts]
    found = [member.filename for member in members]
    if found != expected:
        raise PayloadDefect(file, "members", ", ".join(expected), ascii(", ".join(found))[:200])
    for member, (name, layout) in zip(members, layouts.items(), strict=True):
        if member.compress_type != zipfile.ZIP_STORED:
            raise PayloadDefect(file, f"{name} compression", "none", f"method {member.compress_type}")
        if not member.file_size == member.compress_size == layout.npy_bytes:
            raise PayloadDefect(file, f"{name} size", f"{layout.npy_bytes} bytes", f"{member.file_size} bytes")


def _described(header: bytes) -> str:
    """A .npy header as the dictionary in it, fit for one line."""
    return ascii(header[10:].decode("latin-1").rstrip()) if header.startswith(b"\x93NUMPY") else ascii(header[:16])
