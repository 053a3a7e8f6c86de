"""What a server's refusal means: one clear error, with a code, the host and the next step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import Message
from jarvis_nb.engines.base import Request
from jarvis_nb.engines.retry import STATUSES, PassingFailure, retry_after
from jarvis_nb.engines.transport import Timeouts, TransportError

SHORT_KEY = 8
"""Characters of a key below which it is cut out as a whole word only."""

SHOWN = 400
"""Characters of a server's words that an error shows."""

OVERFLOW_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
)

# Patterns are kept as text, which `re` compiles on first use: a run without a failure does not pay for them.

OVERFLOW = (
    r"(?i)maximum context length"  # OpenAI, vLLM, DeepSeek, OpenRouter, Mistral
    r"|context[ _](?:length|window|size)(?: has been)?[ _]exceeded"  # Groq, llama.cpp (500)
    r"|exceeds? (?:the )?(?:available |maximum |model'?s? )*context (?:size|length|window)"  # llama.cpp, Ollama
    r"|longer than the (?:maximum )?model(?:'s)?(?: maximum| context)? length"  # vLLM, SGLang
    r"|maximum prompt length is"  # xAI
    r"|prompt is too long"  # Anthropic
    r"|input token count .{0,40}exceeds"  # Gemini
    r"|reduce the length of the (?:messages|prompt|input)"  # Groq, OpenAI
    r"|context (?:the )?overflows"  # LM Studio
    r"|greater than the context length"  # LM Studio
    r"|inputs` tokens \+"  # Together, TGI
    r"|prompt contains \d+ tokens"  # Mistral
)
"""How servers word that a conversation does not fit the model."""

REFUSED_CHOICE = r"(?i)tool[_ ]choice|forces tool use"
"""How they word that a forced choice is not to be had: DeepSeek and Qwen while thinking, Anthropic, LM Studio."""

NO_MODEL = r"(?is)model.{0,200}(?:not found|does not exist|not exist|is not loaded)|no such model"
NO_TOOLS = r"(?i)does not support (?:tools|function)|requires --(?:jinja|enable-auto-tool-choice)"

_FAULTS = {
    "dns": ("its name is not known: {detail}", "check the address and the network"),
    "tls": ("no trusted TLS connection: {detail}", "set SSL_CERT_FILE for an authority of your own"),
    "proxy": ("the proxy does not work: {detail}", "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"),
    "reset": ("{detail} before it had answered", "try again; the server's log may say more"),
    "protocol": ("{detail}", "check the address and the port: this is not a chat-completions server"),
    "closed": ("{detail}", "ask again: it opens a new connection"),
}


class Host(NamedTuple):
    """A server as errors speak of it.

    Args:
        name: Host and port, such as ``127.0.0.1:8000``.
        base_url: Without credentials and query.
        key_name: The variable that its key is read from, if there is one.
        has_key: Whether a key was sent.
        start: The command that starts it, if it is a local server we know.
        secrets: What is cut out of every text.
        timeouts: How long it is waited for.
    """

    name: str
    base_url: str
    key_name: str = ""
    has_key: bool = False
    start: str = ""
    secrets: tuple[str, ...] = ()
    timeouts: Timeouts = Timeouts()

    def __repr__(self) -> str:
        return f"Host({self.name!r})"

    def clean(self, text: str) -> str:
        """Return a text without keys."""
        for secret in self.secrets:
            if len(secret) < SHORT_KEY:  # a stand-in such as "k" or "none": no word is broken where it occurs
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
            else:
                text = text.replace(secret, "***")
        return re.sub(BEARER, "***", text)


BEARER = r"\bsk-[A-Za-z0-9_-]{12,}|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}"
"""What looks like a key, whoever's it is."""


class Refusal(NamedTuple):
    """A server's refusal, read: what status, which words, which code of its own."""

    status: int
    words: str
    code: str = ""


def read_refusal(status: int, body: bytes) -> Refusal:
    """Read the body of a refusal in any of its shapes: OpenAI's, a string, FastAPI's detail, a list, HTML.

    A code of the body's own that is an HTTP status counts more than a 200 around it.

    Example:
        >>> read_refusal(400, b'{"error": {"message": "no", "code": "bad"}}')
        Refusal(status=400, words='no', code='bad')
        >>> read_refusal(200, b'{"error": {"message": "busy", "code": 503}}').status
        503
        >>> read_refusal(502, b"<html><title>502 Bad Gateway</title></html>").words
        '502 Bad Gateway'
    """
    text = body.decode(errors="replace").strip()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Refusal(status, _plain(text))
    while isinstance(data, list) and data:
        data = data[0]
    error: Any = data
    if isinstance(data, Mapping):
        error = next((data[key] for key in ("error", "detail", "message") if data.get(key)), data)
    if isinstance(error, list) and error:  # FastAPI: [{"loc": […], "msg": "…"}]
        return Refusal(status, "; ".join(_detail(entry) for entry in error[:5]))
    if not isinstance(error, Mapping):
        code = data.get("code") if isinstance(data, Mapping) else None
        return Refusal(_status(status, code), error if isinstance(error, str) else text, _code(code))
    words = error.get("message") or error.get("msg") or json.dumps(error, ensure_ascii=False)
    raw = error.get("metadata")  # OpenRouter puts the provider's own words there
    if isinstance(raw, Mapping) and isinstance(raw.get("raw"), str):
        words = f"{words}: {raw['raw']}"
    code = error.get("code")
    kind = error.get("type")
    return Refusal(_status(status, code), str(words), _code(code) or _code(kind))


def _status(status: int, code: Any) -> int:
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    return code if status == 200 and isinstance(code, int) and 400 <= code <= 599 else status  # noqa: PLR2004


def _code(code: Any) -> str:
    return code if isinstance(code, str) and not code.isdecimal() else ""


def _detail(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return str(entry)
    loc = entry.get("loc")
    where = ".".join(str(part) for part in loc) if isinstance(loc, list) else ""
    words = str(entry.get("msg") or entry)
    return f"{where}: {words}" if where else words


def _plain(text: str) -> str:
    """Return the words of a page that is no JSON: an HTML page's title, else its text."""
    if not text.lstrip().startswith("<"):
        return text
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return " ".join((title[1] if title else re.sub(r"<[^>]*>", " ", text)).split())


def refused(
    host: Host, request: Request, status: int, body: bytes, headers: Mapping[str, str]
) -> EngineError | PassingFailure:
    """Return the error for an answer that is no success, in a PassingFailure where it may pass."""
    if 300 <= status < 400:  # noqa: PLR2004
        return redirected(host, status, headers.get("location"))
    refusal = read_refusal(status, body)
    said = host.clean(refusal.words)[:SHOWN]
    status = refusal.status
    if refusal.code in OVERFLOW_CODES or re.search(OVERFLOW, refusal.words):
        return overflow(host, request.messages, said)
    if status in (400, 404, 405, 422, 500, 501) and re.search(REFUSED_CHOICE, refusal.words):
        forced = request.tool_choice not in (None, "auto")
        if forced and not re.search(NO_TOOLS, refusal.words):
            return EngineError(
                f"{host.name} refuses a forced tool choice: {said}",
                code="forced_choice_refused",
                value=request.tool_choice,
                hint="ask with requirement 'auto'",
            )
    error = _error(host, request, status, said, refusal)
    if status in STATUSES and refusal.code != "insufficient_quota":
        return PassingFailure(error, retry_after(headers))
    return error


def _error(host: Host, request: Request, status: int, said: str, refusal: Refusal) -> EngineError:
    answered = f"{host.name} answered {status}" if status != 200 else f"{host.name} answered with an error"  # noqa: PLR2004
    answered = f"{answered}: {said}" if said else answered
    if status in (401, 403):
        return EngineError(answered, code="http_error", value=status, hint=_key_hint(host))
    if refusal.code == "model_not_found" or (status in (400, 404) and re.search(NO_MODEL, refusal.words)):
        return EngineError(
            answered, code="no_model", value=request.model, hint="name one that the server has"
        )
    if status == 404:  # noqa: PLR2004
        hint = (
            f"base_url is {host.base_url}: it usually ends in /v1, and is what comes before /chat/completions"
        )
        return EngineError(answered, code="http_error", value=status, hint=hint)
    if status == 429:  # noqa: PLR2004
        quota = refusal.code == "insufficient_quota"
        hint = "check the account's plan and credit" if quota else "wait, or ask for less at once"
        return EngineError(answered, code="rate_limited", value=status, hint=hint)
    if re.search(NO_TOOLS, refusal.words):
        hint = "take a model that calls tools, or start the server with tool calling on"
        return EngineError(answered, code="http_error", value=status, hint=hint)
    code = "bad_response" if status == 200 else "http_error"  # noqa: PLR2004
    return EngineError(answered, code=code, value=status)


def _key_hint(host: Host) -> str:
    where = f"the environment variable {host.key_name}, or api_key=" if host.key_name else "api_key="
    return f"the key was not accepted: check {where}" if host.has_key else f"no key was sent: set {where}"


def redirected(host: Host, status: int, location: str | None) -> EngineError:
    """Return the error for a redirect, which is never followed: the key belongs to one host."""
    where = host.clean((location or "nowhere").partition("?")[0])[:SHOWN]
    return EngineError(
        f"{host.name} answered {status}: it redirects to {where}",
        code="http_error",
        value=status,
        hint="redirects are not followed, so that the key reaches no other host: give the final address as base_url",
    )


def unreadable(host: Host, what: str, received: str, hint: str | None = None) -> EngineError:
    """Return the error for an answer that is no chat completion."""
    shown = " ".join(host.clean(received[: SHOWN * 2]).split())[:SHOWN] or "nothing"
    return EngineError(f"{host.name} {what}; received: {shown}", code="bad_response", hint=hint)


def not_json(host: Host, body: bytes) -> EngineError:
    """Return the error for an answer that is no JSON: a web page, mostly."""
    text = body.decode(errors="replace").strip()
    if text.startswith("<"):
        hint = f"base_url is {host.base_url}: a web site answers there; an API's address usually ends in /v1"
        return unreadable(host, "answered with HTML, not JSON", _plain(text), hint)
    return unreadable(host, "did not answer with JSON", text)


def overdue(host: Host) -> EngineError:
    """Return the error for a call that took longer than it may as a whole."""
    words = f"{host.name} was not done within {host.timeouts.total:g} s"
    return EngineError(words, code="timeout", hint="total_timeout= sets this")


def unreachable(host: Host, error: TransportError) -> EngineError | PassingFailure:
    """Return the error for a request that failed below HTTP; a reset may pass."""
    connect, read = _within(host.timeouts.connect), _within(host.timeouts.read)
    if error.fault == "overdue":
        return overdue(host)
    if error.fault == "connect_timeout":
        return EngineError(
            f"{host.name} took no connection {connect}", code="timeout", hint=_start_hint(host)
        )
    if error.fault == "read_timeout":
        return EngineError(
            f"{host.name} sent nothing {read}",
            code="timeout",
            hint="it may still be loading or reading the prompt: timeout= waits longer",
        )
    if error.fault == "refused":
        return EngineError(
            f"nothing answers at {host.name}: {host.clean(error.detail)[:SHOWN]}",
            code="connection",
            hint=_start_hint(host),
        )
    words, hint = _FAULTS[error.fault]
    failure = EngineError(
        f"{host.name}: {words.format(detail=host.clean(error.detail)[:SHOWN])}", code="connection", hint=hint
    )
    return PassingFailure(failure) if error.fault == "reset" else failure


def _within(seconds: float | None) -> str:
    return "in time" if seconds is None else f"within {seconds:g} s"


def _start_hint(host: Host) -> str:
    check = f"check base_url ({host.base_url})"
    return f"start the server (`{host.start}`), or {check}" if host.start else f"is the server up? {check}"


def overflow(host: Host, messages: Sequence[Message], said: str) -> EngineError:
    """Return the error for a conversation that does not fit, naming the messages that fill it."""
    big = biggest(messages)
    listed = ", ".join(f"{m['role']} message {m['index']} ({m['characters']:,} characters)" for m in big)
    return EngineError(
        f"the conversation does not fit the model's context at {host.name}: {said}. The biggest: {listed or 'none'}",
        code="context_overflow",
        value=big,
        hint="shorten or drop these, or take a model with more context",
    )


def biggest(messages: Iterable[Message], most: int = 3) -> list[dict[str, Any]]:
    """Return the biggest messages, biggest first.

    Example:
        >>> from jarvis_nb.core.types import Role
        >>> biggest([Message(Role.USER, "hello"), Message(Role.TOOL, "x" * 20, tool_call_id="c")], most=1)
        [{'role': 'tool', 'index': 1, 'characters': 20}]
    """
    sizes = sorted(((-_size(m), i, m) for i, m in enumerate(messages)), key=lambda entry: entry[:2])
    return [{"role": str(m.role), "index": index, "characters": -size} for size, index, m in sizes[:most]]


def _size(message: Message) -> int:
    calls = sum(len(str(call.arguments)) for call in message.tool_calls or ())
    if not isinstance(message.content, list):
        return len(message.text) + calls
    return calls + sum(len(str(part.get("text") or json.dumps(part))) for part in message.content)
