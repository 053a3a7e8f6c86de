"""Thinking apart from the answer, in a whole text and in one that streams in."""

from __future__ import annotations

from enum import Enum

from jarvis_nb.engines.base import Piece

OPEN, CLOSE = "<think>", "</think>"


def split_reasoning(text: str) -> tuple[str, str]:
    """Return ``(reasoning, answer)``: only a leading block is thinking, so text about tags survives.

    * ``<think>hmm</think>done``: the block is taken out.
    * ``hmm</think>done``: the opener stood in the prompt (DeepSeek-R1's and QwQ's templates end with it).
    * ``<think>hmm``: never closed, so the answer never began.
    * ``Use <think> and </think>.``: not leading, so it is the answer as it stands.

    Example:
        >>> split_reasoning("<think>hmm</think>done")
        ('hmm', 'done')
    """
    head = text.lstrip()
    if head.startswith(OPEN):
        inside, _, answer = head[len(OPEN) :].partition(CLOSE)
        return inside.strip(), answer.lstrip()
    before, closed, answer = text.partition(CLOSE)
    if closed and OPEN not in before:
        return before.strip(), answer.lstrip()
    return "", text


class _State(Enum):
    START = "nothing but blanks or a part of the opener so far"
    INSIDE = "in the block"
    AFTER = "the block is closed and only blanks have followed"
    PASSED = "in the answer: everything goes through"


class ReasoningFilter:
    """Splits a text that comes in pieces as :func:`split_reasoning` splits the whole.

    One case cannot be seen in time: a closing tag whose opener stood in the prompt. Its text has been shown
    by then; the completion at the end, which is what counts, has it right.

    Example:
        >>> split = ReasoningFilter()
        >>> [split.feed(t) for t in ("<thi", "nk>hmm</think>", "done")]
        [None, Piece(text='', reasoning='hmm'), Piece(text='done', reasoning='')]
    """

    __slots__ = ("_blank", "_held", "_state")

    def __init__(self) -> None:
        self._state = _State.START
        self._held = ""
        self._blank = True

    @property
    def passed(self) -> bool:
        """Whether the answer has begun, so that every further piece is answer text."""
        return self._state is _State.PASSED

    def feed(self, text: str) -> Piece | None:
        """Take the next piece; return what of it can be told apart now."""
        match self._state:
            case _State.PASSED:
                return Piece(text) if text else None
            case _State.START:
                return self._start(self._held + text)
            case _State.INSIDE:
                return self._inside(self._held + text)
            case _State.AFTER:
                return self._after("", text)

    def flush(self) -> Piece | None:
        """Return what was held back, once no piece follows."""
        held, self._held = self._held, ""
        if not held:
            return None
        return Piece(reasoning=held) if self._state is _State.INSIDE else Piece(held)

    def _start(self, text: str) -> Piece | None:
        head = text.lstrip()
        if OPEN.startswith(head):
            self._held = text
            if head != OPEN:
                return None
        if head.startswith(OPEN):
            self._state, self._held = _State.INSIDE, ""
            return self._inside(head[len(OPEN) :])
        self._state, self._held = _State.PASSED, ""
        return Piece(text)

    def _inside(self, text: str) -> Piece | None:
        if self._blank:
            text = text.lstrip()
            self._blank = not text
        inside, closed, rest = text.partition(CLOSE)
        if closed:
            self._state, self._held = _State.AFTER, ""
            return self._after(inside, rest)
        keep = _started(text, CLOSE)
        self._held = text[len(text) - keep :]
        shown = text[: len(text) - keep]
        return Piece(reasoning=shown) if shown else None

    def _after(self, reasoning: str, text: str) -> Piece | None:
        text = text.lstrip()
        if text:
            self._state = _State.PASSED
        return Piece(text, reasoning) if text or reasoning else None


def _started(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` begin ``tag``."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:n])), 0)
