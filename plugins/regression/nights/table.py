"""The verdict of a run for people."""

from __future__ import annotations

from regression.results.outcome import RunVerdict


def verdict_table(verdict: RunVerdict) -> str:
    """One line a check, then what ran and the verdict."""
    rows = [("check", "verdict", "reason"), *((n, c.verdict, c.reason) for n, c in verdict.checks.items())]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {word:<{widths[1]}}  {reason}" for name, word, reason in rows]
    agreed = "no predictions" if not verdict.total else f"{verdict.agreed} of {verdict.total} predictions agree"
    lines += ["", f"{verdict.workload or 'nothing'} on {verdict.device or 'no device'}: {agreed}, run {verdict.run_id}"]
    if verdict.variant:
        lines.append(f"kernels: {verdict.variant}, {_ptx_text(verdict.ptx_sha256)}")
    lines.append(f"verdict: {verdict.verdict.replace('_', ' ')} (exit {verdict.exit_code})")
    return "\n".join(lines)


def _ptx_text(sha256: str | None) -> str:
    return f"PTX sha256 {sha256}" if sha256 else "no PTX"
