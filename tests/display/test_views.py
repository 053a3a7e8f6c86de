"""Every view as text and static HTML: notebook.md 1, 4, 5 and 6."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from sanitizers import GITHUB, github, strict

from jarvis_nb import Approve, Jarvis, Reply
from jarvis_nb.display import bundle
from jarvis_nb.display.escape import cut, markdown, plain, prose
from jarvis_nb.display.schema import type_text
from jarvis_nb.display.timeline import spans
from jarvis_nb.engines import ScriptedEngine, call

VIEWS = pytest.mark.parametrize("name", samples.ORDINARY)
ODD = pytest.mark.parametrize("name", samples.ODD)
HERE = Path(__file__).parent


@VIEWS
def test_01_a_line_a_text_and_a_picture(name):
    """notebook.md 1."""
    thing = samples.ORDINARY[name]()
    shown = thing._repr_mimebundle_()
    assert {"text/plain", "text/html"} <= set(shown)
    assert "\n" not in repr(thing)
    for text in (repr(thing), *shown.values()):
        assert not re.search(r"0x[0-9a-f]{5,}|\d ms\b|\d\d:\d\d", text)
    assert len(shown["text/plain"]) > 5


@pytest.mark.slow
def test_01_the_same_in_every_process():
    """notebook.md 1: no addresses, clocks, random ids, hash order."""
    code = (
        "import samples, sys\n"
        "for name, make in samples.ORDINARY.items():\n"
        "    one = make(); print(repr(one)); print(one._repr_mimebundle_())"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=HERE,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert "discount_order" in said[0]


@VIEWS
def test_04_tags_and_styles(name):
    """notebook.md 4."""
    parsed = strict(samples.ORDINARY[name]()._repr_mimebundle_()["text/html"])
    assert "$" not in parsed.math
    assert "\\" not in parsed.math


@VIEWS
def test_04_github_leaves_every_word(name):
    """notebook.md 4: GitHub's allow-list, which strips styles."""
    html = samples.ORDINARY[name]()._repr_mimebundle_()["text/html"]
    left = github(html)
    assert "style=" not in left
    assert set(re.findall(r"<([a-z0-9]+)", left)) <= GITHUB
    assert strict(left).text == strict(html).text


@ODD
def test_05_hostile_text_stays_text(name):
    """notebook.md 5: names, arguments and results in every view."""
    shown = samples.ODD[name](samples.NASTY)._repr_mimebundle_()
    html = shown["text/html"]
    parsed = strict(html)
    assert "<img src=x onerror=alert(1)>" in parsed.text.replace("\n", " ")
    assert "$" not in parsed.math
    assert "\\(" not in parsed.math
    for text in (*shown.values(), repr(samples.ODD[name]("x"))):
        assert not set("\x1b\u202e\u202c\u200b\U000e0041") & set(text)


@ODD
@settings(max_examples=20)
@given(text=st.text(min_size=1, max_size=60))
def test_05_any_text_stays_text(name, text):
    """notebook.md 5."""
    if name.startswith(("flow", "offer", "toolset")):
        text = f"x{text}"  # a blank description is refused where they are made
    strict(samples.ODD[name](text)._repr_mimebundle_()["text/html"])


@given(st.text())
def test_05_escapes(text):
    """notebook.md 5: HTML and Markdown."""
    parsed = strict(prose(text))
    assert parsed.text == plain(text)
    assert "$" not in parsed.math
    for character in markdown(text).replace("\\\\", ""):
        assert character not in "\x1b\u202e"
    assert not re.search(r"(?<!\\)(\\\\)*[$<>*_`\[\]]", markdown(text))


def test_04_long_values_fold_and_say_where_the_whole_is():
    """notebook.md 4."""
    engine = ScriptedEngine([call("think", thought="a" * 3240), "b" * 9000])
    shown = Jarvis(engine=engine).ask_full("Think.", tools=["think"])._repr_mimebundle_()
    text = strict(shown["text/html"]).text
    assert "… 1,250 more characters (reply.tool_attempts[0].arguments)" in text
    assert "… 1,000 more characters (reply.output)" in text
    assert cut("a" * 10, 4, "here") == "aaaa… 6 more characters (here)"


def test_06_the_run_card_tells_all():
    """notebook.md 6: rounds, calls, results, errors, repairs, tokens, choice and why, what was sent."""
    parsed = strict(samples.reply()._repr_mimebundle_()["text/html"]).text
    for said in (
        samples.QUESTION,
        "comes to $37.80",
        "✓ completed · 3 tool rounds · 5 calls · 3 not ok · 1,648 + 384 tokens",
        "○ hidden by you (hidden)",
        "Round 1 · choice required (the model has to call a tool: the requirement is required) · 2 calls together",
        "Round 2 · choice auto (the model may answer: a tool has run)",
        '✓ discount_order order_id="ORD-5" → {"price":3780',
        "✓ okorderlookup_order",
        "✗ calculator",
        "unknown name 'r'",
        "⊘ refund",
        "ValueError: there is no order ORD-9",
        "Round 4 · choice auto (the model may answer: a tool has run) · answered",
        '"role":"user"',
        '"parameters":{"type":"object"',
    ):
        assert said in parsed, said


def test_06_repairs_memory_and_a_changed_offer_are_told():
    """notebook.md 6."""
    reply = samples.odd_reply("x")
    parsed = strict(reply._repr_mimebundle_()["text/html"]).text
    assert "repairedc1 x" in parsed
    assert "Round 1" in parsed
    assert "mended: x" in parsed
    assert "Put in from memory" in parsed
    looped = [call("think", thought="again") for _ in range(5)]
    card = Jarvis(engine=ScriptedEngine([*looped, "Enough."])).ask_full(
        "Go", tools=["think"], limits={"rounds": 2}
    )
    assert card.status == "max_rounds"
    assert "no tool offered any more" in strict(card._repr_mimebundle_()["text/html"]).text


def test_06_an_interrupt_leaves_a_readable_card():
    """notebook.md 13."""
    assert "■ interrupted" in samples.interrupted()._repr_mimebundle_()["text/plain"]
    assert "the run was interrupted" in samples.interrupted()._repr_mimebundle_()["text/html"]


def test_06_times_only_where_asked_for():
    """notebook.md 1 and 6."""
    reply = samples.reply()
    still = bundle(reply)
    assert "When it ran" not in still["text/html"]
    timed = reply.show(times=True)._repr_mimebundle_()
    assert re.search(r"When it ran \(\d", timed["text/html"])
    assert "from" in strict(timed["text/html"]).text
    assert "─" in timed["text/plain"]
    assert still == bundle(Reply.from_dict(reply.to_dict()))


def test_06_the_timeline_tells_overlap_in_words():
    """notebook.md 6: readable without colour."""
    found = spans([("model", 0, 1, ""), ("a", 1, 2, "✓"), ("b", 2, 2, "✗"), ("c", 4, 1, "✓")])
    assert [(s.name, s.together) for s in found] == [("model", 0), ("a", 1), ("b", 1), ("c", 0)]


def test_06_many_tools_and_rounds_are_folded():
    """notebook.md 4 and 6."""
    html = samples.odd_reply("x", 300)._repr_mimebundle_()["text/html"]
    assert "… 100 more tools (reply.offers[0].entries)" in html
    assert "96 rounds more" in html


def test_04_ten_thousand_calls_make_a_bounded_card():
    """notebook.md 4 and 7: the card says where the rest is."""
    reply = samples.odd_reply("x", 10_000)
    shown = bundle(reply)
    assert len(shown["text/html"]) < 600_000
    assert len(shown["text/plain"]) < 40_000
    assert "more rounds (reply.offers, reply.tool_attempts)" in shown["text/html"]
    assert "more lines (reply.tool_attempts)" in shown["text/plain"]


def test_06_a_call_that_ran_with_other_arguments_says_so():
    """notebook.md 6 and 12: what a person changed at the gate stands on the card; a lossless reading does not."""

    def card(arguments, **options):
        script = [call("refund", **arguments), "Done."]
        return strict(
            bundle(samples.jarvis(script, tools=[samples.refund], **options).ask_full("Go"))["text/html"]
        ).text

    edited = card({"order_id": "A", "cents": 420}, approve=lambda _: Approve({"order_id": "A", "cents": 7}))
    assert 'the model asked fororder_id="A", cents=420' in edited
    assert "the model asked for" not in card({"order_id": "A", "cents": "420"}, approve=lambda _: Approve())


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"type": "array", "items": {"type": "number"}}, "list of number"),
        ({"const": 1}, "1"),
        ({"$ref": "#/$defs/A"}, "object with x"),
        ({"$ref": "#/$defs/loop"}, "any"),
        ({"type": "string", "format": "date"}, "string (date)"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "array"}}}}, "list of list of list of list of any"),
        (True, "any"),
        ({}, "any"),
    ],
)  # fmt: skip
def test_06_types_in_words(schema, words):
    """notebook.md 6: parameters."""
    root = {"$defs": {"A": {"type": "object", "properties": {"x": {}}}, "loop": {"$ref": "#/$defs/loop"}}}
    assert type_text(schema, root) == words


def test_06_a_tool_shows_its_exact_definition():
    """notebook.md 6."""
    text = strict(samples.toolset()._repr_mimebundle_()["text/html"]).text
    assert "asks a person before it runs · at most 5 s" in text
    assert '"additionalProperties": false' in text
    assert "default 10" in samples.apply_discount._repr_mimebundle_()["text/plain"]


def test_speed_a_reply_of_twenty_calls():
    """Issue 5: under 60 kB, under 10 ms."""
    reply = samples.large_reply()
    assert len(reply.tool_attempts) == 20
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        html = bundle(reply)["text/html"]
        times.append(time.perf_counter() - begin)
    assert len(html.encode()) < 60_000
    assert min(times) < 0.010


def test_to_html_is_one_offline_file(tmp_path):
    """Issue 5: reply.to_html("run.html")."""
    reply = samples.reply()
    assert reply.to_html(tmp_path / "run.html") in (tmp_path / "run.html").read_text(encoding="utf-8")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|<link|src=", page)
    assert page.startswith("<!doctype html>")


def test_05_an_answer_of_lone_surrogates_is_written(tmp_path):
    """notebook.md 5."""
    reply = Jarvis(engine=ScriptedEngine(["a\ud800b"])).ask_full("Hi")
    reply.to_html(tmp_path / "run.html")
    assert "a\\ud800b" in reply._repr_mimebundle_()["text/plain"]
