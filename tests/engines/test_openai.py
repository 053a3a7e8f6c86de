"""OpenAIEngine: what it sends, whom it sends it to, what it gives back."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.portable import Secret
from jarvis_nb.core.types import Message, Role, ToolCall, Usage
from jarvis_nb.engines.encode import Dialect
from jarvis_nb.engines.openai import OpenAIEngine
from jarvis_nb.testing import HANG, StrictServer, answer, body, chunks, raw
from tests.engines.loopback import WEATHER, ask, engine_at, generate, stream

KEY = "sk-test-0123456789abcdef"

pytestmark = pytest.mark.usefixtures("each_transport")


def test_a_text_answer(strict_server):
    server = strict_server([answer("Hello.", prompt_tokens=3, completion_tokens=2)], api_key=KEY)
    completion = generate(engine_at(server))
    assert completion.message == {"role": "assistant", "content": "Hello."}
    assert (completion.finish_reason, completion.usage, completion.model) == ("stop", Usage(3, 2), "m")
    server.assert_complete()


def test_no_tools_neither_key_is_sent(strict_server):
    """wire.md, Requests: no tools selected, neither ``tools`` nor ``tool_choice``."""
    server = strict_server(["a", "b"])
    engine = engine_at(server)
    generate(engine, ask())
    generate(engine, ask(choice="required"))
    for request in server.requests:
        assert request.body == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_tools_and_choice_are_sent(strict_server, choice):
    server = strict_server(["a"])
    generate(engine_at(server), ask(tools=True, choice=choice))
    sent = server.requests[0].body
    assert sent["tool_choice"] == choice
    assert [t["function"]["name"] for t in sent["tools"]] == ["get_weather"]
    assert "strict" not in sent["tools"][0]["function"]
    server.assert_complete()


def test_strict_is_opt_in(strict_server):
    server = strict_server(["a"])
    engine = engine_at(server, strict=True)
    assert engine.supports.strict
    generate(engine, ask(tools=True))
    assert server.requests[0].body["tools"][0]["function"]["strict"] is True


def test_sampling_and_params(strict_server):
    server = strict_server(["a"])
    generate(engine_at(server, params={"seed": 7}), ask(temperature=0.5, max_tokens=9))
    sent = server.requests[0].body
    assert (sent["temperature"], sent["max_tokens"], sent["seed"]) == (0.5, 9, 7)


def test_params_cannot_replace_what_the_engine_sends():
    with pytest.raises(InvalidRequest, match="messages"):
        OpenAIEngine(params={"messages": []})


def test_text_is_utf8_as_it_is(strict_server):
    """wire.md, Normal form: no escapes for text beyond ASCII."""
    server = strict_server(["a"])
    generate(engine_at(server), ask("日本語 🎉"))
    assert "日本語 🎉".encode() in server.requests[0].raw


def test_a_history_is_encoded_once(strict_server):
    """Each message's bytes are kept: a later request joins them."""
    server = strict_server(["a", "b"])
    history = [Message(Role.USER, "one"), Message(Role.ASSISTANT, "two"), Message(Role.USER, "three")]
    engine = engine_at(server)
    generate(engine, ask(messages=history))
    kept = [dict(message.encoded) for message in history]
    assert all(kept)
    history[0].content = "changed behind the engine's back"
    generate(engine, ask(messages=history))
    assert server.requests[0].raw == server.requests[1].raw


def test_tools_are_encoded_once(strict_server):
    server = strict_server(["a", "b"])
    request = ask(tools=True)
    engine = engine_at(server)
    generate(engine, request)
    assert len(request.tools.encoded) == 1
    generate(engine, request)
    assert server.requests[0].raw == server.requests[1].raw


def test_dialect_option(strict_server):
    server = strict_server(["a"], strict=False)
    call = ToolCall("call_1", "get_weather", '{"city":"Paris"}')
    history = [
        Message(Role.USER, "?"),
        Message(Role.ASSISTANT, None, [call]),
        Message(Role.TOOL, "sunny", tool_call_id="call_1"),
    ]
    generate(engine_at(server, dialect=Dialect("empty", "object")), ask(messages=history))
    sent = server.requests[0].messages[1]
    assert sent["content"] == ""
    assert sent["tool_calls"][0]["function"]["arguments"] == {"city": "Paris"}


def test_payload_is_what_is_sent(strict_server):
    """toolsets.md 20: the preview shows the exact payload."""
    server = strict_server(["a"])
    engine = engine_at(server, params={"seed": 1})
    request = ask(tools=True, choice="required", temperature=0.0)
    shown = engine.payload(request)
    generate(engine, request)
    assert shown == server.requests[0].body


# Models


def test_models_and_health(strict_server):
    server = strict_server(models=["b", "a"])
    engine = engine_at(server)

    async def look():
        found = await engine.list_models(), await engine.health()
        await engine.close()
        return found

    assert asyncio.run(look()) == (["a", "b"], True)


def test_health_is_false_where_nothing_answers():
    engine = OpenAIEngine("http://127.0.0.1:9/v1")

    async def look():
        return await engine.health()

    assert asyncio.run(look()) is False


def test_the_only_model_is_taken(strict_server):
    server = strict_server(["a"], models=["the-one"])
    engine = engine_at(server)
    assert engine.default_model == ""
    generate(engine, ask(model=""))
    assert server.requests[0].body["model"] == "the-one"
    assert engine.default_model == "the-one"


@pytest.mark.parametrize(("models", "says"), [(("a", "b"), "has 2"), ((), "has none")])
def test_no_model_is_guessed(strict_server, models, says):
    server = strict_server(["a"], models=models)
    with pytest.raises(EngineError, match=says) as caught:
        generate(engine_at(server), ask(model=""))
    assert caught.value.code == "no_model"
    assert caught.value.valid == models


def test_a_model_of_ones_own_comes_before_the_presets(strict_server):
    server = strict_server(["a"])
    generate(engine_at(server, model="mine"), ask(model=""))
    assert server.requests[0].body["model"] == "mine"


# The key


def test_the_key_is_sent_and_never_shown(strict_server):
    server = strict_server(["a"], api_key=KEY)
    engine = engine_at(server)
    generate(engine)
    assert KEY not in repr(engine)
    assert KEY not in repr(vars(engine))
    assert repr(engine) == f"OpenAIEngine('openai', base_url={server.url!r})"


def test_a_secret_is_resolved_when_it_is_used(strict_server, monkeypatch):
    server = strict_server(["a"], api_key=KEY)
    engine = engine_at(server, api_key=Secret("MY_MODEL_KEY"))
    with pytest.raises(InvalidRequest, match="MY_MODEL_KEY"):
        generate(engine)
    monkeypatch.setenv("MY_MODEL_KEY", KEY)
    assert generate(engine).message["content"] == "a"


def test_no_key_is_an_error_before_any_request():
    with pytest.raises(EngineError, match=r"OpenAI \(api\.openai\.com\)") as caught:
        generate(OpenAIEngine(retries=0))
    assert caught.value.code == "no_key"
    assert "OPENAI_API_KEY" in str(caught.value)


def test_no_key_is_an_error_in_a_stream_too():
    with pytest.raises(EngineError) as caught:
        stream(OpenAIEngine(preset="gemini"))
    assert caught.value.code == "no_key"
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in str(caught.value)


def test_the_environments_key_goes_to_its_own_host_only(strict_server, monkeypatch):
    """wire.md, Requests: keys are sent only to the engine's own host."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = strict_server(["a"])
    generate(OpenAIEngine(server.url))
    assert "authorization" not in server.requests[0].headers


def test_the_environment_can_name_host_and_key(strict_server, monkeypatch):
    server = strict_server(["a"], api_key=KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert generate(OpenAIEngine()).message["content"] == "a"


def test_a_redirect_is_not_followed(strict_server):
    """wire.md, Requests: no other host gets the key."""
    thief = strict_server(["stolen"])
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {thief.url}/chat/completions?x=1\r\nContent-Length: 0\r\n\r\n"
    server = strict_server([raw(moved)])
    with pytest.raises(EngineError, match="redirects to http") as caught:
        generate(engine_at(server))
    assert caught.value.code == "http_error"
    assert not thief.requests


def test_headers_of_ones_own(strict_server):
    server = strict_server(["a", "b"])
    generate(engine_at(server, headers={"X-Title": "lesson", "Authorization": "Basic abc"}))
    assert server.requests[0].headers["x-title"] == "lesson"
    assert server.requests[0].headers["authorization"] == "Basic abc"


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ä", "sk a"])
def test_a_key_that_cannot_be_one(key):
    with pytest.raises(InvalidRequest) as caught:
        generate(OpenAIEngine(api_key=key))
    assert key not in str(caught.value)


# Addresses


@pytest.mark.parametrize("end", ["", "/", "/chat/completions", "/chat/completions/"])
def test_the_end_of_base_url_does_not_matter(strict_server, end):
    server = strict_server(["a"])
    generate(engine_at(server.url + end))
    assert server.requests[0].path == "/v1/chat/completions"


def test_a_query_stays(strict_server):
    server = strict_server(["a"], strict=False)
    with pytest.raises(EngineError):  # the test server knows no query; the path tells that it was sent
        generate(engine_at(server.url + "?api-version=1"))
    assert server.requests[0].path == "/v1/chat/completions?api-version=1"


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "ftp://x/v1", "http://", "http://x:port/v1", "  "])
def test_a_wrong_base_url_is_an_error_at_once(url):
    with pytest.raises(InvalidRequest, match="base_url"):
        OpenAIEngine(url)


def test_a_password_in_base_url_is_refused_and_not_repeated():
    with pytest.raises(InvalidRequest) as caught:
        OpenAIEngine("http://user:hunter22@127.0.0.1:8000/v1")
    assert "hunter22" not in str(caught.value)


def test_an_unknown_preset():
    with pytest.raises(InvalidRequest, match="did you mean 'ollama'") as caught:
        OpenAIEngine(preset="olama")
    assert caught.value.code == "unknown_engine"


# A client of one's own


def mock(handler):
    return httpx.AsyncClient(transport=httpx.MockTransport(handler))


def completion_of(text):
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def test_an_injected_client_is_used_and_stays_open():
    seen = []

    def handler(request):
        seen.append(request)
        return httpx.Response(200, json=completion_of("mocked"))

    client = mock(handler)
    engine = OpenAIEngine("https://models.example/v1", KEY, http_client=client)
    assert generate(engine).message["content"] == "mocked"
    assert generate(engine).message["content"] == "mocked"
    assert not client.is_closed
    assert str(seen[0].url) == "https://models.example/v1/chat/completions"
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(seen[0].content)["messages"] == [{"role": "user", "content": "Hi"}]


def test_an_injected_client_streams():
    events = [
        {"choices": [{"delta": {"content": "Hel"}}]},
        {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    ]
    text = "".join(f"data: {json.dumps(e)}\n\n" for e in events) + "data: [DONE]\n\n"
    client = mock(lambda r: httpx.Response(200, text=text, headers={"content-type": "text/event-stream"}))
    pieces, completion = stream(OpenAIEngine("http://x/v1", http_client=client))
    assert [p.text for p in pieces] == ["Hel", "lo"]
    assert (completion.message["content"], completion.usage) == ("Hello", Usage(4, 2))


def test_an_injected_client_that_would_follow_redirects_does_not():
    hosts = []

    def handler(request):
        hosts.append(request.url.host)
        return httpx.Response(307, headers={"location": "https://thief.example/v1/chat/completions"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(handler), follow_redirects=True)
    with pytest.raises(EngineError, match="redirects"):
        generate(OpenAIEngine("https://models.example/v1", KEY, http_client=client))
    assert hosts == ["models.example"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (httpx.ConnectError("All connection attempts failed"), "connection"),
        (httpx.ConnectError("[Errno -2] Name or service not known"), "connection"),
        (httpx.ConnectTimeout("slow"), "timeout"),
        (httpx.ReadTimeout("slow"), "timeout"),
        (httpx.ProxyError("no"), "connection"),
        (httpx.RemoteProtocolError("peer closed connection"), "connection"),
    ],
)
def test_what_an_injected_client_raises_is_an_engine_error(error, code):
    def handler(request):
        raise error

    with pytest.raises(EngineError, match=r"models\.example") as caught:
        generate(OpenAIEngine("https://models.example/v1", KEY, http_client=mock(handler), max_wait=0.01))
    assert caught.value.code == code


@pytest.mark.parametrize("client", [httpx.Client(), object(), "client"])
def test_a_client_that_cannot_be_used(client):
    with pytest.raises(InvalidRequest, match=r"valid: httpx\.AsyncClient"):
        OpenAIEngine(http_client=client)
    if isinstance(client, httpx.Client):
        client.close()


# Presets


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("http://127.0.0.1:1/v1", "openai"),
    ],
)
def test_the_preset_of_a_known_host(url, key):
    engine = OpenAIEngine(url)
    assert engine.name == engine.engine_id == key


def test_what_presets_change_on_the_wire(strict_server):
    """Mistral counts unasked and refuses ``stream_options``; OpenAI's models want ``max_completion_tokens``."""
    server = strict_server([chunks("a"), "b"])
    stream(engine_at(server, preset="mistral"))
    assert "stream_options" not in server.requests[0].body
    shown = OpenAIEngine().payload(ask(max_tokens=5))
    assert shown["max_completion_tokens"] == 5
    assert "max_tokens" not in shown


def test_images_are_an_option():
    assert OpenAIEngine().supports.images
    assert not OpenAIEngine("http://127.0.0.1:1/v1").supports.images
    assert OpenAIEngine("http://127.0.0.1:1/v1", images=True).supports.images


# Many at once, and stopping


def test_64_first_asks_at_once(strict_server):
    """Issue 2: the first ask ever may be one of the 64, and none waits for another."""
    server = StrictServer(lambda _: answer("a", delay=0.3)).start()
    engine = engine_at(server)

    async def all_at_once():
        clock = asyncio.get_running_loop().time
        began = clock()
        await asyncio.gather(*(engine.generate(ask()) for _ in range(64)))
        seconds = clock() - began
        await engine.close()
        return seconds

    try:
        assert asyncio.run(all_at_once()) < 5
        assert len(server.requests) == 64
    finally:
        server.close()


def test_a_cancelled_call_ends_at_once(strict_server):
    server = strict_server([raw(HANG), body({"choices": []})])

    async def cancel():
        engine = engine_at(server)
        call = asyncio.create_task(engine.generate(ask()))
        await asyncio.to_thread(server.wait_for_requests, 1)
        call.cancel()
        began = asyncio.get_running_loop().time()
        with pytest.raises(asyncio.CancelledError):
            await call
        await engine.close()
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(cancel()) < 0.5


def test_definitions_hold_no_engine_state():
    assert WEATHER.parameters["additionalProperties"] is False
