"""An installer that needs no network: makes real virtual environments and writes metadata instead of packages.

Their interpreters find numpy where this one does, and say on stderr in which environment they are.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

from gpu_tasks.environments import build

SCRIPT = """\
#!{python}
import pathlib, re, sys, venv

words = sys.argv[1:]
with (pathlib.Path(__file__).parent / "log").open("a") as log:
    print(*words, file=log)
if words[0] == "venv":
    venv.create(words[-1], with_pip=False, symlinks=True)
else:
    target = pathlib.Path(words[words.index("--python") + 1]).parents[1]
    text = pathlib.Path(words[words.index("-r") + 1]).read_text()
    if "cannot-be-had" in text:
        sys.exit("no such package: cannot-be-had")
    (site,) = target.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text({borrowed!r})
    for name, version in re.findall(r"^([A-Za-z0-9-]+)==([^ \\n]+)", text, re.MULTILINE):
        (site / f"{{name}}-{{version}}.dist-info").mkdir(exist_ok=True)
"""


def install(base: Path) -> Path:
    """Put it where the real one would have been bootstrapped; returns the file of its calls."""
    lock = build.FOLDER / "bootstrap" / "requirements.txt"
    folder = base / f"bootstrap-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin" / "uv"
    borrowed = f"{Path(np.__file__).parents[1]}\nimport sys; print('in', sys.prefix, file=sys.stderr)\n"
    script.write_text(SCRIPT.format(python=sys.executable, borrowed=borrowed), encoding="utf-8")
    script.chmod(0o755)
    (folder / "complete").touch()
    return folder / "bin" / "log"
