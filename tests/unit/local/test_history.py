"""The history of ``kernels/`` as git has it, asked of a repository of this test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from local import history
from local.errors import LauncherError, Usage


class Repository:
    """A small repository whose commits change ``kernels/`` or something else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        person = ("-c", "user.name=Änn", "-c", "user.email=ann@example.org")
        command = ["git", "-C", str(self.folder), *person, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    def commit(self, path: str, content: str, subject: str = "a change") -> str:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setattr(history, "ROOT", tmp_path)
    return Repository(tmp_path)


def test_refs_are_names_and_never_options(repository: Repository) -> None:
    first = repository.commit("kernels/a.py", "1")
    repository.git("tag", "v1")
    for name in ("HEAD", "main", "v1", first, first[:10]):
        assert history.commit(name) == first
    for name in (
        "--help",
        "-n1",
        "--all",
        "no-such",
        "HEAD~9",
        "v1:kernels/a.py",
        "",
        "a b",
        "$(touch x)",
        "HEAD^{tree}",
    ):
        with pytest.raises(Usage, match="expected a git ref of this checkout, found none of that name"):
            history.commit(name)
    assert sorted(path.name for path in repository.folder.iterdir()) == [".git", "kernels"]


def test_outside_of_a_repository_there_is_no_ref(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ROOT", tmp_path)
    with pytest.raises(Usage, match="expected a git repository at"):
        history.commit("HEAD")


def test_a_hook_of_another_repository_is_not_asked_instead(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository.commit("kernels/a.py", "1")
    other = Repository(tmp_path_factory.mktemp("other"))
    other.commit("kernels/a.py", "2", "another")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    assert history.commit("HEAD") == first


def test_only_commits_that_change_kernels_are_between_and_the_middle_comes_first(repository: Repository) -> None:
    good = repository.commit("kernels/a.py", "0")
    changes = []
    for number in range(1, 8):
        changes.append(repository.commit("kernels/a.py", str(number)))
        repository.commit("README.md", str(number))
    assert set(history.between([good], "HEAD")) == set(changes)
    assert history.between([good], "HEAD")[0] in changes[2:4]
    assert history.between([good, changes[3]], changes[5]) in ([changes[4], changes[5]], [changes[5], changes[4]])
    assert history.newest("HEAD", good) == changes[-1]
    assert history.newest("HEAD", changes[-1]) is None
    assert history.is_ancestor(good, "HEAD")
    assert not history.is_ancestor("HEAD", good)


def test_a_tag_beside_a_commit_does_not_hide_it(repository: Repository) -> None:
    good = repository.commit("kernels/a.py", "0")
    bad = repository.commit("kernels/a.py", "1")
    repository.git("tag", "dist=9)")
    assert history.between([good], bad) == [bad]


def test_what_does_not_show_is_left_out_of_names_and_subjects(repository: Repository) -> None:
    found = repository.commit("kernels/a.py", "0", "tile \x1b[31m64\x07: fäster")
    (told,) = history.describe([found])
    assert (told.commit, told.author, told.subject) == (found, "Änn", "tile [31m64: fäster")
    assert told.date.startswith("20")


def test_what_git_refuses_is_said_in_one_line(repository: Repository) -> None:
    repository.commit("kernels/a.py", "0")
    with pytest.raises(LauncherError, match=r"^git rev-list: ") as refused:
        history.between(["0" * 40], "HEAD")
    assert "\n" not in str(refused.value)
