"""What git says of this checkout. Refs are data: never options, never a shell's."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from gpu_tasks.records import BadInput, InfrastructureFailure

TIMEOUT_S = 60.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
OF_ANOTHER = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)
"""What a git hook has in its environment: it may be of another repository than the one that is asked about."""


def head(root: Path) -> str | None:
    """Full commit that is checked out at ``root``; null outside a repository of its own, or without any commit."""
    return _commit(root, "HEAD") if why_silent(root) is None else None


def why_silent(root: Path) -> str | None:
    """Why git knows no commit at ``root``: there is no repository, or it reads none of it; null where it knows some."""
    try:
        top = git(root, "rev-parse", "--show-toplevel")
    except FileNotFoundError:
        return "git is not installed"
    if top.returncode:
        return complaint(top)
    if Path(os.fsdecode(top.stdout).removesuffix("\n")).resolve() != root.resolve():
        return f"{root} is inside another repository"
    return None if _commit(root, "HEAD") else "nothing is committed at HEAD"


def resolve(root: Path, ref: str) -> str | None:
    """Full commit that ``ref`` names; null where it names none, or there is no repository."""
    return _commit(root, ref) if head(root) is not None else None


def modified(root: Path, path: str) -> bool:
    """Whether anything at ``path`` (from the root) is not what HEAD has, files that git does not know among it."""
    found = git(root, "status", "--porcelain", "--untracked-files=all", "--", f":(literal,top){path}")
    if found.returncode:
        raise InfrastructureFailure("git_failed", f"git status {path}: {complaint(found)}")
    return bool(found.stdout.strip())


def export(root: Path, commit: str, path: str, folder: Path) -> None:
    """Write ``path`` as it is in ``commit`` into ``folder``; raises ``BadInput`` where the commit has no such path."""
    found = git(root, "archive", "--format=tar", commit, "--", path, config=("core.autocrlf=false",))
    if found.returncode:
        message = f"{commit[:12]}: expected {path}/ in this commit, found: {complaint(found)}"
        raise BadInput("no_kernels_in_commit", message)
    try:
        with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
            archive.extractall(folder, filter="data")
    except tarfile.TarError as error:  # a link to somewhere else, say
        raise BadInput("bad_commit", f"{commit[:12]}: expected plain files in {path}/, found: {error}") from None


def _commit(root: Path, ref: str) -> str | None:
    if not ref or "\0" in ref:
        return None
    found = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    name = found.stdout.decode("ascii", "replace").strip()
    return name if found.returncode == 0 and _COMMIT.fullmatch(name) else None  # of ^REF git verifies a ^ and a name


def git(root: Path, *arguments: str, config: Sequence[str] = ()) -> subprocess.CompletedProcess[bytes]:
    """Ask git about the repository at ``root``, whatever hook this runs in; raises where it does not answer in time."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    settings = [word for setting in config for word in ("-c", setting)]
    command = ["git", "-C", str(root), *settings, *arguments]
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"git {arguments[0]}: expected an answer within {TIMEOUT_S:g} s, found none"
        raise InfrastructureFailure("git_failed", message) from None


def complaint(found: subprocess.CompletedProcess[bytes]) -> str:
    """Why git did not do it, in one line."""
    lines = found.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit status {found.returncode}"
