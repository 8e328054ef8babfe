"""Which draws a named set of frozen draws has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from gpu_tasks.records import MAX_DRAWS, PAYLOAD_NAME, BadInput
from regression.nights.schema import SHIPPED_SET


def payload_draws(name: str, folders: list[Path], pinned: Mapping[str, Path] | None = None) -> list[int]:
    """Numbers of the draws of a named set, from its manifest; raises ``BadInput`` when there is no such set.

    ``original`` is the set that ships, in the last folder, whatever lies in the others. ``pinned`` has the manifests of
    sets that are built when they are first needed, by name. Only the numbers are read here: whether the files are the
    pinned ones is for ``verify`` to say.
    """
    if not re.fullmatch(PAYLOAD_NAME, name):
        raise BadInput("bad_param", f"payload: expected a name like original, found {name!r}")
    searched = folders[-1:] if name == SHIPPED_SET else folders
    path = next(
        (p for folder in searched if (p := folder / name / "manifest.json").is_file()), (pinned or {}).get(name)
    )
    if path is None:
        raise BadInput("payload_not_found", f"payload {name}: expected a manifest.json in a set's folder, found none")
    try:
        draws = [draw["draw"] for draw in json.loads(path.read_text(encoding="utf-8"))["draws"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput("bad_manifest", f"{path}: draws: expected a list of draws, found {error!r}") from None
    if not draws or not all(type(draw) is int and 0 <= draw < MAX_DRAWS for draw in draws):
        raise BadInput("bad_manifest", f"{path}: draws: expected numbers from 0 to {MAX_DRAWS - 1}, found {draws[:20]}")
    return sorted(draws)
