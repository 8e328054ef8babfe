"""``python -m kernels build [--check]`` regenerates the pinned PTX; ``python -m kernels explain`` describes it."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run one command; exit status 0, 1 if ``build --check`` finds a difference, 2 if something is missing."""
    parser = argparse.ArgumentParser(prog="python -m kernels", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="emit PTX, manifest.json and SHA256SUMS from the pyptx sources")
    build.add_argument("--check", action="store_true", help="write nothing; fail if source and committed text differ")
    build.add_argument("--folder", type=Path, help="another folder than kernels/ptx (a copy to try a change on)")
    commands.add_parser("explain", help="instruction mix, registers, shared memory, modelled critical path")
    chosen = parser.parse_args(arguments)
    if chosen.command == "explain":
        from kernels.explain import explain

        print(explain())
        return 0
    if importlib.util.find_spec("pyptx") is None:
        print("kernels build: expected the package pyptx 0.1.1, found none", file=sys.stderr)
        return 2
    return _build(chosen.folder, check=chosen.check)


def _build(folder: Path | None, *, check: bool) -> int:
    from kernels.build import FOLDER, build, differing

    target = folder or FOLDER
    changed = differing(target) if check else build(target)
    for name in changed:
        print(f"{target / name}: {'differs from its source' if check else 'written'}")
    if not changed:
        print(f"{target}: up to date")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
