"""Memory: how well and how fast it finds. ``python -m benchmarks.memory [quality|speed] [--sizes 1000,10000]``.

Quality: the docstrings of the standard library, each a passage, and 145 questions in other words with the names of
what answers them (``data/memory_queries.json``, written before any result was looked at). Even-numbered questions are
for tuning, odd-numbered ones are held out.

Speed: against the same SQLite FTS5 statements without anything around them, and bm25s where it is installed.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jarvis_nb.memory.base import Chunk
from jarvis_nb.memory.hybrid import HybridMemory
from jarvis_nb.memory.sqlite import SQLiteMemory, match_expression
from jarvis_nb.memory.terms import query_terms
from jarvis_nb.memory.vectors import VectorIndex, default_embed, quantise

QUERIES = Path(__file__).parent / "data" / "memory_queries.json"
MODULES = """
argparse ast asyncio base64 binascii bisect calendar cmath codecs collections concurrent.futures configparser contextlib
copy csv ctypes dataclasses datetime decimal difflib dis doctest email.message email.utils enum filecmp fnmatch
fractions ftplib functools getpass gettext glob gzip hashlib heapq hmac html http.client http.cookies imaplib importlib
inspect io
ipaddress itertools json keyword linecache locale logging lzma mailbox math mimetypes multiprocessing numbers operator
optparse os os.path pathlib pdb pickle pkgutil platform plistlib poplib pprint queue random re reprlib sched secrets
select selectors shelve shlex shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess symtable sys
sysconfig tarfile tempfile textwrap threading time timeit tokenize trace traceback tracemalloc types typing unicodedata
unittest unittest.mock urllib.parse urllib.request uuid warnings wave weakref webbrowser xml.etree.ElementTree zipfile
zlib
"""
HOMES = {"os": {"posix", "nt"}, "os.path": {"posixpath", "ntpath", "genericpath"}, "re": {"re"}}
"""Modules that others show as their own."""

Search = Callable[[str, int], list[str]]


def corpus() -> dict[str, str]:
    """Return qualified name to docstring, each docstring under the first name it has."""
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for module_name in MODULES.split():
        for name, thing in sorted(members(module_name)):
            text = inspect.getdoc(thing) or ""
            if len(text) >= 20 and text not in seen:
                seen.add(text)
                texts[name] = text
    return texts


def members(module_name: str) -> Iterator[tuple[str, Any]]:
    """Yield the public functions, classes and methods of a module."""
    module = importlib.import_module(module_name)
    homes = {module_name, module_name.partition(".")[0], *HOMES.get(module_name, ())}
    for name, thing in vars(module).items():
        home = (getattr(thing, "__module__", None) or module_name).lstrip("_").partition(".")[0]
        if name.startswith("_") or not callable(thing) or home not in homes:
            continue
        yield f"{module_name}.{name}", thing
        for attribute, member in vars(thing).items() if inspect.isclass(thing) else ():
            if not attribute.startswith("_") and (
                callable(member) or isinstance(member, property | classmethod)
            ):
                yield f"{module_name}.{name}.{attribute}", getattr(thing, attribute)


def quality() -> None:
    """Print recall@5 and MRR of words, vectors and both."""
    texts = corpus()
    questions = [
        (query, names & set(texts))
        for query, names in ((q, set(n)) for q, n in json.loads(QUERIES.read_text()))
    ]
    missing = [query for query, names in questions if not names]
    print(
        f"{len(texts):,} passages, {len(questions) - len(missing)} questions; without an answer here: {missing}"
    )
    for label, part in (("tuning", questions[::2]), ("held out", questions[1::2])):
        print(f"\n{label}, n = {sum(bool(names) for _, names in part)}\n{'':12} recall@5   MRR@20")
        for name, search in searches(texts).items():
            ranks = [rank(search(query, 20), names) for query, names in part if names]
            recall = sum(r <= 5 for r in ranks) / len(ranks)
            print(f"{name:12} {recall:8.3f} {sum(1 / r for r in ranks) / len(ranks):8.3f}")


def rank(found: list[str], names: set[str]) -> float:
    """Return the place of the first right answer, from 1; infinite if there is none."""
    return next((place for place, name in enumerate(found, 1) if name in names), float("inf"))


def searches(texts: dict[str, str]) -> dict[str, Search]:
    """Return the methods that are compared."""
    chunks = [Chunk(text, name) for name, text in texts.items()]
    words = SQLiteMemory()
    words.store_many(chunks)
    made: dict[str, Search] = {"FTS5": by_memory(words)}
    embed = default_embed()
    if embed is not None:
        both = HybridMemory()
        both.store_many(chunks)
        index = VectorIndex(embed(["x"]).shape[1])
        index.add(range(1, len(texts) + 1), quantise(embed(list(texts.values()))).tobytes())
        names = list(texts)
        made["embeddings"] = lambda query, k: [
            names[row - 1] for row, _ in index.search(embed([query])[0], k)
        ]
        made["hybrid"] = by_memory(both)
    try:
        import bm25s
    except ImportError:
        return made
    engine = bm25s.BM25()
    engine.index(
        bm25s.tokenize(list(texts.values()), stopwords="en", show_progress=False), show_progress=False
    )
    names = list(texts)

    def search(query: str, k: int) -> list[str]:
        tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
        found, _ = engine.retrieve(tokens, k=k, show_progress=False)
        return [names[i] for i in found[0]]

    made["bm25s"] = search
    return made


def by_memory(memory: SQLiteMemory) -> Search:
    """Return a memory's search as a function."""
    return lambda query, k: [hit.source for hit in memory.retrieve(query, top_k=k)]


def speed(sizes: list[int], words: int) -> None:
    """Print insert and search times at several sizes."""
    print(f"passages of {words} words; milliseconds a query, p50 / p99; ratio to raw FTS5")
    for size in sizes:
        texts, queries = made_up(size, words)
        with tempfile.TemporaryDirectory() as folder:
            raw_insert, raw = raw_fts5(Path(folder) / "raw.db", texts)
            with SQLiteMemory(Path(folder) / "ours.db") as memory:
                begin = time.perf_counter()
                memory.store_many(Chunk(text, "made/up.md") for text in texts)
                insert = time.perf_counter() - begin
                print(
                    f"\n{size:,}: insert {insert:.2f} s, raw {raw_insert:.2f} s, {insert / raw_insert:.2f} times"
                )
                base = report("raw FTS5", raw, queries)
                report("SQLite", memory.retrieve, queries, base)
            if default_embed() is not None:
                with HybridMemory(Path(folder) / "hybrid.db") as hybrid:
                    begin = time.perf_counter()
                    hybrid.store_many(Chunk(text, "made/up.md") for text in texts)
                    print(f"hybrid insert {time.perf_counter() - begin:.2f} s")
                    report("hybrid", hybrid.retrieve, queries, base)


def made_up(size: int, words: int) -> tuple[list[str], list[str]]:
    """Return texts and queries with word frequencies as in natural language (Zipf)."""
    random_ = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(random_.choices(letters, k=random_.randint(3, 9))) for _ in range(30_000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    pool = random_.choices(vocabulary, weights, k=min(size * words, 3_000_000) + words)
    starts = [random_.randrange(len(pool) - words) for _ in range(size)]
    texts = [f"{' '.join(pool[start : start + words])} n{number}" for number, start in enumerate(starts)]
    return texts, [" ".join(random_.choices(vocabulary[50:], weights[50:], k=4)) for _ in range(100)]


def raw_fts5(path: Path, texts: list[str]) -> tuple[float, Callable[[str], object]]:
    """Return the insert seconds of plain FTS5 statements and a search by them."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -32000"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5 (content, source UNINDEXED, metadata UNINDEXED, tokenize='porter unicode61')"
    )
    begin = time.perf_counter()
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, 'made/up.md', '{}')", ((text,) for text in texts))
    connection.execute("COMMIT")
    seconds = time.perf_counter() - begin
    select = "SELECT content, source, metadata, bm25(t) FROM t WHERE t MATCH ? ORDER BY rank LIMIT 5"
    return seconds, lambda query: connection.execute(
        select, (match_expression(query_terms(query)),)
    ).fetchall()


def report(
    name: str, search: Callable[[str], object], queries: list[str], base: float | None = None
) -> float:
    """Time each query, the best of three, and print median and 99th percentile; return the median."""
    times: list[float] = []
    for query in queries:
        best = float("inf")
        for _ in range(3):
            begin = time.perf_counter()
            search(query)
            best = min(best, time.perf_counter() - begin)
        times.append(best * 1000)
    median, high = statistics.median(times), sorted(times)[len(times) * 99 // 100 - 1]
    print(f"{name:10} {median:8.3f} / {high:8.3f}{f'   {median / base:.2f} times' if base else ''}")
    return median


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["quality", "speed", "all"], default="all")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--words", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.what in ("quality", "all"):
        quality()
    if arguments.what in ("speed", "all"):
        speed([int(size) for size in arguments.sizes.split(",")], arguments.words)


if __name__ == "__main__":
    main()
