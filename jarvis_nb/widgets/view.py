"""What every live view is: a plain object that becomes a widget when it is shown to a person.

The widget gets numbered delta messages and, at the end and on request, one snapshot. A browser that missed a
message sees the gap in the numbers and asks for a snapshot. Without a front end the view is its static form.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from jarvis_nb.run.frontend import live_kernel

log = logging.getLogger("jarvis_nb.widgets")

HERE = Path(__file__).parent
RESNAP_SECONDS = 0.5
"""Until a browser said hello, the snapshot is written again, at most this often and ever more rarely."""


class View(ABC):
    """The base of every live view."""

    parts: ClassVar[tuple[str, ...]] = ()
    """The script files it is made of, besides ``shared``."""

    def __init__(self) -> None:
        self._model: Any = None
        self._seq = 0
        self._lock = RLock()
        self.heard = False
        """Whether a browser runs the script."""
        self._next_snapshot = 0.0
        self._pause = RESNAP_SECONDS

    # What a view says of itself.

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the whole state as JSON-ready data, by the names the script uses."""

    @abstractmethod
    def static(self) -> dict[str, str]:
        """Return the state as text and static HTML."""

    def receive(self, message: Mapping[str, Any]) -> None:  # noqa: B027 - many views only show
        """Act on what a person did. What is raised here is logged: a front end's message is untrusted."""

    # The wire.

    @property
    def widget(self) -> Any:
        """The widget itself, made now: for ``mo.ui.anywidget(view.widget)`` and for layouts of ipywidgets."""
        with self._lock:
            if self._model is None:
                self._model = _model_class(type(self))(snapshot=self._snapshot())
                self._model.on_msg(self._on_message)
                self._next_snapshot = time.monotonic() + self._pause
            return self._model

    def _snapshot(self) -> dict[str, Any]:
        return {"seq": self._seq, "state": self.state()}

    def send(self, changes: list[dict[str, Any]]) -> None:
        """Send changes as one numbered message, in order on whatever thread."""
        with self._lock:
            self._seq += 1
            if self._model is None:
                return
            self._model.send({"op": "delta", "seq": self._seq, "changes": changes})
            now = time.monotonic()
            if not self.heard and now > self._next_snapshot:  # in a blocking cell a hello cannot be heard
                self._pause *= 2
                self._next_snapshot = now + self._pause
                self._model.snapshot = self._snapshot()

    def commit(self) -> None:
        """Write the snapshot: for a second view, a page that reloads, a message that was dropped."""
        with self._lock:
            if self._model is not None:
                self._seq += 1
                self._model.snapshot = self._snapshot()

    def _on_message(self, _: Any, message: Any, __: Any) -> None:
        try:
            match message:
                case {"op": "hello" | "resync", **rest}:
                    with self._lock:
                        self.heard = True
                        if rest.get("have") != self._seq:
                            self._model.send({"op": "all", "snapshot": self._snapshot()})
                    self.receive(message)
                case {"op": str(), **_rest}:
                    self.receive(message)
                case _:
                    log.warning("a message of a front end is no message: %.100r", message)
        except Exception:
            log.exception("a message of a front end failed: %.100r", message)

    def close(self) -> None:
        """Take the widget out of the kernel and of every page."""
        with self._lock:
            model, self._model = self._model, None
        if model is not None:
            model.close()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002 - IPython's signature
        return self.bundle() if live_kernel() is not None else self.static()

    def bundle(self) -> dict[str, Any]:
        """Return the widget's MIME bundle, with the static form for whoever cannot show widgets."""
        shown: Any = self.widget._repr_mimebundle_()
        data = shown[0] if isinstance(shown, tuple) else shown
        return {**data, **self.static()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


_classes: dict[type[View], Any] = {}


def _model_class(view: type[View]) -> Any:
    """Return the anywidget class of a view: made once, and not before somebody looks."""
    if view not in _classes:
        import anywidget
        import traitlets

        body = {
            "_esm": script(view),
            "_css": style(view),
            "snapshot": traitlets.Dict().tag(sync=True),
            "__module__": view.__module__,
        }
        _classes[view] = type(f"{view.__name__}Model", (anywidget.AnyWidget,), body)
    return _classes[view]


def script(view: type[View]) -> str:
    """Return a view's script: its files one after the other, then the export that anywidget wants."""
    return _join(("shared", *view.parts), ".js") + f"\nexport default serve({view.parts[-1]});\n"


def style(view: type[View]) -> str:
    """Return a view's style sheet."""
    return _join(("shared", *view.parts), ".css")


def _join(names: tuple[str, ...], ending: str) -> str:
    files = [HERE / f"{name}{ending}" for name in names]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())
