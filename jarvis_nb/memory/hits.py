"""What a search returns: a list of dictionaries that shows itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jarvis_nb.core.pictured import Pictured


class Hits(Pictured, list[dict[str, Any]]):
    """Hits, best first, each with content, score, source, metadata and id. It is a list in every other way.

    Example:
        >>> Hits("ship", [{"content": "Orders ship fast.", "score": 1.25, "source": "a.md", "metadata": {}, "id": "x"}])
        Hits('ship': a.md 1.25)
    """

    def __init__(self, query: str, hits: Iterable[dict[str, Any]]) -> None:
        super().__init__(hits)
        self.query = query

    def __repr__(self) -> str:
        found = ", ".join(
            f"{str(hit['source'] or 'no source')!r:.60}"[1:-1] + f" {hit['score']:.3g}" for hit in self[:5]
        )
        more = f", {len(self) - 5:,} more" if len(self) > 5 else ""  # noqa: PLR2004 - as above
        return f"Hits({self.query!r:.100}: {found or 'none'}{more})"
