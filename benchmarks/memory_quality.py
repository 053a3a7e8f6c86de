"""How well memory finds: the docstrings of the standard library, and questions in other words.

Each docstring is a passage; each question has the names of what answers it. The sets in ``data/``, each written before
any result on it was looked at:

* ``tuning`` and ``first``: the questions of ``memory_queries.json`` with even and with odd numbers. Whatever is
  decided by looking at results is decided on ``tuning``.
* ``held-out``: ``memory_held_out.json``, larger and broader than ``first``, with which differences can be told from
  chance.
* ``reserve``: ``memory_reserve.json``, for the next change of the method; looked at only if asked for.
"""

from __future__ import annotations

import importlib
import inspect
import json
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jarvis_nb.memory.base import Chunk
from jarvis_nb.memory.hybrid import HybridMemory
from jarvis_nb.memory.sqlite import SQLiteMemory
from jarvis_nb.memory.vectors import VectorIndex, default_embed, quantise

DATA = Path(__file__).parent / "data"
SETS = {
    "tuning": ("memory_queries.json", slice(0, None, 2)),
    "first": ("memory_queries.json", slice(1, None, 2)),
    "held-out": ("memory_held_out.json", slice(None)),
    "reserve": ("memory_reserve.json", slice(None)),
}
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
DEPTH = 20
"""Hits that are looked at; a right answer further down counts as none."""
RESAMPLES = 10_000

Search = Callable[[str, int], list[str]]
Question = tuple[str, set[str]]


def run(names: Sequence[str] = ()) -> None:
    """Print recall@5 and MRR of words, vectors, both, and bm25s on question sets; by default all but the reserve."""
    texts = corpus()
    methods = searches(texts)
    print(f"Quality: {len(texts):,} passages; right answer among the first 5, and mean reciprocal rank")
    for name in names or [name for name in SETS if name != "reserve"]:
        questions = load(name, texts)
        ranks = {
            method: [rank(search(query, DEPTH), right) for query, right in questions]
            for method, search in methods.items()
        }
        print(f"\n{name}, n = {len(questions)}\n{'':12} recall@5   MRR@{DEPTH}")
        for method, places in ranks.items():
            print(f"{method:12} {mean(found_early(places)):8.3f} {mean(reciprocal(places)):8.3f}")
        for other in ("FTS5", "embeddings"):
            if "hybrid" in ranks:
                print(f"hybrid - {other}: {differences(ranks['hybrid'], ranks[other])}")
    print(f"\nbrackets: 95 % of {RESAMPLES:,} bootstrap resamples of the questions")


def corpus() -> dict[str, str]:
    """Return qualified name to docstring, each docstring under the first name it has."""
    texts: dict[str, str] = {}
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # what is deprecated has a docstring like the rest
        for module_name in MODULES.split():
            for name, thing in sorted(members(module_name), key=lambda member: member[0]):
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


def load(name: str, texts: dict[str, str]) -> list[Question]:
    """Return the questions of a set that this Python's docstrings can answer; say which those are not."""
    file, part = SETS[name]
    questions = [
        (query, set(right) & set(texts)) for query, right in json.loads((DATA / file).read_text())[part]
    ]
    missing = [query for query, right in questions if not right]
    if missing:
        print(f"\nwithout an answer in this Python: {missing}")
    return [question for question in questions if question[1]]


def rank(found: list[str], right: set[str]) -> float:
    """Return the place of the first right answer, from 1; infinite if there is none."""
    return next((place for place, name in enumerate(found, 1) if name in right), float("inf"))


def found_early(places: Sequence[float]) -> list[float]:
    """Return 1 for each right answer among the first five, else 0."""
    return [float(place <= 5) for place in places]


def reciprocal(places: Sequence[float]) -> list[float]:
    """Return one divided by each place."""
    return [1 / place for place in places]


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def differences(ours: Sequence[float], others: Sequence[float]) -> str:
    """Return by how much one method is better than another on the same questions, with bootstrap intervals."""
    told: list[str] = []
    for label, measure in (("recall@5", found_early), ("MRR", reciprocal)):
        gains = [a - b for a, b in zip(measure(ours), measure(others), strict=True)]
        low, high = interval(gains)
        told.append(f"{label} {mean(gains):+.3f} [{low:+.3f}, {high:+.3f}]")
    return ", ".join(told)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean (Efron and Tibshirani 1993, chapter 13)."""
    random_ = random.Random(1)
    means = sorted(mean(random_.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[RESAMPLES * 25 // 1000], means[RESAMPLES * 975 // 1000 - 1]


def searches(texts: dict[str, str]) -> dict[str, Search]:
    """Return the methods that are compared."""
    chunks = [Chunk(text, name) for name, text in texts.items()]
    words = SQLiteMemory()
    words.store_many(chunks)
    made: dict[str, Search] = {"FTS5": by_memory(words)}
    names = list(texts)
    embed = default_embed()
    if embed is not None:
        both = HybridMemory()
        both.store_many(chunks)
        index = VectorIndex(embed(["x"]).shape[1])
        index.add(range(len(texts)), quantise(embed(list(texts.values()))).tobytes())
        made["embeddings"] = lambda query, k: [names[i] for i, _ in index.search(embed([query])[0], k)]
        made["hybrid"] = by_memory(both)
    found = bm25s_search(list(texts.values()))
    if found is not None:
        made["bm25s"] = lambda query, k: [names[i] for i in found(query, k)]
    return made


def by_memory(memory: SQLiteMemory) -> Search:
    """Return a memory's search as a function."""
    return lambda query, k: [hit.source for hit in memory.retrieve(query, top_k=k)]


def bm25s_search(texts: list[str]) -> Callable[[str, int], list[int]] | None:
    """Return a search by bm25s, with its English stop words; None where it is not installed."""
    try:
        import bm25s
    except ImportError:
        return None
    engine = bm25s.BM25()
    engine.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def search(query: str, k: int) -> list[int]:
        tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
        found, _ = engine.retrieve(tokens, k=k, show_progress=False)
        return [int(i) for i in found[0]]

    return search
