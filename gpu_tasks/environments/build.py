"""Virtual environments made from locks, on a machine that has nothing but Python and pip.

pip installs uv by hash, and uv makes the environments by hash; what has not one hash for all machines comes last. An
environment's folder is named after its lock, so a changed lock makes a new one; one that was interrupted, or that has
lost its interpreter or a package, is made again. Standard library only: it runs before there is any environment.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.environments import pip_steps
from gpu_tasks.records import BadInput, InfrastructureFailure, write_text_atomically

FOLDER = Path(__file__).resolve().parent
NAMES = ("a100", "cpu", "learner")
_BOOTSTRAP_LOCK = FOLDER / "bootstrap" / "requirements.txt"
_COMPLETE = "complete"
_OTHERS = ("VIRTUAL_ENV", "PYTHONPATH")
"""Variables that speak of another environment than the one that is made."""


@dataclass(frozen=True)
class Environment:
    """One environment: ``lock`` has a hash for every file; what must stand apart comes after it.

    ``apart`` lists what is installed without what it depends on, ``by_pip`` what pip installs last, with it.
    """

    name: str
    lock: Path
    apart: Path | None = None
    by_pip: Path | None = None

    def folder(self, base: Path) -> Path:
        """Where it lives under ``base`` for this lock and this Python, made or not."""
        files = [file for file in (self.lock, self.apart, self.by_pip) if file is not None]
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
        return base / f"{self.name}-py{sys.version_info.major}.{sys.version_info.minor}-{digest}"

    def python(self, base: Path) -> Path:
        """Its interpreter."""
        return self.folder(base) / "bin" / "python"

    def is_complete(self, base: Path) -> bool:
        """Whether it was made to the end and still has its interpreter and every package that it was made with."""
        target = self.folder(base)
        try:
            made_with = (target / _COMPLETE).read_text(encoding="utf-8").split()
        except OSError:
            return False
        return self.python(base).exists() and set(made_with) <= set(_installed(target))


def named(name: str) -> Environment:
    """An environment of the programs by name; raises ``BadInput``: ``unknown_environment``."""
    if name not in NAMES:
        raise BadInput("unknown_environment", f"--environment: expected one of {', '.join(NAMES)}, found {name!r}")
    folder = FOLDER / name
    apart = [path for path in (folder / "torch.txt", folder / "mnist.txt") if path.exists()]
    by_pip = folder / "pip.txt"
    return Environment(
        name, folder / "requirements.txt", apart[0] if apart else None, by_pip if by_pip.exists() else None
    )


def ensure(base: Path, *environments: Environment) -> None:
    """Make those that are not complete, under a lock; says what it does and how long it took on stderr.

    Raises ``InfrastructureFailure``: ``environments_busy`` while another process makes some,
    ``environments_not_writable``, ``environment_not_made`` (the installer's messages are then on stderr).
    """
    if all(environment.is_complete(base) for environment in environments):
        return
    previous_umask = os.umask(0o022)  # other users (PostgreSQL's, say) must be able to read and execute them
    try:
        with _exclusive(base / "lock"):
            uv = _ensure_uv(base)
            for environment in environments:
                if not environment.is_complete(base):
                    _make(uv, base, environment)
    except OSError as error:
        message = f"{error.filename or base}: cannot be written: {error.strerror}"
        raise InfrastructureFailure("environments_not_writable", message) from error
    finally:
        os.umask(previous_umask)


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold ``path`` while making environments; the kernel lets go of it however this process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            message = f"the environments are being made by pid {stream.read() or 'unknown'}; try again when it is done"
            raise InfrastructureFailure("environments_busy", message) from None
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


def _ensure_uv(base: Path) -> Path:
    digest = hashlib.sha256(_BOOTSTRAP_LOCK.read_bytes()).hexdigest()[:12]
    target = base / f"bootstrap-{digest}"
    if not (target / _COMPLETE).exists():
        shutil.rmtree(target, ignore_errors=True)
        command = [_python_with_pip(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--target", str(target), "--require-hashes", "-r", str(_BOOTSTRAP_LOCK)]
        _run(command, "pip could not install uv", dict(os.environ))
        (target / _COMPLETE).touch()
    return target / "bin" / "uv"


def _make(uv: Path, base: Path, environment: Environment) -> None:
    target = environment.folder(base)
    started, steps = time.monotonic(), _Steps()
    print(f"making environment {environment.name} ...", end="", flush=True, file=sys.stderr)
    shutil.rmtree(target, ignore_errors=True)
    settings = _uv_environment(base)
    interpreter = Path(sys.executable).resolve()
    _run([str(uv), "venv", "--quiet", "--no-project", "--python", str(interpreter), str(target)], "uv venv", settings)
    install = [str(uv), "pip", "install", "--quiet", "--python", str(environment.python(base)), "--compile-bytecode"]
    failure = f"environment {environment.name} could not be installed"
    _run([*install, "--require-hashes", "-r", str(environment.lock)], failure, settings)
    if environment.apart is not None:
        _run([*install, "--no-deps", "-r", str(environment.apart)], failure, settings)
    if environment.by_pip is not None:
        pip = [_python_with_pip(), "-m", "pip", "--python", str(environment.python(base)), "install"]
        pip += ["--disable-pip-version-check", "--no-input", "-r", str(environment.by_pip)]
        variables = {name: value for name, value in os.environ.items() if name not in _OTHERS}
        _check(*pip_steps.run(pip, variables, steps.say), failure)
    write_text_atomically("".join(f"{name}\n" for name in _installed(target)), target / _COMPLETE)
    took = f"{time.monotonic() - started:.0f} s"
    print(f"made environment {environment.name} in {took}" if steps.said else f" {took}", file=sys.stderr)


class _Steps:
    """Lines below the one that says what is being made; ``said``: whether there are any."""

    def __init__(self) -> None:
        self.said = False

    def say(self, step: str) -> None:
        print("" if self.said else "\n", f"  {step}", sep="", flush=True, file=sys.stderr)
        self.said = True


def _installed(target: Path) -> list[str]:
    """Names of the installed packages' metadata folders: package and version."""
    return sorted(path.name for path in target.glob("lib/python*/site-packages/*.dist-info"))


def _uv_environment(base: Path) -> dict[str, str]:
    """uv reads no pip settings; an index and a certificate bundle that pip was told of are passed on."""
    environment = {name: value for name, value in os.environ.items() if name not in _OTHERS}
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    cache = Path(environment.get("UV_CACHE_DIR") or environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not _can_write(cache):
        environment["UV_CACHE_DIR"] = str(base / "uv-cache")
    settings = _pip_settings()
    if "index-url" in settings:
        environment.setdefault("UV_DEFAULT_INDEX", settings["index-url"])
    if "cert" in settings:
        environment.setdefault("SSL_CERT_FILE", settings["cert"])
    return environment


def _can_write(folder: Path) -> bool:
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _pip_settings() -> dict[str, str]:
    command = [_python_with_pip(), "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    settings = {}
    for line in listing.splitlines():
        name, separator, value = line.partition("=")
        if separator:
            settings[name.rpartition(".")[2]] = value.strip().strip("'\"")
    return settings


def _python_with_pip() -> str:
    """This interpreter, or the one it was made from: an environment that uv made has no pip."""
    own = Path(sys.executable)
    return str(own if importlib.util.find_spec("pip") else own.resolve())


def _run(command: list[str], failure: str, environment: dict[str, str]) -> None:
    result = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    _check(result.returncode, result.stderr, failure)


def _check(status: int, messages: str, failure: str) -> None:
    if status != 0:
        print(file=sys.stderr)
        sys.stderr.write(messages)
        message = f"{failure} (exit {status}; its messages are above)"
        raise InfrastructureFailure("environment_not_made", message)
