"""What a search returns: a list of dictionaries that shows itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

SHOWN = 200
"""Characters of a passage in the text form."""


class Hits(list[dict[str, Any]]):
    """Hits, best first, each with content, score, source, metadata and id. It is a list in every other way.

    Example:
        >>> Hits("ship", [{"content": "Orders ship fast.", "score": 1.25, "source": "a.md", "metadata": {}, "id": "x"}])
        1 passage for 'ship'
        1. a.md (1.25)
           Orders ship fast.
    """

    def __init__(self, query: str, hits: Iterable[dict[str, Any]]) -> None:
        super().__init__(hits)
        self.query = query

    def __repr__(self) -> str:
        count = f"{len(self) or 'no'} passage{'s' * (len(self) != 1)}"
        lines = [f"{count} for {self.query!r:.100}"]
        for number, hit in enumerate(self, 1):
            text = " ".join(hit["content"].split())
            cut = f"{text[:SHOWN]}…" if len(text) > SHOWN else text
            lines += [f"{number}. {describe_place(hit)} ({hit['score']:.3g})", f"   {cut}"]
        return "\n".join(lines)


def describe_place(hit: dict[str, Any]) -> str:
    """Return source, heading and place of a hit in one line.

    Example:
        >>> describe_place({"source": "a.md", "metadata": {"heading": "Guide > Install", "lines": [3, 9]}})
        'a.md, Guide > Install, lines 3-9'
    """
    metadata = hit["metadata"]
    parts = [hit["source"] or "no source"]
    if metadata.get("heading"):
        parts.append(str(metadata["heading"]))
    for place in ("lines", "cells", "pages"):
        match metadata.get(place):
            case [first, last] if first == last:
                parts.append(f"{place[:-1]} {first}")
            case [first, last]:
                parts.append(f"{place} {first}-{last}")
            case _:
                pass
    return ", ".join(parts)
