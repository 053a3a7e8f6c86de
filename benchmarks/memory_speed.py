"""Memory's speed, against the same SQLite FTS5 statements without anything around them, and against bm25s."""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.memory_quality import bm25s_search
from jarvis_nb.memory.base import Chunk
from jarvis_nb.memory.hybrid import HybridMemory
from jarvis_nb.memory.sqlite import SQLiteMemory, match_expression
from jarvis_nb.memory.terms import query_terms
from jarvis_nb.memory.vectors import default_embed

SEARCH_GOAL, INSERT_GOAL = 1.5, 2.0
"""Times raw FTS5."""
TRIES = 3
"""Of a query; the best counts, so that load from elsewhere does not."""
BM25S_MOST = 100_000
"""Passages; it keeps all of them as Python lists of numbers while it builds, some gigabytes for a million."""


@dataclass(slots=True)
class Timing:
    """One method at one size."""

    method: str
    size: int
    insert: float
    """Seconds."""
    p50: float
    """Milliseconds a query."""
    p99: float


def run(sizes: list[int], words: int) -> bool:
    """Print insert and search times at several sizes and how they grow; return whether the goals were met."""
    print(f"\nSpeed: passages of {words} words, queries of 4\n")
    print(
        f"{'passages':>9} {'method':9} {'insert':>9} {'x raw':>6} {'p50':>9} {'p99':>9} {'x raw':>6} {'growth':>7}"
    )
    before: dict[str, Timing] = {}
    met = True
    for size in sizes:
        texts, queries = made_up(size, words)
        raw = None
        for timing in timings(texts, queries):
            raw = raw or timing
            insert, search = timing.insert / raw.insert, timing.p50 / raw.p50
            last = before.get(timing.method)
            growth = f"{timing.p50 / last.p50:6.1f}x" if last else ""
            print(
                f"{size:9,} {timing.method:9} {timing.insert:7.2f} s {insert:6.2f} {timing.p50:6.2f} ms "
                f"{timing.p99:6.2f} ms {search:6.2f} {growth:>7}",
                flush=True,
            )
            before[timing.method] = timing
            if timing.method == "SQLite":
                met = met and insert <= INSERT_GOAL and search <= SEARCH_GOAL
    print(f"growth: of the median, from the size before. Goals of SQLite, insert ≤ {INSERT_GOAL:g} x raw and")
    print(f"search ≤ {SEARCH_GOAL:g} x raw, at every size: {'met' if met else 'MISSED'}")
    return met


def timings(texts: list[str], queries: list[str]) -> Iterable[Timing]:
    """Measure every method on the same texts and queries, raw FTS5 first."""
    chunks = [Chunk(text, "made/up.md") for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        search = raw_fts5(Path(folder) / "raw.db", texts)
        yield timed("raw FTS5", begin, search, len(texts), queries)
        for name, memory_class in (("SQLite", SQLiteMemory), ("hybrid", HybridMemory)):
            if memory_class is HybridMemory and default_embed() is None:
                continue
            with memory_class(Path(folder) / f"{name}.db") as memory:
                begin = time.perf_counter()
                memory.store_many(chunks)
                yield timed(name, begin, memory.retrieve, len(texts), queries)
    if len(texts) <= BM25S_MOST:
        begin = time.perf_counter()
        found = bm25s_search(texts)
        if found is not None:
            yield timed("bm25s", begin, lambda query: found(query, 5), len(texts), queries)


def timed(
    method: str, begin: float, search: Callable[[str], object], size: int, queries: list[str]
) -> Timing:
    """Time each query, when the inserting that began at ``begin`` has just ended."""
    insert = time.perf_counter() - begin
    search(queries[0])  # what is read on first use is read
    times: list[float] = []
    for query in queries:
        tries: list[float] = []
        for _ in range(TRIES):
            begin = time.perf_counter()
            search(query)
            tries.append((time.perf_counter() - begin) * 1000)
        times.append(min(tries))
    return Timing(method, size, insert, median(times), sorted(times)[len(times) * 99 // 100 - 1])


def made_up(size: int, words: int) -> tuple[list[str], list[str]]:
    """Return texts and 100 queries with word frequencies as in natural language (Zipf)."""
    random_ = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(random_.choices(letters, k=random_.randint(3, 9))) for _ in range(30_000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    pool = random_.choices(vocabulary, weights, k=min(size * words, 3_000_000) + words)
    starts = [random_.randrange(len(pool) - words) for _ in range(size)]
    texts = [f"{' '.join(pool[start : start + words])} n{number}" for number, start in enumerate(starts)]
    return texts, [" ".join(random_.choices(vocabulary[50:], weights[50:], k=4)) for _ in range(100)]


def raw_fts5(path: Path, texts: list[str]) -> Callable[[str], object]:
    """Insert by plain FTS5 statements; return a search by them."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -32000"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5 (content, source UNINDEXED, metadata UNINDEXED, tokenize='porter unicode61')"
    )
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, 'made/up.md', '{}')", ((text,) for text in texts))
    connection.execute("COMMIT")
    select = "SELECT content, source, metadata, bm25(t) FROM t WHERE t MATCH ? ORDER BY rank LIMIT 5"
    return lambda query: connection.execute(select, (match_expression(query_terms(query)),)).fetchall()
