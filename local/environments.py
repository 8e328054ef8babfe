"""Virtual environments made from locks, on a machine that has nothing but Python and pip.

pip installs one thing, uv, by hash; uv makes the environments, by hash. An environment's folder is named after
its lock, so a changed lock makes a new one and an interrupted one is made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from local.errors import LauncherError
from local.locks import FileLock
from local.paths import ROOT, Home

LOCKS = {
    "scheduler": ROOT / "local/environments/scheduler/requirements.txt",
    "test": ROOT / "local/environments/test/requirements.txt",
    "cpu": ROOT / "gpu_tasks/environments/cpu/requirements.txt",
}
_BOOTSTRAP_LOCK = ROOT / "local/environments/bootstrap/requirements.txt"
_COMPLETE = "complete"


def folder(home: Home, name: str) -> Path:
    """Where the environment ``name`` lives for this lock and this Python, made or not."""
    digest = hashlib.sha256(LOCKS[name].read_bytes()).hexdigest()[:12]
    return home.environments / f"{name}-py{sys.version_info.major}.{sys.version_info.minor}-{digest}"


def python(home: Home, name: str) -> Path:
    """Interpreter of the environment ``name``."""
    return folder(home, name) / "bin" / "python"


def is_complete(home: Home, name: str) -> bool:
    """Whether the environment was made to the end and its interpreter still exists."""
    return (folder(home, name) / _COMPLETE).exists() and python(home, name).exists()


def ensure(home: Home, *names: str) -> None:
    """Make the environments that are not complete; says what it does and how long it took on stderr."""
    missing = [name for name in names if not is_complete(home, name)]
    if not missing:
        return
    previous_umask = os.umask(0o022)  # PostgreSQL's unprivileged user must be able to read its binaries
    lock = FileLock(home.environments / "lock")
    try:
        home.create()
        if not lock.acquire():
            raise LauncherError(f"the environments are being made by pid {lock.holder()}; try again when it is done")
        uv = _ensure_uv(home)
        for name in missing:
            _make(uv, home, name)
    except OSError as error:
        raise LauncherError(f"{error.filename or home.folder}: cannot be written: {error.strerror}") from error
    finally:
        lock.release()
        os.umask(previous_umask)


def _ensure_uv(home: Home) -> Path:
    digest = hashlib.sha256(_BOOTSTRAP_LOCK.read_bytes()).hexdigest()[:12]
    target = home.environments / f"bootstrap-{digest}"
    if (target / _COMPLETE).exists():
        return target / "bin" / "uv"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--target", str(target), "--require-hashes", "-r", str(_BOOTSTRAP_LOCK)]
    _run(command, "pip could not install uv", dict(os.environ))
    (target / _COMPLETE).touch()
    return target / "bin" / "uv"


def _make(uv: Path, home: Home, name: str) -> None:
    target = folder(home, name)
    started = time.monotonic()
    print(f"making environment {name} ...", end="", flush=True, file=sys.stderr)
    shutil.rmtree(target, ignore_errors=True)
    environment = _uv_environment(home)
    interpreter = Path(sys.executable).resolve()
    _run(
        [str(uv), "venv", "--quiet", "--no-project", "--python", str(interpreter), str(target)], "uv venv", environment
    )
    install = [str(uv), "pip", "install", "--quiet", "--python", str(target / "bin" / "python")]
    install += ["--require-hashes", "--compile-bytecode", "-r", str(LOCKS[name])]
    _run(install, f"environment {name} could not be installed", environment)
    (target / _COMPLETE).touch()
    print(f" {time.monotonic() - started:.0f} s", file=sys.stderr)


def _uv_environment(home: Home) -> dict[str, str]:
    """uv reads no pip settings; an index and a certificate bundle that pip was told of are passed on."""
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    cache = Path(environment.get("UV_CACHE_DIR") or environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not _can_write(cache):
        environment["UV_CACHE_DIR"] = str(home.environments / "uv-cache")
    settings = _pip_settings()
    if "index-url" in settings:
        environment.setdefault("UV_DEFAULT_INDEX", settings["index-url"])
    if "cert" in settings:
        environment.setdefault("SSL_CERT_FILE", settings["cert"])
    return environment


def _can_write(folder_: Path) -> bool:
    while not folder_.exists():
        folder_ = folder_.parent
    return os.access(folder_, os.W_OK)


def _pip_settings() -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    settings = {}
    for line in listing.splitlines():
        name, separator, value = line.partition("=")
        if separator:
            settings[name.rpartition(".")[2]] = value.strip().strip("'\"")
    return settings


def _run(command: list[str], failure: str, environment: dict[str, str]) -> None:
    result = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        print(file=sys.stderr)
        sys.stderr.write(result.stderr)
        raise LauncherError(f"{failure} (exit {result.returncode}; its messages are above)")
