"""The one hook between an object and its picture: whatever shows itself in a notebook inherits it."""

from __future__ import annotations


class Pictured:
    """Shows itself in notebooks, by the view that :mod:`jarvis_nb.display` has for its type."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002 - IPython's signature
        from jarvis_nb.display import bundle

        return bundle(self)
