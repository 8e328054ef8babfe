"""Words of others on one line: of labels, notes, devices, errors and answers, on their way to people and the database.

They must not end a mail header, colour a terminal, leave Slack's quoting, or hold what PostgreSQL cannot.
"""

from __future__ import annotations


def one_line(words: str) -> str:
    """The words with single spaces, everything else that does not show (controls, half characters) left out."""
    return "".join(letter for letter in " ".join(words.split()) if letter.isprintable())


def lines(words: str) -> str:
    """The same for text of several lines, whose spaces stay: it was made here."""
    return "\n".join("".join(letter for letter in line if letter.isprintable()) for line in words.split("\n"))


def cut(words: str, longest: int) -> str:
    """The words, or their beginning."""
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"
