"""What is committed speaks of the product only: no path of one machine, no package index of one network."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT, files

BANNED = {
    "a path of one machine": re.compile(r"(?<![\w.~-])/(?:work|root|workspace|home/\w+|Users/\w+)/"),
    "a folder of packages of one machine": re.compile(r"/opt/(?:pypi|mirror|wheels)\b"),
    "a package index": re.compile(r"\bpypi\.org|pythonhosted\.org|--(?:extra-)?index-url|\bdevpi\b|\bartifactory\b"),
    "the tool that it was written with": re.compile(r"\b(?:claude|chatgpt|copilot)\b", re.IGNORECASE),
}
#: This file holds the patterns; the licence is not ours to word.
EXEMPT = {"tests/architecture/test_text.py", "LICENSE"}


def test_no_committed_text_speaks_of_a_machine_or_a_network() -> None:
    offenders = [
        f"{path}:{number} has {what}: {line.strip()[:100]}"
        for path in files()
        if str(path) not in EXEMPT
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        for what, pattern in BANNED.items()
        if pattern.search(line)
    ]
    assert not offenders, "\n".join(offenders)


def text_of(path: object) -> str:
    """The text of a file; nothing for one that is not text."""
    data = (ROOT / str(path)).read_bytes()
    return "" if b"\0" in data or data.startswith(b"%PDF-") else data.decode("utf-8")
