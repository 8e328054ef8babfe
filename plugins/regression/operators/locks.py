"""One program at a time on one GPU, whoever starts it: a lock file a device, released by the kernel on death."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_S = 0.2
log = logging.getLogger(__name__)


@contextmanager
def device_lock(folder: Path, device_uuid: str) -> Iterator[int]:
    """Hold the lock of a device; gives the descriptor, which a child may keep open to hold it as long as it lives.

    Waits as long as it takes: whoever calls has a time-out of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / f"{_file_name(device_uuid)}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _wait_for(descriptor, device_uuid)
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, device_uuid: str) -> None:
    said = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not said:
                log.info("device %s is in use by another program; waiting", device_uuid)
                said = True
            time.sleep(POLL_S)
        else:
            return


def _file_name(device_uuid: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]{1,80}", device_uuid):
        return device_uuid
    return hashlib.sha256(device_uuid.encode()).hexdigest()
