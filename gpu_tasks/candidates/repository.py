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
            for member in archive:
                _write(archive, member, folder)
    except (tarfile.TarError, ValueError) as error:  # a link to somewhere else, say
        raise BadInput("bad_commit", f"{commit[:12]}: expected plain files in {path}/, found: {error}") from None


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file, folder or link, and nothing outside ``folder``; raises ``ValueError`` for anything else.

    By hand: the filters of ``extractall`` came with 3.11.4, and distributions have earlier ones.
    """
    inside = os.path.realpath(folder)
    path = Path(inside, member.name)
    leads_to = Path(os.path.realpath(path.parent / (member.linkname if member.issym() else path.name)))
    if not leads_to.is_relative_to(inside) or ".." in path.parts:
        raise ValueError(f"{member.name} -> {member.linkname or leads_to} leads out of the commit")
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        path.symlink_to(member.linkname)
        return
    file = archive.extractfile(member) if member.isreg() else None
    if file is None:
        raise ValueError(f"{member.name} is neither file, folder nor link")
    path.write_bytes(file.read())
    path.chmod(0o755 if member.mode & 0o100 else 0o644)


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
