"""The retrieval tool: a search in the memory, with the sources of what it found."""

from __future__ import annotations

from typing import Any

from jarvis_nb.core.errors import InvalidRequest, ToolError
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import ToolResult
from jarvis_nb.memory.base import MemoryBackend
from jarvis_nb.tools.base import ToolSpec
from jarvis_nb.tools.builtin import BuiltinTool, Examples, text_param, whole_param

MAX_RESULTS = 50
"""A model that asks for more gets this many."""

EXAMPLES: Examples = [
    ("What do my notes say about the deployment?", {"query": "deployment"}),
    ("Search the documents for the refund policy.", {"query": "refund policy"}),
    ("Find what was written about machine learning.", {"query": "machine learning"}),
    ("Look up how the parser works in the docs.", {"query": "how the parser works"}),
    ("Which of my files mention Berlin?", {"query": "Berlin"}),
    ("Find 3 passages about vacation days.", {"query": "vacation days", "top_k": 3}),
    ("What did we decide about the database?", {"query": "decision about the database"}),
    ("Search memory for the meeting with Anna.", {"query": "meeting with Anna"}),
    ("Give me the 10 best hits for error handling.", {"query": "error handling", "top_k": 10}),
    ("According to the manual, how do I reset the device?", {"query": "reset the device"}),
]


@ToolRegistry.register("retrieval")
class RetrievalTool(BuiltinTool):
    """Searches a memory and returns the passages, each with its source.

    Args:
        backend: The memory to search; without one every call is a failed result that says so.
        top_k: The default number of results.

    Raises:
        InvalidRequest: ``top_k`` is no whole number of at least 1.

    Example:
        >>> from jarvis_nb.memory.sqlite import SQLiteMemory
        >>> backend = SQLiteMemory()
        >>> id = backend.store("Machine learning finds patterns.", source="ml.md")
        >>> RetrievalTool(backend=backend).execute(query="machine learning").content
        '[Source: ml.md] Machine learning finds patterns.'
    """

    tool_id = "retrieval"

    def __init__(self, backend: MemoryBackend | None = None, top_k: int = 5) -> None:
        if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all typed
            raise InvalidRequest(f"top_k is {top_k!r:.100}", value=top_k, hint="a whole number of at least 1")
        self.backend = backend
        self.top_k = top_k
        super().__init__()

    def make_spec(self) -> ToolSpec:
        """Return the tool specification."""
        return ToolSpec(
            name="retrieval",
            description="Search the user's documents and notes in memory; returns passages with their sources.",
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Search query"},
                    "top_k": {
                        "type": "integer",
                        "minimum": 1,
                        "description": f"Number of results (default: {self.top_k})",
                    },
                },
                "required": ["query"],
            },
            category="memory",
            metadata={"examples": list(EXAMPLES)},
        )

    def run(self, params: dict[str, Any]) -> ToolResult:
        """Search the memory."""
        from jarvis_nb.memory.context import quote

        query = text_param(params, "query")
        top_k = whole_param(params, "top_k", self.top_k) or self.top_k
        if not query.strip():
            raise ToolError("the query is empty", code="empty_query", hint="say what to search for")
        if self.backend is None:
            raise ToolError("there is no memory to search", code="no_memory", hint="answer without it")
        hits = self.backend.retrieve(query, top_k=min(top_k, MAX_RESULTS))
        found = [hit.to_dict() for hit in hits]
        text = "\n\n".join(quote(hit) for hit in hits) or f"Nothing was found for {query!r:.200}."
        return ToolResult(
            self.name, text, metadata={"hits": [{k: h[k] for k in ("id", "source", "score")} for h in found]}
        )
