"""What a tool returned, as data and as text: never a crash, always the same for the same value."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import io
import ipaddress
import json
import math
import pathlib
import re
import sqlite3
import time
import types
import uuid
from typing import NamedTuple
from unittest.mock import MagicMock

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.content import (
    MAX_ITEMS,
    MAX_TEXT,
    cap_text,
    clean_text,
    convert,
    describe_error,
    json_value,
    plain_text,
    render,
)
from jarvis_nb.tools.images import ImageContent, find_image

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000020000000308060000007b2d0b2f")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Order:
    order_id: str
    lines: list[int]


class Model(pydantic.BaseModel):
    when: dt.date
    token: pydantic.SecretStr = pydantic.SecretStr("hidden")


class Loose(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    thing: object


class Point(NamedTuple):
    x: int
    y: int


class Plain:
    def __init__(self):
        self.secret = "hidden"


class Spoken:
    def __str__(self):
        return "spoken"


class Evil:
    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __repr__


class EvilEverywhere:
    def __getattribute__(self, name):
        raise RuntimeError("no")


class Huge:
    def __repr__(self):
        return "x" * 10**6


class EvilMapping(dict):
    def items(self):
        raise RuntimeError("no")


class Frame:
    """What a pandas data frame offers."""

    def __init__(self, rows, columns=("city", "rate"), unique=True):
        self.rows, self.columns = rows, Columns(columns)
        self.columns.is_unique = unique

    def set_axis(self, names, axis):
        assert axis == "columns"
        return Frame(self.rows, names)

    def to_dict(self, orient):
        assert orient == "records"
        assert self.columns.is_unique, "pandas would drop a column here"
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Columns(tuple):  # noqa: SLOT001 - an attribute is set on it
    is_unique = True


class Polars:
    def to_dicts(self):
        return [{"a": 1}, {"a": None}]


class Figure:
    """What a matplotlib figure offers."""

    def savefig(self, file, format, metadata):  # noqa: A002 - its name there
        assert (format, metadata) == ("png", {"Software": None})
        file.write(PNG)


class Shown:
    """What a PIL image offers."""

    def _repr_png_(self):
        return PNG


LOOP: list = [1]
LOOP.append({"again": LOOP})
DEEP: list = []
for _ in range(10_000):
    DEEP = [DEEP]
SHARED: list = []
for _ in range(60):
    SHARED = [SHARED, SHARED]


def row():
    connection = sqlite3.connect(":memory:")
    try:
        connection.row_factory = sqlite3.Row
        return connection.execute("select 1 as a, 'x' as b").fetchone()
    finally:
        connection.close()


def a_function(): ...


CASES = [
        (None, None),
        (True, True),
        (0, 0),
        (2.5, 2.5),
        ("日本語 🎉", "日本語 🎉"),
        ({"a": (1, [2])}, {"a": [1, [2]]}),
        # numbers JSON has no word for
        (float("nan"), None),
        (float("inf"), "Infinity"),
        ([-math.inf], ["-Infinity"]),
        (10**5000, f"<integer of {(10**5000).bit_length():,} bits>"),
        (decimal.Decimal("1.10"), "1.10"),
        (fractions.Fraction(1, 3), "1/3"),
        (1 + 2j, "1+2j"),
        # text
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"a"), "a"),
        (memoryview(b"a"), "a"),
        (b"\xff\x00", "<2 bytes of binary data>"),
        ("a\ud800b", "a\ufffdb"),
        ({"\ud83d\ude00": 1}, {"😀": 1}),
        # dates
        (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00+00:00"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.time(3, 4), "03:04:00"),
        (dt.timedelta(hours=25), "1 day, 1:00:00"),
        # values with a text of their own
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (ipaddress.ip_address("127.0.0.1"), "127.0.0.1"),
        (re.compile("a+"), "a+"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Spoken(), "spoken"),
        (types.SimpleNamespace(x=1), "namespace(x=1)"),
        # records
        (Order("ORD-5", [1]), {"order_id": "ORD-5", "lines": [1]}),
        (Model(when=dt.date(2026, 1, 2)), {"when": "2026-01-02", "token": "**********"}),
        (Loose(thing=Plain()), {"thing": "<Plain>"}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (row(), {"a": 1, "b": "x"}),
        (ToolResult("a", "text"), dataclasses.asdict(ToolResult("a", "text"))),
        # collections
        ({3, 1, 2}, [1, 2, 3]),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({("b", 1), "a", 2}), ["a", 2, ["b", 1]]),
        (collections.deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ({"b": 1}.items(), [["b", 1]]),
        ((n * n for n in range(3)), [0, 1, 4]),
        (map(str, [1, 2]), ["1", "2"]),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        ({1: "a", "1": "b", None: "c", (1, 2): "e", 2.5: "f"},
         {"1": "a", "1 (str)": "b", "null": "c", "[1,2]": "e", "2.5": "f"}),
        # tables
        (Frame([("Paris", 1.0), ("Rome", float("nan"))]), [{"city": "Paris", "rate": 1.0}, {"city": "Rome", "rate": None}]),
        (Frame([(1, 2, 3)], ("a", "a", "b"), unique=False), [{"a": 1, "a_2": 2, "b": 3}]),
        (Polars(), [{"a": 1}, {"a": None}]),
        # what can only be named
        (object(), "<object>"),
        (Plain(), "<Plain>"),
        (Plain, "<class Plain>"),
        (a_function, "<function a_function>"),
        (json, "<module json>"),
        (Evil(), "<Evil>"),
        (EvilEverywhere(), "<EvilEverywhere>"),
        (EvilMapping(a=1), "<EvilMapping>"),
        ({Evil(): Evil()}, {"<Evil>": "<Evil>"}),
        (io.StringIO("text"), "<StringIO>"),
        (LOOP, [1, {"again": "<recursive list>"}]),
        # errors and pictures
        (ValueError("bad\nvalue"), "ValueError: bad value"),
        (PNG, "[image: png, 2 x 3, 33 bytes]"),
        ({"plot": Figure(), "n": 1}, {"plot": "[image: png, 2 x 3, 33 bytes]", "n": 1}),
        (Shown(), "[image: png, 2 x 3, 33 bytes]"),
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "plain"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_odd_results(value, plain):
    """wire.md odd results: deterministic text, no memory addresses, no bare NaN, a table as records."""
    got = json_value(value)
    assert got == plain
    assert json.loads(json.dumps(got, allow_nan=False)) == got
    assert render(value) is not None


class Weird:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals()
    | st.complex_numbers()
    | st.uuids()
    | st.builds(Weird, st.text())
    | st.builds(ValueError, st.text())
    | st.builds(object),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.binary() | st.none(), inner)
        | st.frozensets(st.text() | st.integers() | st.floats())
    ),
)


@given(anything)
def test_anything_becomes_the_same_strict_json_and_utf8_each_time(value):
    """wire.md odd results; design.md rule 4."""
    plain = json_value(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    text = render(value)
    assert text == render(value) == plain_text(plain)
    text.encode()
    assert "0x" not in text or "0x" in repr(value)


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(plain_json)
def test_json_comes_back_equal_and_shares_nothing(value):
    """toolsets.md 33: compact JSON; the record is not changed by what the tool does later."""
    got = json_value(value)
    assert got == value
    if isinstance(value, list | dict):
        assert got is not value
        assert json.loads(render(value)) == value
    elif isinstance(value, str):
        assert render(value) == value


def test_structured_results_read_as_compact_json():
    """toolsets.md 33."""
    assert render({"order_id": "ORD-5", "total_cents": 4200}) == '{"order_id":"ORD-5","total_cents":4200}'
    assert render(["日本語", None, True]) == '["日本語",null,true]'
    assert render(None) == "null"
    assert render(float("nan")) == "null"


@pytest.mark.parametrize("make", [Plain, object, MagicMock, lambda: [Plain()], lambda: a_function.__get__(1)])
def test_no_memory_address_ever(make):
    """wire.md odd results."""
    texts = {render(made) for made in [make() for _ in range(5)]}
    assert len(texts) == 1
    assert not re.search(r"0x[0-9a-f]{4}|\d{9}", texts.pop())


def test_whatever_its_size_or_depth_it_ends():
    """wire.md odd results: never a crash."""
    before = time.perf_counter()
    assert "nested too deep" in render(DEEP)
    assert render(Huge()).startswith("xxx")
    assert len(render(Huge())) < 20_000
    endless = json_value(iter(int, 1))
    assert len(endless) == MAX_ITEMS + 1
    assert endless[-1] == "… more was left out"
    assert time.perf_counter() - before < 1


@pytest.mark.slow
def test_a_structure_that_unfolds_without_end_is_bounded():
    """wire.md odd results: 60 lists that unfold to 2**60."""
    assert "… more was left out" in render(SHARED)


def test_a_broken_generator_is_named():
    def broken():
        yield 1
        raise ValueError("no")

    assert json_value([broken()]) == ["<generator>"]


def test_an_interrupt_passes_through():
    """tools.md 4."""

    class Stop:
        def __repr__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(Stop())


def test_a_coroutine_is_named():
    coroutine = asyncio.sleep(0)
    assert json_value(coroutine) == "<coroutine sleep>"
    coroutine.close()


def test_numpy_values_and_arrays():
    """wire.md odd results: numpy scalars and arrays."""
    np = pytest.importorskip("numpy")
    assert json_value([np.float64(1.5), np.int64(2), np.bool_(True), np.float32("nan"), np.str_("a")]) == [
        1.5,
        2,
        True,
        None,
        "a",
    ]
    assert json_value(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert json_value(np.datetime64("2026-01-02")) == "2026-01-02"
    assert json_value(np.array([1 + 2j])) == ["1+2j"]


def test_pandas_tables():
    """wire.md odd results: a table as records."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"day": [pd.Timestamp("2026-01-02"), pd.NaT], "n": [1, 2]})
    assert json_value(frame) == [{"day": "2026-01-02T00:00:00", "n": 1}, {"day": None, "n": 2}]
    assert json_value(frame.set_index("n")) == [{"n": 1, "day": "2026-01-02T00:00:00"}, {"n": 2, "day": None}]
    assert json_value(frame.n) == [1, 2]
    assert json_value(frame.set_index("n").day) == {"1": "2026-01-02T00:00:00", "2": None}
    assert json_value([pd.NA, pd.NaT, frame.n.dtype.type(3)]) == [None, None, 3]
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert json_value(twice) == [{"a": 1, "a_2": 2}]


def test_images_are_kept_for_engines_that_take_them():
    """wire.md odd results: an image as a text stub and, where the engine takes images, a user part."""
    plain, images = convert({"plots": [Figure(), Shown()], "raw": PNG})
    assert plain["raw"] == "[image: png, 2 x 3, 33 bytes]"
    assert images == [ImageContent(PNG, "image/png")] * 3
    assert images[0].to_openai() == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAB7LQsv"},
    }
    assert "IHDR" not in repr(images[0])
    assert convert("text") == ("text", [])


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a\x01\x00\x02\x00", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        (b"GIF", None),
        (b"", None),
        ("text", None),
        (MagicMock(), None),
    ],
)
def test_images_are_known_by_their_first_bytes(data, media_type):
    image = find_image(data)
    assert (image.media_type if image else None) == media_type
    assert image is None or str(image).startswith("[image: ")


@given(st.text(), st.integers(-1, 200))
def test_capped_text_fits_and_says_what_was_cut(text, limit):
    """toolsets.md 32: head and tail with a count of what was cut, valid UTF-8."""
    text = clean_text(text * 7)
    capped, cut = cap_text(text, limit)
    assert cut == (len(text) > limit)
    if not cut:
        assert capped == text
        return
    assert len(capped) <= max(limit, 0)
    capped.encode()
    found = re.search(r"\n… ([\d,]+) characters were cut …\n", capped)
    if found and "…" not in text:
        head, tail = capped[: found.start()], capped[found.end() :]
        assert len(head) + len(tail) + int(found[1].replace(",", "")) == len(text)
        assert text.startswith(head)
        assert text.endswith(tail)


def test_the_cap_is_16384_characters():
    """toolsets.md 32."""
    assert MAX_TEXT == 16_384
    assert cap_text("x" * 16_384) == ("x" * 16_384, False)
    text, cut = cap_text("a" * 10_000 + "b" * 10_000)
    assert cut
    assert len(text) <= 16_384
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "characters were cut" in text


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("secret\npath"), "KeyError: 'secret\\npath'"),
        (ValueError("a\n  b\tc"), "ValueError: a b c"),
        (ValueError(), "ValueError"),
        (SilentError(), "SilentError"),
        (ValueError("x" * 1000), "ValueError: " + "x" * 299 + "…"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_an_error_is_one_short_line(error, text):
    """wire.md tool raises: short typed reason."""
    assert describe_error(error) == text
