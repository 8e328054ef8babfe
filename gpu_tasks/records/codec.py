"""Reading and writing records: strict on the way in, atomic on the way out.

A record is decoded against the type hints of its dataclass: a missing or unknown key, a value of another
type, NaN, infinity, a text that no database stores is refused with file, field, expected and found; nothing is coerced.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import os
import tempfile
import types
import typing
import zlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gpu_tasks.records.outcomes import BadInput, Outcome

T = TypeVar("T")

MAX_RECORD_BYTES = 16 * 1024 * 1024
COMPRESSED = ".gz"
"""End of the name of a file that holds a record's text compressed: a power trace takes a quarter of its room so."""


def utc_now() -> str:
    """Current time as the records write it: aware UTC, ISO 8601, microseconds, trailing ``Z``."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_utc(text: str) -> datetime:
    """Aware UTC time from a record's text; raises ``BadInput`` on naive or malformed times."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput("bad_time", f"expected an ISO 8601 time, found {text!r}") from None
    if moment.tzinfo is None:
        raise BadInput("naive_time", f"expected a time with a UTC offset, found {text!r}")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadInput("bad_time", f"expected a time that UTC can express, found {text!r}") from None


def to_json(record: Any) -> str:
    """JSON text of a record dataclass, ending in a newline; refuses NaN and infinity."""
    return json.dumps(dataclasses.asdict(record), indent=2, allow_nan=False) + "\n"


def record_files(folder: Path) -> list[Path]:
    """Record files in a folder by name, compressed ones among them."""
    return sorted([*folder.glob("*.json"), *folder.glob(f"*.json{COMPRESSED}")], key=record_name)


def record_name(path: Path) -> str:
    """Name of a record's file without what says how it is written."""
    return path.name.removesuffix(COMPRESSED).removesuffix(".json")


def write_record(record: Any, path: Path) -> None:
    """Write a record so that a reader sees the old file or the whole new one, even after a crash.

    Compressed where the name ends in ``.gz``; the same record is then the same bytes again.
    """
    content = to_json(record).encode()
    write_bytes_atomically(gzip.compress(content, mtime=0) if path.suffix == COMPRESSED else content, path)


def write_text_atomically(text: str, path: Path) -> None:
    """``write_bytes_atomically`` of text."""
    write_bytes_atomically(text.encode(), path)


def write_bytes_atomically(content: bytes, path: Path) -> None:
    """Write ``content`` to a temporary file in the folder of ``path``, fsync, and rename it into place."""
    if path.exists() and not path.is_file():  # renaming over a device or a pipe would replace it
        raise BadInput("not_a_file", f"{path}: expected a regular file or none, found something else")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_record(path: Path, cls: type[T]) -> T:
    """Read and check one record file; raises ``BadInput`` naming file and field."""
    return record_from_bytes(read_record_bytes(path), cls, str(path))


def read_record_bytes(path: Path) -> bytes:
    """The bytes of a record file, of a compressed one those of the record; the name says which it is.

    Raises ``BadInput`` when there is none, or one too large to be a record.
    """
    try:
        if path.exists() and not path.is_file():
            raise BadInput("record_unreadable", f"{path}: expected a regular file, found something else")
        size = path.stat().st_size
        if size > MAX_RECORD_BYTES:
            raise BadInput("record_too_large", f"{path}: size: expected at most {MAX_RECORD_BYTES} bytes, found {size}")
        return _decompressed(path) if path.suffix == COMPRESSED else path.read_bytes()
    except gzip.BadGzipFile as error:
        raise BadInput("record_unreadable", f"{path}: expected a record compressed by gzip, found: {error}") from None
    except OSError as error:
        raise BadInput("record_unreadable", f"{path}: expected a readable record, found: {error.strerror}") from None


def _decompressed(path: Path) -> bytes:
    """No more than a record may have: a small file can hold any number of zeros."""
    try:
        with gzip.open(path) as stream:
            content = stream.read(MAX_RECORD_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise BadInput("record_unreadable", f"{path}: expected a record compressed by gzip, found: {error}") from None
    if len(content) > MAX_RECORD_BYTES:
        expected = f"at most {MAX_RECORD_BYTES} bytes within"
        raise BadInput("record_too_large", f"{path}: size: expected {expected}, found more")
    return content


def record_from_bytes(content: bytes, cls: type[T], source: str) -> T:
    """Decode the bytes of a record file; ``source`` is the name used in error messages."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("record_not_utf8", f"{source}: expected UTF-8 text, found other bytes") from None
    return from_json(text, cls, source)


def from_json(text: str, cls: type[T], source: str) -> T:
    """Decode JSON text into ``cls``; ``source`` is the name used in error messages."""
    try:
        value = json.loads(text, parse_constant=_NotFinite, parse_float=_finite_float, object_pairs_hook=_distinct_keys)
    except (ValueError, RecursionError) as error:
        raise BadInput("record_not_json", f"{source}: expected JSON, found: {error}") from None
    try:
        return typing.cast(T, _decode(value, cls, source, "$"))
    except RecursionError:
        raise BadInput("record_too_deep", f"{source}: expected fewer levels within each other") from None


class _NotFinite:
    """A number that is none, or too large, until the field that holds it is known."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _finite_float(text: str) -> float | _NotFinite:
    value = float(text)
    return value if math.isfinite(value) else _NotFinite(text)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} appears twice")
    return value


def _fail(source: str, where: str, expected: str, found: Any) -> typing.NoReturn:
    shown = repr(found)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    where = where.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")  # a key may be anything
    raise BadInput("bad_record", f"{source}: {where}: expected {expected}, found {shown}")


def _check_free(value: Any, source: str, where: str) -> None:
    """What has no form of its own has to be storable all the same."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, source, where)
            _check_free(item, source, f"{where}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_free(item, source, f"{where}[{index}]")
    elif isinstance(value, str):
        _check_text(value, source, where)
    elif isinstance(value, _NotFinite):
        _fail(source, where, "a finite number", value)


def _check_text(text: str, source: str, where: str) -> None:
    """PostgreSQL stores no NUL, and half of a surrogate pair has no form in UTF-8."""
    if "\0" in text:
        _fail(source, where, "text without NUL characters", text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            _fail(source, where, "text that UTF-8 can express", text)


def _decode(value: Any, hint: Any, source: str, where: str) -> Any:
    if hint is Any:
        _check_free(value, source, where)
        return value
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(value, typing.cast(type, hint), source, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType or origin is typing.Union:
        if value is None and type(None) in arguments:
            return None
        (inner,) = [a for a in arguments if a is not type(None)]
        return _decode(value, inner, source, where)
    if origin is list:
        if not isinstance(value, list):
            _fail(source, where, "a list", value)
        return [_decode(item, arguments[0], source, f"{where}[{i}]") for i, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            _fail(source, where, "an object", value)
        for key in value:
            _check_text(key, source, where)
        return {key: _decode(item, arguments[1], source, f"{where}.{key}") for key, item in value.items()}
    if hint is Outcome:
        if value not in [member.value for member in Outcome]:
            _fail(source, where, "one of " + ", ".join(m.value for m in Outcome), value)
        return Outcome(value)
    return _decode_scalar(value, hint, source, where)


def _decode_scalar(value: Any, hint: Any, source: str, where: str) -> Any:
    if hint is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            _fail(source, where, "a finite number", value)
    if isinstance(value, _NotFinite):
        _fail(source, where, "a finite number", value)
    if type(value) is not hint:
        _fail(source, where, {str: "text", int: "an integer", float: "a number", bool: "true or false"}[hint], value)
    if hint is str:
        _check_text(value, source, where)
    return value


def _decode_dataclass(value: Any, cls: type, source: str, where: str) -> Any:
    if not isinstance(value, dict):
        _fail(source, where, "an object", value)
    hints = _type_hints(cls)
    fields = dataclasses.fields(cls)
    unknown = sorted(value.keys() - hints.keys())
    if unknown:
        _fail(source, f"{where}.{unknown[0]}", "no such field", value[unknown[0]])
    arguments = {}
    for item in fields:
        if item.name in value:
            arguments[item.name] = _decode(value[item.name], hints[item.name], source, f"{where}.{item.name}")
        elif item.default_factory is dataclasses.MISSING and item.default is dataclasses.MISSING:
            raise BadInput("bad_record", f"{source}: {where}.{item.name}: expected a value, found nothing")
    return cls(**arguments)


@cache
def _type_hints(cls: type) -> dict[str, Any]:
    """Evaluated once a class: a run record has thousands of parts."""
    return typing.get_type_hints(cls)
