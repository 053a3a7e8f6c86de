"""Pieces of a streamed answer joined to the message that a plain request would have brought."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jarvis_nb.core.errors import EngineError
from jarvis_nb.core.types import JSON, Repair, Usage, dumps
from jarvis_nb.engines.base import Completion, Piece
from jarvis_nb.engines.calls import CallJoiner
from jarvis_nb.engines.content import read_content, read_reasoning
from jarvis_nb.engines.reasoning import ReasoningFilter


class StreamBroken(EngineError):  # noqa: N818 - the code's own words
    """A stream that broke off, or ended while a call was open.

    Args:
        partial: What came, joined. None of its calls may run: give it to
            :func:`~jarvis_nb.engines.wire.normalise` with ``broken=True``.
    """

    code = "stream_broken"

    def __init__(self, message: str, *, partial: Completion, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.partial = partial


def assemble(pieces: Iterable[Any]) -> Completion:
    """Join the chunks of one stream (``chat.completion.chunk`` objects).

    Raises:
        StreamBroken: The stream broke (``pieces`` raised), or ended while a call was open.
        EngineError: ``bad_response``: no chunk held an answer; the message shows what came.

    Example:
        >>> delta = lambda **d: {"choices": [{"delta": d}]}
        >>> assemble([delta(content="Hel"), delta(content="lo")]).message
        {'role': 'assistant', 'content': 'Hello'}
    """
    joining = Assembler()
    try:
        for piece in pieces:
            joining.add(piece)
    except EngineError:
        raise
    except Exception as error:
        return joining.finish(error)
    return joining.finish()


class Assembler:
    """Joins one stream while it comes.

    Example:
        >>> joining = Assembler()
        >>> joining.add({"choices": [{"delta": {"content": "Hi"}, "finish_reason": None}]})
        Piece(text='Hi', reasoning='')
        >>> joining.add({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        >>> joining.finish().finish_reason
        'stop'
    """

    __slots__ = (
        "_calls",
        "_filter",
        "_finish_reason",
        "_function",
        "_late",
        "_model",
        "_odd",
        "_plain",
        "_reasoning",
        "_refusal",
        "_started",
        "_text",
        "_usage",
    )

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._function = CallJoiner()  # the form before tool_calls: one call, without index and id
        self._calls = CallJoiner()
        self._filter = ReasoningFilter()
        self._plain = False  # the answer has begun and not ended: a content delta is answer text as it stands
        self._started = False
        self._finish_reason: str | None = None
        self._usage = Usage()
        self._model = ""
        self._late = 0
        self._odd: Any = None

    @property
    def started(self) -> bool:
        """Whether anything of the answer has come: a request may only be made again before."""
        return self._started

    def add(self, chunk: Any) -> Piece | None:
        """Take the next chunk; return what people can watch of it.

        Raises:
            StreamBroken: The chunk is the server's error, after a part of the answer.
            EngineError: ``bad_response``: it is the server's error, before anything came.
        """
        try:  # nearly every chunk of a long answer is this one case
            choice = chunk["choices"][0]
            delta = choice["delta"]
            if self._plain and not choice.get("finish_reason") and (len(delta) == 1 or _only_text(delta)):
                text = delta["content"]
                if text.__class__ is str and text:
                    self._text.append(text)
                    return Piece(text)
        except (KeyError, IndexError, TypeError):
            return self._add(chunk)
        return self._add(chunk)

    def finish(self, broken: BaseException | None = None) -> Completion:
        """Return the whole answer, once the stream has ended.

        Args:
            broken: What broke the connection, if it did. After the finish reason it no longer matters.

        Raises:
            StreamBroken: The stream broke, or ended while a call was open.
            EngineError: ``stream_broken`` or ``bad_response``: it broke, or ended, before any answer came.
        """
        completion = self._completion()
        if self._finish_reason is not None:
            return completion
        if not self._started:
            raise self._nothing(broken) from broken
        if broken is not None:
            raise StreamBroken(f"the stream broke off: {_reason(broken)}", partial=completion) from broken
        if self._calls or self._function:
            raise StreamBroken("the stream ended while a call was open", partial=completion)
        completion.repairs.append(
            Repair("no_finish_reason", "the stream ended without a finish_reason: its text is the answer")
        )
        return completion

    def _add(self, chunk: Any) -> Piece | None:
        if not isinstance(chunk, dict):
            self._odd = chunk
            return None
        if chunk.get("error"):
            self._fail(chunk["error"])
        self._model = self._model or str(chunk.get("model") or "")
        if isinstance(chunk.get("usage"), dict):
            self._usage = Usage.from_openai(chunk["usage"])
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            if choices != []:  # the usage chunk has none
                self._odd = chunk
            return None
        return self._choice(choice)

    def _choice(self, choice: JSON) -> Piece | None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            whole = choice.get("message")  # a server that streams one whole message
            delta = whole if isinstance(whole, dict) and not self._started else {}
        if self._finish_reason is not None:
            self._late += any(delta.get(key) for key in ("content", "tool_calls", "function_call"))
            return None
        self._started = True
        piece = self._delta(delta)
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._finish_reason = reason
            piece = _joined(piece, self._filter.flush())
        self._plain = self._finish_reason is None and self._filter.passed
        return piece

    def _delta(self, delta: JSON) -> Piece | None:
        content = read_content(delta.get("content"))
        reasoning = read_reasoning(delta) or content.reasoning
        piece = None
        if content.text:
            self._text.append(content.text)
            piece = self._filter.feed(content.text)
        if reasoning:
            self._reasoning.append(reasoning)
            piece = _joined(Piece(reasoning=reasoning), piece)
        if isinstance(delta.get("refusal"), str):
            self._refusal.append(delta["refusal"])
        entries = delta.get("tool_calls")
        if entries:
            for entry in entries if isinstance(entries, list) else [entries]:
                self._calls.add(entry)
        if delta.get("function_call"):
            self._function.add({"index": 0, "function": delta["function_call"]})
        return piece

    def _completion(self) -> Completion:
        message: JSON = {"role": "assistant", "content": "".join(self._text) or None}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if any(self._refusal):
            message["refusal"] = "".join(self._refusal)
        if self._calls:
            message["tool_calls"] = self._calls.joined()
        if self._function:
            message["function_call"] = self._function.joined()[0]["function"]
        repairs = [*self._calls.repairs]
        if self._late:
            events = "event" if self._late == 1 else "events"
            repairs.append(Repair("after_end", f"{self._late} {events} after the finish_reason: ignored"))
        return Completion(message, self._finish_reason, self._usage, self._model, repairs)

    def _nothing(self, broken: BaseException | None) -> EngineError:
        if broken is not None:
            return EngineError(
                f"the stream broke off before an answer came: {_reason(broken)}", code="stream_broken"
            )
        received = "nothing" if self._odd is None else f"{self._odd!r:.300}"
        return EngineError(
            f"the stream held no choices; received: {received}", code="bad_response", value=self._odd
        )

    def _fail(self, error: Any) -> None:
        words = error.get("message") if isinstance(error, dict) else error
        said = words if isinstance(words, str) else dumps(error)
        if self._finish_reason is not None:
            return
        if self._started:
            raise StreamBroken(f"the server broke off the stream: {said:.1000}", partial=self._completion())
        raise EngineError(
            f"the server answered with an error: {said:.1000}", code="bad_response", value=error
        )


def _only_text(delta: JSON) -> bool:
    """Whether nothing but text is in a delta (Ollama repeats the role, SGLang sends nulls, in every one)."""
    for key, value in delta.items():  # noqa: SIM110 - a generator takes twice as long, on every piece
        if value and key not in ("content", "role"):
            return False
    return True


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _joined(first: Piece | None, second: Piece | None) -> Piece | None:
    if first is None or second is None:
        return first or second
    return Piece(first.text + second.text, first.reasoning + second.reasoning)
