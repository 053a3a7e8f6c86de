"""Server-sent events: bytes in, the ``data`` payloads out."""

from __future__ import annotations

DONE = b"[DONE]"


class EventDecoder:
    r"""Splits a stream of bytes into the payloads of its ``data:`` lines, whatever the blocks' borders.

    Each ``data:`` line is one payload: chat-completions servers put one JSON object on a line, and some
    leave out the blank line between events. Comments (keep-alives), ``event:`` and ``id:`` lines are skipped.

    Example:
        >>> decoder = EventDecoder()
        >>> decoder.feed(b': ping\r\n\r\ndata: {"a"'), decoder.feed(b':1}\r\n\r\ndata:[DONE]\n\n')
        ([], [b'{"a":1}', b'[DONE]'])
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, block: bytes) -> list[bytes]:
        """Take the next bytes; return the payloads that are complete with them."""
        head, newline, tail = block.rpartition(b"\n")
        if not newline:  # a line that comes in many blocks is joined once, not once a block
            self._rest.append(block)
            return []
        if self._rest:
            head = b"".join((*self._rest, head))
        self._rest = [tail] if tail else []
        return [line[5:].strip() for line in head.split(b"\n") if line.startswith(b"data:")]

    def finish(self) -> list[bytes]:
        """Return the payload of a last line without an end, if there is one."""
        return self.feed(b"\n")
