"""Server-sent events."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.engines.sse import EventDecoder


@pytest.mark.parametrize(
    ("text", "payloads"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b": ping\n\ndata: a\n\n", [b"a"]),
        (b"event: message\nid: 7\ndata: a\nretry: 3\n\n", [b"a"]),
        (b"data: a\ndata: b\n", [b"a", b"b"]),
        (b"data: a", [b"a"]),
        (b"data:\n\n", [b""]),
        (b"\n\n\n", []),
        (b"", []),
        (b"database: a\n", []),
    ],
)
def test_lines(text, payloads):
    decoder = EventDecoder()
    assert [*decoder.feed(text), *decoder.finish()] == payloads


events = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=8), max_size=3), max_size=6)


@given(events, st.data(), st.sampled_from(["\n", "\r\n"]))
def test_borders_of_blocks_do_not_matter(sent, data, end):
    text = "".join(f"data: {json.dumps(e, ensure_ascii=False)}{end}{end}" for e in sent).encode(
        errors="replace"
    )
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=20)))
    decoder = EventDecoder()
    got = [
        payload
        for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)
        for payload in decoder.feed(text[start:stop])
    ]
    assert [json.loads(p) for p in got] == [json.loads(json.dumps(e).encode(errors="replace")) for e in sent]
    assert decoder.finish() == []


def test_a_long_line_in_many_blocks_costs_no_square():
    decoder = EventDecoder()
    decoder.feed(b"data: ")
    for _ in range(20_000):
        assert decoder.feed(b"x" * 100) == []
    assert decoder.finish() == [b"x" * 2_000_000]
