#!/usr/bin/env python3
"""An interpreter for GPU programs that does one of them wrong, as ``NIGHTLY_TEST_FAULT`` says; the rest as ever.

``disagree:3`` makes index 17 of draw 3 a mismatch; ``die:3`` kills the program of draw 3; ``fail:PROGRAM`` ends PROGRAM
with status 5 and no record (several: with commas); ``disturb:1`` makes round 1 an invalid one; ``lose:1`` kills the
program of round 1.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

DISAGREEMENT = {"code": "predictions_disagree", "message": "index 17: expected 4, found 9"}


def main() -> int:
    fault, _, place = os.environ.get("NIGHTLY_TEST_FAULT", "").partition(":")
    program, draw = sys.argv[3], _option("--draw")
    if fault == "fail" and program in place.split(","):
        return 5
    if (fault == "die" and draw == place) or (fault == "lose" and _option("--round") == place):
        os.kill(os.getpid(), signal.SIGKILL)
    status = subprocess.run([sys.executable, *sys.argv[1:]], check=False).returncode
    if fault == "disagree" and draw == place:
        return _disagree(Path(_option("--out") or ""))
    if fault == "disturb" and _option("--round") == place:
        return _disturb(Path(_option("--out") or ""))
    return status


def _option(name: str) -> str | None:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def _disagree(path: Path) -> int:
    record = json.loads(path.read_text())
    record |= {
        "outcome": "regression",
        "reason": DISAGREEMENT,
        "agreed": record["agreed"] - 1,
        "mismatches": [{"index": 17, "expected": 4, "found": 9}],
        "predictions_int32_sha256": "0" * 64,
    }
    path.write_text(json.dumps(record))
    return 1


def _disturb(path: Path) -> int:
    reason = {"code": "throttled", "message": "the clock fell"}
    record = json.loads(path.read_text()) | {"outcome": "invalid_measurement", "valid": False, "reason": reason}
    path.write_text(json.dumps(record))
    return 3


if __name__ == "__main__":
    sys.exit(main())
