"""The strict loopback server: real HTTP, checked requests, scripted answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from jarvis_nb.engines.wire import assemble, normalise
from jarvis_nb.testing import CLOSE, HANG, StrictServer, answer, body, chunks, error, html, raw
from jarvis_nb.testing.oddities import ODDITIES
from jarvis_nb.testing.replies import Answer, reply_to, sse

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "日本語?"}]}


@contextlib.contextmanager
def connected(server):
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.url).port, timeout=5)
    try:
        yield connection
    finally:
        connection.close()


def post(server, data=REQUEST, path="/v1/chat/completions", headers=None):
    with connected(server) as connection:
        raw_data = data if isinstance(data, bytes) else json.dumps(data).encode()
        connection.request("POST", path, raw_data, headers or {})
        response = connection.getresponse()
        return response.status, response.read(), dict(response.headers)


def content(server, **more):
    return json.loads(post(server, {**REQUEST, **more})[1])["choices"][0]["message"]["content"]


def events(data):
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"], lines[-1] == "[DONE]"


def test_a_script_is_played_in_order_and_requests_are_recorded():
    with StrictServer(
        ["Hello.", {"role": "assistant", "content": "日本語"}, lambda request: request["model"]]
    ) as server:
        assert [content(server), content(server), content(server)] == ["Hello.", "日本語", "m"]
        assert [r.body for r in server.requests] == [REQUEST] * 3
        assert server.requests[0].messages == REQUEST["messages"]
        assert server.requests[0].path == "/v1/chat/completions"
        assert server.requests[0].headers["content-length"] == str(len(server.requests[0].raw))
        server.assert_complete()
        assert repr(server) == "StrictServer(3 requests, 0 replies left)"


def test_it_listens_on_loopback_only_and_lists_models():
    with StrictServer(models=["a", "b"]) as server, connected(server) as connection:
        assert server.url.startswith("http://127.0.0.1:")
        connection.request("GET", "/v1/models")
        listing = json.loads(connection.getresponse().read())
        assert [m["id"] for m in listing["data"]] == ["a", "b"]
        connection.request("GET", "/v1/other")  # on the same connection
        assert connection.getresponse().status == 404


def test_a_bad_request_gets_openais_error_and_takes_no_reply():
    with StrictServer(["Hello."]) as server:
        status, data, _ = post(server, {**REQUEST, "tools": []})
        assert status == 400
        assert json.loads(data)["error"] == {
            "message": "tools: an empty list: leave the key out",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
        assert content(server) == "Hello."
        assert server.problems == ["request 1: tools: an empty list: leave the key out"]
        with pytest.raises(AssertionError, match="empty list"):
            server.assert_accepted()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b'{"model": NaN}', "NaN is not JSON"),
        ('{"model":"é"}'.encode("latin-1"), "UTF-8"),
        (b'{"model":"\\ud83c"}', "surrogates not allowed"),
        (b"[]", "not an object"),
    ],
)
def test_bytes_that_are_no_request(data, words):
    with StrictServer() as server:
        assert post(server, data)[0] == 400
        assert words in server.problems[0]


def test_what_the_script_itself_does_wrong_is_told():
    def fails(request):
        raise KeyError(request["model"])

    with StrictServer([fails, "left"]) as server:
        assert post(server)[0] == 500
        with pytest.raises(AssertionError, match="KeyError"):
            server.assert_accepted()
    with StrictServer() as server:
        assert post(server)[0] == 400
        assert server.problems == ["request 1: the script has no more replies"]
    with StrictServer(["left"]) as server, pytest.raises(AssertionError, match="1 replies"):
        server.assert_complete()


def test_options():
    with StrictServer(lambda _: "again", api_key="k", extra_keys=["top_k"]) as server:
        assert post(server)[0] == 401
        assert post(server, {**REQUEST, "top_k": 1}, headers={"Authorization": "Bearer k"})[0] == 200
        assert "Bearer" not in repr(server.requests)
        assert post(server, path="/v1/other", headers={"Authorization": "Bearer k"})[0] == 404
    with StrictServer(["Hi"], strict=False) as server:
        assert post(server, {"messages": 7})[0] == 200
        server.assert_complete()


def test_it_must_be_started():
    with pytest.raises(RuntimeError, match="with StrictServer"):
        StrictServer().url  # noqa: B018 - the property raises


@pytest.mark.parametrize("odd", [odd for odd in ODDITIES if odd.streams], ids=str)
def test_an_answer_comes_whole_or_streamed_as_asked(odd):
    reply = answer(odd.message, odd.finish_reason)
    whole = json.loads(reply.reply(REQUEST).parts[0])["choices"][0]
    streamed, done = events(b"".join(reply.reply({**REQUEST, "stream": True}).parts))
    joined = assemble(streamed)
    assert done
    assert (whole["finish_reason"], joined.finish_reason) == (odd.finish_reason, odd.finish_reason)
    mine, theirs = (
        normalise(m, known_names=["add", "get_weather"]) for m in (whole["message"], joined.message)
    )
    assert (mine.message, mine.refused) == (theirs.message, theirs.refused)


def test_a_stream_over_the_socket():
    with StrictServer(
        [
            "Hello there.",
            chunks(
                "Hi",
                {"reasoning_content": "hm"},
                {"error": {"message": "x"}},
                b": note\n\n",
                finish=None,
                done=False,
            ),
        ]
    ) as server:
        wanted = {**REQUEST, "stream": True, "stream_options": {"include_usage": True}}
        status, data, headers = post(server, wanted)
        pieces, done = events(data)
        assert (status, headers["Content-Type"], done) == (200, "text/event-stream", True)
        assert assemble(pieces).usage.total_tokens == 15
        assert [p["choices"][0]["delta"].get("content") for p in pieces[:-1]] == [
            "",
            "Hello",
            " there.",
            None,
        ]
        assert post(server, wanted)[1].endswith(b'data: {"error": {"message": "x"}}\n\n: note\n\n')


def test_errors_pages_and_raw_bytes():
    script = [
        error(429, "slow down", code="rate_limit", retry_after=2),
        html(),
        body("plain", 503),
        body(b"\xff"),
        raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok"),
        raw(b"rubbish"),
    ]
    with StrictServer(script) as server:
        status, data, headers = post(server)
        assert (status, headers["Retry-After"], json.loads(data)["error"]["code"]) == (429, "2", "rate_limit")
        status, data, headers = post(server)
        assert (status, headers["Content-Type"], b"<html>" in data) == (502, "text/html", True)
        assert post(server)[:2] == (503, b"plain")
        assert post(server)[1] == b"\xff"
        assert post(server)[:2] == (200, b"ok")
        with pytest.raises(http.client.BadStatusLine):
            post(server)
        server.assert_complete()


def test_a_connection_that_closes_in_the_middle():
    with StrictServer([chunks("Hi", CLOSE), raw(CLOSE)]) as server:
        with pytest.raises(http.client.IncompleteRead) as caught:
            post(server)
        assert b'"content": "Hi"' in caught.value.partial
        with pytest.raises(http.client.RemoteDisconnected):
            post(server)


def test_a_hanging_reply_ends_with_the_server():
    with StrictServer([chunks("Hi", HANG), raw(HANG), answer("late", delay=30)]) as server:
        ended = []
        threads = [threading.Thread(target=lambda: ended.append(_outcome(server))) for _ in range(3)]
        for thread in threads:
            thread.start()
        server.wait_for_requests(3)
        assert ended == []
        start = time.perf_counter()
    for thread in threads:
        thread.join(5)
    assert time.perf_counter() - start < 1
    assert sorted(ended) == ["IncompleteRead", "RemoteDisconnected", "RemoteDisconnected"]
    server.close()  # safe twice
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port), timeout=1)


def _outcome(server):
    try:
        return post(server)[0]
    except (http.client.HTTPException, OSError) as failure:
        return type(failure).__name__


def test_pauses_and_delays():
    with StrictServer([answer("Hi", delay=0.05), chunks("a", 0.05, "b")]) as server:
        start = time.perf_counter()
        post(server)
        post(server)
        assert 0.1 <= time.perf_counter() - start < 2
        with pytest.raises(TimeoutError, match="2 of 3"):
            server.wait_for_requests(3, 0.01)


def test_many_at_once():
    with StrictServer(lambda _: answer("Hi", delay=0.05)) as server:
        ended = []
        threads = [threading.Thread(target=lambda: ended.append(_outcome(server))) for _ in range(32)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert ended == [200] * 32
        assert time.perf_counter() - start < 1.2  # one after another they would take 1.6


def test_helpers():
    assert assemble(events(sse([{"choices": [{"delta": {"content": "Hi"}}]}]))[0]).message["content"] == "Hi"
    assert isinstance(answer("x"), Answer)
    assert reply_to(lambda request: request["model"], REQUEST) == answer("m").reply(REQUEST)
