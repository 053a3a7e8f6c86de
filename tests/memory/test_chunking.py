from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.memory.chunking import Document, Heading, chunk
from jarvis_nb.memory.documents import read_document


def test_16_512_words_64_overlap():
    """tools.md 16, on text without any structure."""
    words = [f"w{number}" for number in range(1200)]
    chunks = chunk(Document(" ".join(words)), "a.txt")
    assert [len(c.content.split()) for c in chunks] == [512, 512, 304]
    for before, after in pairwise(chunks):
        assert before.content.split()[-64:] == after.content.split()[:64]


TEXTS = st.text(alphabet="ab \n\t.é東🚀#", max_size=400) | st.lists(
    st.sampled_from(
        ["word", "\n", "\n\n", " ", "  ", "# Title\n", "東京", "x" * 200, "\r\n", "\u2028", "\x0c"]
    ),
    max_size=300,
).map("".join)


@given(TEXTS, st.integers(4, 20))
@settings(max_examples=300)
def test_16_nothing_is_lost(text, words):
    """tools.md 16: passages are pieces of the text as it stands, and together they are all of it."""
    document = read_document(text.encode(), "a.md")
    chunks = chunk(document, "a.md", words=words, overlap=0)
    assert "".join(c.content for c in chunks) == (document.text if document.text.split() else "")
    assert all(len(c.content.split()) <= words for c in chunks)
    assert all(c.source == "a.md" for c in chunks)


@given(
    st.lists(st.sampled_from([" ", "\n", "\n\n", "\r\n", "  ", "\n# "]), max_size=200),
    st.integers(4, 20),
    st.integers(0, 3),
)
@settings(max_examples=300)
def test_16_passages_follow_each_other_without_gaps(separators, words, overlap):
    """tools.md 16: each passage begins where the one before ends, or up to the overlap earlier."""
    text = "".join(f"w{number}{separator}" for number, separator in enumerate(separators)) or "w0"
    end = 0
    for piece in chunk(read_document(text.encode(), "a.md"), "a.md", words=words, overlap=overlap):
        start = text.index(piece.content, max(end - len(piece.content), 0))
        assert start <= end
        assert len(text[start:end].split()) <= overlap
        end = start + len(piece.content)
    assert end == len(text)


def test_16_line_breaks_and_lines_are_kept():
    """tools.md 16: a passage ends at the end of a line where it can, and knows its lines."""
    text = "".join(f"line {number} has five words\n" for number in range(1, 301))
    chunks = chunk(Document(text), "a.txt")
    lines = text.splitlines(keepends=True)
    for piece in chunks:
        first, last = piece.metadata["lines"]
        assert piece.content.endswith("\n")
        assert piece.content.endswith(lines[last - 1])
        assert lines[first - 1].endswith(piece.content.splitlines(keepends=True)[0])
    assert (chunks[0].metadata["lines"][0], chunks[-1].metadata["lines"][1]) == (1, 300)


def test_16_paragraphs_stay_whole_where_they_can():
    """A blank line in the last quarter is where a passage ends."""
    text = "\n\n".join([" ".join(["word"] * 90)] * 8)
    assert [len(c.content.split()) % 90 for c in chunk(Document(text), "a.txt", overlap=0)] == [0, 0]


def test_16_headings_begin_passages_and_are_known():
    """Issue 4: chunks know their heading; short sections stay together, long ones begin anew without overlap."""
    body = "word " * 100
    text = f"# Guide\n\nShort.\n\n## Install\n\n{body}\n\n### Linux\n\n{body}\n\n## Use ##\n\n{body}\n"
    chunks = chunk(read_document(text.encode(), "g.md"), "g.md")
    assert [c.metadata["heading"] for c in chunks] == ["Guide", "Guide > Install > Linux", "Guide > Use"]
    assert chunks[1].content.startswith("### Linux")
    assert "".join(c.content for c in chunks) == text


def test_16_short_paragraphs_are_not_lost():
    """Issue 4: the reference's own package loses them."""
    text = "a\n\nb\n\n" + "# H\n\nc\n\n" * 3 + "d"
    (piece,) = chunk(read_document(text.encode(), "x.md"), "x.md")
    assert piece.content == text


def test_16_text_without_spaces_is_bounded():
    """A picture in base64 or Chinese prose is no single word."""
    assert max(len(c.content) for c in chunk(Document("x" * 200_000), "a")) <= 512 * 64
    assert max(len(c.content) for c in chunk(Document("東" * 5_000), "a")) <= 512


def test_16_indentation_is_kept_at_the_cut():
    """Code: a passage begins with its line's indentation."""
    text = "".join(f"    x{number} = {number}\n" for number in range(400))
    assert all(c.content.startswith("    x") for c in chunk(Document(text), "a.py", overlap=0))


@pytest.mark.parametrize(("starts", "numbers"), [([(0, 1), (10, 2), (20, 5)], [1, 5]), ([(0, 7)], [7, 7])])
def test_16_places_other_than_lines(starts, numbers):
    """Cells and pages are counted by whoever read the file."""
    (piece,) = chunk(Document("word word word word word", (), "pages", starts), "a.pdf")
    assert piece.metadata == {"pages": numbers}


def test_headings_nest_by_level():
    """The heading path is what is in force, outermost first."""
    headings = [Heading(0, 2, "B"), Heading(2, 1, "A"), Heading(4, 3, "C"), Heading(6, 3, "D")]
    (piece,) = chunk(Document("b\na\nc\nd\n", headings), "x", words=9)
    assert piece.metadata["heading"] == "B"
    last = chunk(
        Document("b\na\nc\n" + "d " * 70, [*headings[:3], Heading(6, 3, "D")]), "x", words=4, overlap=0
    )[-1]
    assert last.metadata["heading"] == "A > D"
