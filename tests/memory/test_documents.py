from __future__ import annotations

import io
import json
import time

import pytest

from jarvis_nb.core.files import FileRefused
from jarvis_nb.memory.chunking import chunk
from jarvis_nb.memory.documents import Unreadable, read_document
from jarvis_nb.memory.html import html_document


def titles(document):
    return [(heading.level, heading.title) for heading in document.headings]


def test_markdown_headings_outside_fences():
    """Issue 4: a comment in a code fence is no heading."""
    text = "# A\n````py\n# no\n```\n# still no\n`````` \n## B ##\n~~~\n# no\n```\n~~~\n#no\n####### no\n  ### C\n"
    document = read_document(text.encode(), "a.md")
    assert titles(document) == [(1, "A"), (2, "B"), (3, "C")]
    assert all(text[heading.offset :].lstrip().startswith("#") for heading in document.headings)


def test_python_definitions_are_headings():
    """Issue 4: code chunks know the class and function they stand in."""
    code = "import os\n\n@dec\n@dec(1)\nclass A(B):\n    async def f(self):\n        pass\n\n    def g(self): ...\n\ndef h():\n    pass\n"
    document = read_document(code.encode(), "a.py")
    assert titles(document) == [(0, "A"), (4, "f"), (4, "g"), (0, "h")]
    assert code[document.headings[0].offset :].startswith("@dec\n@dec(1)")


def test_notebook_sources_and_text_outputs():
    """Issue 4: sources and text outputs, no pictures; places are cells, counted from 1."""
    cells = [
        {"cell_type": "markdown", "source": ["# Lesson\n", "Some text."]},
        {
            "cell_type": "code",
            "source": "print('hi')",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["\x1b[31mhi\x1b[0m\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "AAAA"}},
                {"output_type": "display_data", "data": {"image/png": "BBBB"}},
                {
                    "output_type": "error",
                    "ename": "ValueError",
                    "evalue": "odd",
                    "traceback": ["\x1b[0;31mlong"],
                },
            ],
        },
        {"cell_type": "raw", "source": ""},
        {"cell_type": "markdown", "source": "# no end"},
    ]
    document = read_document(json.dumps({"cells": cells, "nbformat": 4}).encode(), "n.ipynb")
    assert (
        document.text
        == "# Lesson\nSome text.\n\nprint('hi')\n\nhi\n\n\n42\n\nValueError: odd\n\n# no end\n\n"
    )
    assert titles(document) == [(1, "Lesson"), (1, "no end")]
    (piece,) = chunk(document, "n.ipynb")
    assert piece.metadata == {"heading": "Lesson", "cells": [1, 4]}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{}]}', "[" * 100_000]
)
def test_broken_notebooks(text):
    """A broken file is a reason, not a crash."""
    with pytest.raises(Unreadable, match="notebook"):
        read_document(text.encode(), "n.ipynb")


def test_html_is_what_a_reader_sees():
    """Issue 4: blocks on lines of their own, no scripts, entities resolved, pre as it stands."""
    page = """<!doctype html><html><head><title>T</title><style>x{}</style></head><body>
    <h1>Top <em>title</em></h1> <p>One&nbsp;&amp; two<br>three <b>bo</b>ld</p>
    <script>alert(1)</script><ul><li>a<li>b</ul><pre>  if x:
      y</pre><table><tr><td>1</td><td>2</td></tr></table><h2></h2><!-- no --></body></html>"""
    document = html_document(page)
    assert document.text == ("Top title\n\nOne & two\nthree bold\n\na\nb\n\n  if x:\n      y\n\n1 2")
    assert titles(document) == [(1, "Top title")]
    assert document.text[document.headings[0].offset :].startswith("Top title")


@pytest.mark.parametrize(
    "page",
    [
        "<h1>unclosed",
        "</h1></pre></script>",
        "<p",
        "<![CDATA[x",
        "<head>no end<body>text",
        "&#99999999;",
        "<![",
        "<![CDATA[",
        "<?x",
        "<!>",
        "<!-->x",
        "<!--->x",
    ],
)
def test_odd_html_does_not_raise(page):
    """Any text is some page."""
    html_document(page)


def test_an_unclosed_head_hides_nothing():
    """Browsers close it too."""
    assert html_document("<head><title>x<body>text").text in ("text", "")
    assert html_document("<head><meta><body>text").text == "text"


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.py", "a.ipynb", "a.txt"])
def test_large_odd_files_take_no_time(name):
    """No quadratic parsing: half a megabyte of brackets, marks and decorators."""
    for piece in (
        "<",
        "<a b='",
        "<a ",
        "<script>",
        '<a b="x>',
        "<![",
        "<?",
        "<!",
        "<h1>",
        "```\n",
        "# \n",
        "@a\n",
        "[",
        "</",
        "<!--",
        "&",
        "def ",
    ):
        start = time.perf_counter()
        try:
            read_document((piece * 20_000).encode(), name)
        except Unreadable:
            assert name == "a.ipynb"
        assert time.perf_counter() - start < 2, piece


def pdf(*pages):
    """A PDF of one line a page, made by hand."""
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(len(pages)))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {4 + 2 * number} 0 R"
            "/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
        )
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, 2)
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj{body}endobj\n".encode())
    xref = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{offset:010} 00000 n \n" for offset in offsets).encode())
    out.write(f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{xref}\n%%EOF".encode())
    return out.getvalue()


def test_pdf_text_with_pages():
    """Issue 4: PDF through a kept library."""
    pytest.importorskip("pypdf")
    document = read_document(pdf("Hello first", "Second page"), "a.pdf")
    assert document.text == "Hello first\n\nSecond page\n\n"
    assert chunk(document, "a.pdf", words=2, overlap=0)[1].metadata == {"pages": [2, 2]}


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "PDF"), (b"%PDF-1.4 broken", "PDF"), (b"\0\xff" * 99, "PDF"), (pdf(""), "no text")],
)
def test_broken_pdf(data, says):
    """A broken PDF, or one of pictures, is a reason."""
    pytest.importorskip("pypdf")
    with pytest.raises(Unreadable, match=says):
        read_document(data, "a.pdf")


def test_pdf_without_the_extra_says_the_one_command(monkeypatch):
    """An optional extra that is missing is named."""
    monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
    with pytest.raises(Unreadable) as caught:
        read_document(b"%PDF", "a.pdf")
    assert (caught.value.code, caught.value.hint) == ("missing_extra", "pip install 'jarvis-nb[pdf]'")


def test_plain_text_and_byte_order_mark():
    """Whatever else is text is text; a mark at its beginning is none of it."""
    assert read_document(b"\xef\xbb\xbfhello\r\n", "a.xyz").text == "hello\r\n"
    with pytest.raises(FileRefused):
        read_document(b"\xff", "a.xyz")
