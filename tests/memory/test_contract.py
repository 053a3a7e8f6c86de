"""What holds for every backend of this package."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jarvis_nb.core.errors import InvalidRequest, MemoryBackendError, NotPortable
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.memory.base import MAX_TOP_K, Chunk, IndexedFile, MemoryBackend, MemoryHit
from jarvis_nb.memory.text import content_hash

TEXTS = {
    "shipping.md": "Orders ship within two days. Shipping is free.",
    "returns.md": "The user's returns are refunded after inspection.",
    "cpp.md": "C++ templates are checked at compile time.",
    "java.md": "Java generics are erased at run time.",
    "search.md": "NEAR( and AND OR NOT are operators of a query language.",
    "cafe.md": "Das Café in Köln öffnet früh.",
    "tokyo.md": "東京都は日本の首都です。",
    "seoul.md": "서울은 한국의 수도이다.",
    "emoji.md": "Launch 🚀 on Friday.",
}


def fill(memory):
    return {source: memory.store(text, source=source) for source, text in TEXTS.items()}


def sources(memory, query, top_k=5):
    return [hit.source for hit in memory.retrieve(query, top_k=top_k)]


def test_14_results_carry_everything(memory):
    """tools.md 14: id, content, score, source, metadata."""
    assert isinstance(memory, MemoryBackend)
    made = memory.store(
        "Machine learning finds patterns.", source="ml.md", metadata={"page": 3, "tags": ["a", None]}
    )
    (hit,) = memory.retrieve("machine learning", top_k=5)
    assert isinstance(hit, MemoryHit)
    assert (hit.id, hit.content, hit.source) == (made, "Machine learning finds patterns.", "ml.md")
    assert hit.metadata == {"page": 3, "tags": ["a", None]}
    assert isinstance(hit.score, float)
    assert hit.to_dict() == {
        "id": made, "content": hit.content, "score": hit.score, "source": "ml.md", "metadata": hit.metadata,
    }  # fmt: skip


def test_14_source_and_metadata_are_optional(memory):
    """tools.md 14: a text alone can be stored."""
    memory.store("just text")
    (hit,) = memory.retrieve("text")
    assert (hit.source, hit.metadata) == ("", {})


def test_14_delete_count_clear(memory):
    """tools.md 14: delete tells whether there was one; an unknown id is False."""
    ids = fill(memory)
    assert memory.count() == len(TEXTS)
    assert memory.delete(ids["java.md"]) is True
    assert memory.delete(ids["java.md"]) is False
    assert sources(memory, "java generics") == []
    assert memory.count() == len(TEXTS) - 1
    assert [
        memory.delete(odd) for odd in ("", "nope", "0" * 12, "0" * 12 + "-2", None, 5, ids["cpp.md"] + "-2")
    ] == [False] * 7
    memory.clear()
    assert (memory.count(), sources(memory, "orders")) == (0, [])
    fill(memory)
    assert sources(memory, "orders") == ["shipping.md"]


def test_14_ids_are_the_texts(make_memory):
    """Ids repeat from run to run: they depend on source and content alone."""
    first, second = make_memory("a"), make_memory("b")
    assert fill(first) == fill(second)
    assert first.store("x", source="one") != first.store("x", source="two")


def test_14_the_same_text_twice_is_there_twice(memory):
    """store appends; each copy has an id of its own and can be deleted alone."""
    ids = [memory.store("again and again", source="a.md") for _ in range(3)]
    assert len(set(ids)) == memory.count() == 3
    assert [hit.id for hit in memory.retrieve("again", top_k=9)] == ids
    assert memory.delete(ids[1])
    assert [hit.id for hit in memory.retrieve("again", top_k=9)] == [ids[0], ids[2]]
    assert memory.store("again and again", source="a.md") not in (ids[0], ids[2])


def patch_hash(monkeypatch, memory, function):
    """Put a function in place of content_hash where the backend inserts rows."""
    for base in type(memory).__mro__:
        if base is not object and hasattr(sys.modules[base.__module__], "content_hash"):
            monkeypatch.setattr(f"{base.__module__}.content_hash", function)


def test_14_two_texts_with_one_hash_keep_apart(memory, monkeypatch):
    """A collision of the 48-bit hash costs nothing: the second text is a further copy."""
    patch_hash(monkeypatch, memory, lambda _: "0" * 12)
    first, second = memory.store("apples"), memory.store("pears")
    assert first != second
    assert [hit.id for hit in memory.retrieve("pears")] == [second]


@pytest.mark.parametrize("top_k", [-(10**30), -1, 0])
def test_14_top_k_below_one_gives_nothing(memory, top_k):
    """tools.md 14."""
    fill(memory)
    assert memory.retrieve("orders", top_k=top_k) == []


def test_14_any_top_k_is_clamped(memory):
    """tools.md 14: a huge one is taken as the most there is."""
    for chunk in range(12):
        memory.store(f"orders {chunk}")
    assert len(memory.retrieve("orders", top_k=10**30)) == 12
    assert len(memory.retrieve("orders", top_k=MAX_TOP_K + 1)) == 12
    assert len(memory.retrieve("orders", top_k=3)) == 3
    assert len(memory.retrieve("orders")) == 5


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("user's", "returns.md"),
        ("users", "returns.md"),
        ("user’s return", "returns.md"),
        ("C++", "cpp.md"),
        ("c++ template", "cpp.md"),
        ("NEAR(", "search.md"),
        ('"near"', "search.md"),
        ("operators AND OR NOT", "search.md"),
        ("ORDER", "shipping.md"),
        ("orders?", "shipping.md"),
        ("When does my order ship?", "shipping.md"),
        ("content:orders", "shipping.md"),
        ("orders* ^ship {free}", "shipping.md"),
        ("orders'); DROP TABLE chunks; --", "shipping.md"),
        ("cafe köln", "cafe.md"),
        ("東京", "tokyo.md"),
        ("日本の首都", "tokyo.md"),
        ("首都", "tokyo.md"),
        ("한국의", "seoul.md"),
        ("launch 🚀", "emoji.md"),
        ("launch\0 friday", "emoji.md"),
        ("\ud800 launch", "emoji.md"),
        ("launch " + "x" * 10_000, "emoji.md"),
        ("launch " + "y z " * 2_500, "emoji.md"),
    ],
)
def test_15_queries_are_data(memory, query, first):
    """tools.md 15: no query is an error, plural and case do not matter, results are sensible."""
    fill(memory)
    assert sources(memory, query)[0] == first


@pytest.mark.parametrize("query", ["", " ", '"', "?", "((", "*", "🚀", "\0", "\ud800", "-", ";", "\\", "%_"])
def test_15_a_query_without_words_finds_nothing(memory, query):
    """tools.md 15: punctuation and emoji are no words."""
    fill(memory)
    assert memory.retrieve(query) == []


def test_15_function_words_count_only_where_nothing_else_remains(memory):
    """A question's "what is the" matches no passage; a query of such words alone does."""
    fill(memory)
    memory.store("To be or not to be.", source="hamlet.md")
    assert "hamlet.md" not in sources(memory, "what is to be done with orders")
    assert sources(memory, "to be or not to be")[0] == "hamlet.md"


def test_15_results_are_deterministic_and_ordered(make_memory):
    """tools.md 15: best first; equal texts in the order they came; the same on every run."""
    runs = []
    for name in ("a", "b"):
        memory = make_memory(name)
        fill(memory)
        for number in range(5):
            memory.store("Orders ship slowly.", source=f"tie-{number}.md")
        hits = memory.retrieve("order shipping", top_k=20)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        runs.append([(hit.source, hit.score) for hit in hits])
        assert [s for s, _ in runs[-1] if s.startswith("tie")] == [f"tie-{number}.md" for number in range(5)]
    assert runs[0] == runs[1]


def test_15_more_of_the_query_ranks_higher(memory):
    """Any term may match, but a text that has more of them comes first."""
    memory.store("red apples", source="1")
    memory.store("red pears and green apples", source="2")
    memory.store("blue plums", source="3")
    memory.store("green apples", source="4")
    assert sources(memory, "green apple")[0] == "4"
    assert set(sources(memory, "green apple")) == {"4", "2", "1"}


@pytest.mark.parametrize(
    "text", ["", "a\0b", "\ud800 lonely", "x" * 300_000, "\r\n tabs\t \n", "🚀" * 1000, "a " * 50_000]
)
def test_14_any_text_can_be_stored(memory, text):
    """What no database takes (NUL, lone surrogates) is stored as U+FFFD, everything else as it is."""
    made = memory.store(f"needle {text}", source="odd\0.md")
    (hit,) = memory.retrieve("needle")
    assert hit.content == f"needle {text}".replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    assert hit.source == "odd\ufffd.md"
    assert memory.delete(made)
    assert memory.retrieve("needle") == []


@pytest.mark.parametrize("odd", [None, 5, ["a"], b"a"])
def test_the_callers_mistakes_raise(memory, odd):
    """House rule: they name what is wrong."""
    with pytest.raises(InvalidRequest, match="content"):
        memory.store(odd)
    with pytest.raises(InvalidRequest, match="source"):
        memory.store("x", source=odd)
    with pytest.raises(InvalidRequest, match="query"):
        memory.retrieve(odd)
    assert memory.count() == 0


def test_metadata_must_be_plain_data(memory):
    """House rule: dictionaries at the edge, nothing live inside."""
    with pytest.raises(NotPortable, match=r"metadata\.when"):
        memory.store("x", metadata={"when": object()})
    with pytest.raises(InvalidRequest, match="metadata"):
        memory.store("x", metadata="page 3")
    with pytest.raises(InvalidRequest, match="top_k"):
        memory.retrieve("x", top_k="many")
    assert memory.count() == 0


def test_store_many_is_all_or_nothing(memory):
    """A batch is one transaction."""
    with pytest.raises(NotPortable):
        memory.store_many([Chunk("one"), Chunk("two", metadata={"x": object()})])
    assert memory.count() == 0
    ids = memory.store_many([Chunk("one"), Chunk("two"), Chunk("one")])
    assert (len(set(ids)), memory.count(), memory.store_many([])) == (3, 3, [])


def test_closed(make_memory):
    """close twice is safe; what comes after says what is wrong."""
    memory = make_memory()
    with memory as entered:
        assert entered is memory
        memory.store("x")
    memory.close()
    for use in (
        memory.count,
        memory.clear,
        lambda: memory.store("x"),
        lambda: memory.retrieve("x"),
        memory.indexed,
    ):
        with pytest.raises(MemoryBackendError) as caught:
            use()
        assert caught.value.code == "closed"


def test_08_events(memory):
    """tools.md 8: memory events on the bus, plain data."""
    bus = memory.bus = EventBus(record_history=True)
    made = memory.store("orders ship", source="a.md")
    memory.retrieve("orders", top_k=3)
    stored, retrieved = bus.history
    assert (stored.event_type, stored.data["id"], stored.data["source"]) == (
        EventType.MEMORY_STORE,
        made,
        "a.md",
    )
    assert (retrieved.event_type, retrieved.data["query"], retrieved.data["top_k"]) == (
        EventType.MEMORY_RETRIEVE, "orders", 3,
    )  # fmt: skip
    assert [hit["source"] for hit in retrieved.data["hits"]] == ["a.md"]


def files(*names, text="orders from {}", fingerprint="1"):
    return [
        IndexedFile(f"/d/{n}", fingerprint, [Chunk(text.format(n), n), Chunk(f"more of {n}", n)])
        for n in names
    ]


def test_16_replace_puts_files_in_place_of_their_earlier_versions(memory):
    """tools.md 16: replaced, not duplicated; removed with all their passages; stored texts stay."""
    memory.store("orders by hand", source="a.md")
    memory.replace(files("a.md", "b.md"))
    memory.replace(files("a.md", text="parcels from {}", fingerprint="2"))
    assert memory.count() == 5
    assert memory.indexed() == {"/d/a.md": "2", "/d/b.md": "1"}
    assert sorted(sources(memory, "orders")) == ["a.md", "b.md"]
    assert sources(memory, "parcels") == ["a.md"]
    memory.replace([], ["/d/a.md", "/d/unknown"])
    assert (memory.count(), memory.indexed()) == (3, {"/d/b.md": "1"})
    memory.clear()
    assert memory.indexed() == {}


def test_16_replace_is_all_or_nothing(memory, monkeypatch):
    """tools.md 16: interrupted half way it leaves the old index, never half."""
    memory.replace(files("a.md", "b.md"))
    before = [hit.to_dict() for hit in memory.retrieve("orders more", top_k=9)]
    calls = []

    def interrupted(chunk):
        calls.append(chunk)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return content_hash(chunk)

    patch_hash(monkeypatch, memory, interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.replace(files("a.md", "c.md", text="parcels {}", fingerprint="2"), ["/d/b.md"])
    monkeypatch.undo()
    assert [hit.to_dict() for hit in memory.retrieve("orders more", top_k=9)] == before
    assert memory.indexed() == {"/d/a.md": "1", "/d/b.md": "1"}
    memory.replace(files("a.md", text="parcels {}", fingerprint="2"))
    assert sources(memory, "parcels") == ["a.md"]


def test_14_safe_across_threads(memory):
    """tools.md 14: writers and readers at once; nothing is lost."""
    failures = []

    def work(worker):
        try:
            for number in range(25):
                memory.store(f"thread {worker} row {number}", source=f"{worker}.md")
                memory.retrieve(f"row {number}")
                memory.count()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert memory.count() == 200
    assert {len(memory.retrieve(f"thread {w}", top_k=1000)) for w in range(8)} == {200}


QUERIES = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="ab\"'()*:^-+{}[]AND ORNEAR/\\%_;\0\ud800\u3042🚀 ", max_size=100),
    st.lists(
        st.sampled_from(["orders", "AND", "OR", "NOT", "NEAR(", '"', "C++", "user's", "*", "東京", "é"]),
        max_size=30,
    ).map(" ".join),
)


@given(QUERIES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_15_any_query_in_bounded_time(memory, query):
    """tools.md 15: a fuzzer's queries raise nothing and take no time."""
    if memory.count() == 0:
        fill(memory)
    start = time.perf_counter()
    hits = memory.retrieve(query)
    assert time.perf_counter() - start < 1
    assert len(hits) <= 5


@pytest.mark.slow
@given(QUERIES)
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_15_five_thousand_queries(memory, query):
    """The same, at length."""
    if memory.count() == 0:
        fill(memory)
    assert len(memory.retrieve(query)) <= 5


def test_16_a_passage_is_found_by_the_headings_above_it(memory):
    """Issue 4: a later passage of a section does not repeat its heading, but belongs to it."""
    memory.store("Run the command twice.", source="a.md", metadata={"heading": "Guide > Installation"})
    memory.store("Run the command once.", source="b.md", metadata={"heading": "Guide > Removal"})
    assert sources(memory, "how to install: run command")[0] == "a.md"
    (made,) = [hit.id for hit in memory.retrieve("installation")]
    assert memory.delete(made)
    assert memory.retrieve("installation") == []
