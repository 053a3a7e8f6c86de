"""Which engine is used, and why: by name, by configuration, by key, by a server that answers, embedded.

========  =================================================================================================
named     used as it is named, or its error is raised: never another one instead
config    ``engine`` or ``base_url`` of the configuration
key       a key in the environment (``OPENAI_API_KEY``, …), in the order of the presets
server    a local server that answers on its usual port
embedded  the model that runs in this process
========  =================================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jarvis_nb.core.errors import EngineError, InvalidRequest, close_names
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.registry import EngineRegistry
from jarvis_nb.engines.base import InferenceEngine
from jarvis_nb.engines.presets import PRESETS, Preset, key_from, url_from

if TYPE_CHECKING:
    from jarvis_nb.config import Config

Source = Literal["named", "config", "key", "server", "embedded"]


@dataclass(frozen=True, slots=True)
class Found:
    """One engine that was looked for."""

    key: str
    source: Source
    usable: bool
    reason: str
    """Why it can be used, or why it cannot."""
    base_url: str = ""
    models: tuple[str, ...] = ()
    """What a local server has; empty where it was not asked."""
    model: str = ""
    """What is asked for when nobody names a model."""
    used: bool = False
    """Whether it is the one that an ask takes."""

    @property
    def status(self) -> str:
        """``used``, ``usable`` or ``missing``."""
        return "used" if self.used else "usable" if self.usable else "missing"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "key": self.key,
            "status": self.status,
            "reason": self.reason,
            "model": self.model,
            "source": self.source,
            "base_url": self.base_url,
            "models": list(self.models),
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine to use, and why it is this one."""

    engine: InferenceEngine
    found: Found

    @property
    def reason(self) -> str:
        """Why this one."""
        return self.found.reason


def find_engine(
    key: str | None = None, config: Config | None = None, *, bus: EventBus | None = None
) -> Choice:
    """Return the engine to use.

    Args:
        key: An engine's key; it alone is tried then.
        config: Settings; ``engine``, ``base_url``, ``api_key``, ``model`` and ``timeout`` count here.
        bus: Told when the choice fell on what happened to be there.

    Raises:
        InvalidRequest: ``unknown_engine``: no engine has that key.
        EngineError: ``no_engine``: there is none; the message says what was looked for.

    Example:
        >>> find_engine("ollama").engine
        OpenAIEngine('ollama', base_url='http://127.0.0.1:11434/v1')
    """
    looked: list[Found] = []
    for found in _look(key or (config.engine if config else None), config):
        looked.append(found)
        if not found.usable:
            continue
        if bus is not None and found.source in ("server", "embedded"):
            bus.publish(
                EventType.WARNING, text=f"no engine was named: {found.key} is used, since {found.reason}"
            )
        return Choice(_open(found, config, bus), found)
    raise _nothing(looked)


def survey(config: Config | None = None) -> list[Found]:
    """Return every engine that was looked for: what an ask would use first, then what it could, then the rest."""
    everything = list(_look(config.engine if config else None, config, everything=True))
    first = next((found for found in everything if found.usable), None)
    marked = [_marked(found, used=found is first) for found in everything]
    return sorted(marked, key=lambda found: (not found.used, not found.usable))


def _marked(found: Found, *, used: bool) -> Found:
    from dataclasses import replace

    return replace(found, used=used)


def _look(key: str | None, config: Config | None, *, everything: bool = False) -> Iterator[Found]:
    """Look in the order of preference, no further than the caller asks."""
    configured = config.engine if config else None
    if key is not None:
        _check(key)
        source: Source = "config" if key == configured else "named"
        reason = "the configuration names it" if source == "config" else "it was asked for by name"
        address = _address(key, config)
        yield Found(key, source, usable=True, reason=reason, base_url=address, model=_model(key, config))
        if not everything:
            return
    elif config is not None and config.base_url:
        yield Found(
            "openai", "config", usable=True, reason="the configuration gives base_url", base_url=config.base_url,
            model=config.model or "",
        )  # fmt: skip
    yield from _keys()
    yield from _servers()
    yield _embedded()


def _keys() -> Iterator[Found]:
    for preset in PRESETS.values():
        if preset.local:
            continue
        held = key_from(preset, os.environ)
        reason = f"{held[0]} is set" if held else f"{' or '.join(preset.key_names)} is not set"
        yield Found(
            preset.key, "key", held is not None, reason, url_from(preset, os.environ), model=preset.model
        )


def _servers() -> Iterator[Found]:
    from jarvis_nb.core.bridge import HAS_THREADS
    from jarvis_nb.engines.probe import probe_all

    if not HAS_THREADS:  # a browser: nothing on the user's machine can be reached
        return
    presets = [preset for preset in PRESETS.values() if preset.local]
    urls = [url_from(preset, os.environ) for preset in presets]
    for preset, url, answer in zip(presets, urls, probe_all(urls), strict=True):
        known = PRESETS.get(answer.owner, preset)
        where = url.partition("://")[2].partition("/")[0]
        reason = f"{known.title} answers at {where}" if not answer.problem else f"{where}: {answer.problem}"
        model = answer.models[0] if len(answer.models) == 1 else ""
        yield Found(known.key, "server", not answer.problem, reason, url, answer.models, model)


def _embedded() -> Found:
    """Say whether the embedded model can be used; nothing is loaded."""
    if find_spec("xllamacpp") is None or find_spec("numpy") is None:
        why = "its extra is not installed: pip install 'jarvis-nb[local]'"
        return Found("local", "embedded", usable=False, reason=why)
    from jarvis_nb.engines.models import model_path

    given = os.environ.get("JARVIS_NB_GGUF")
    path = Path(given).expanduser() if given else model_path()
    if path.is_file():
        return Found("local", "embedded", usable=True, reason="its model is on this machine", model=path.stem)
    why = "JARVIS_NB_GGUF names no file" if given else "its model is not on this machine: jarvis models fetch"
    return Found("local", "embedded", usable=False, reason=why)


def _check(key: str) -> None:
    if key in PRESETS or EngineRegistry.contains(key):
        return
    valid = sorted({*PRESETS, *EngineRegistry.keys()})
    close = close_names(key, valid)
    raise InvalidRequest(
        f"no engine is called {key!r}",
        code="unknown_engine",
        value=key,
        valid=valid,
        hint=f"did you mean {close[0]!r}?" if close else "for any other server give OpenAIEngine(base_url=…)",
    )


def _address(key: str, config: Config | None) -> str:
    """Return where an engine is asked: the configuration's address belongs to the engine it names."""
    preset = PRESETS.get(key)
    if preset is None:
        return ""
    mine = config is not None and config.base_url and config.engine in (None, key)
    return str(config.base_url) if config is not None and mine else url_from(preset, os.environ)


def _model(key: str, config: Config | None) -> str:
    if config is not None and config.model:
        return config.model
    preset: Preset | None = PRESETS.get(key)
    return preset.model if preset is not None else ""


def _open(found: Found, config: Config | None, bus: EventBus | None) -> InferenceEngine:
    if found.key not in PRESETS:
        return EngineRegistry.create(found.key, **({"bus": bus} if found.key == "local" else {}))
    from jarvis_nb.engines.openai import OpenAIEngine

    named = found.source in ("named", "config")
    mine = config is not None and named and config.engine in (None, found.key)
    options: dict[str, Any] = {}
    if config is not None and config.timeout is not None:
        options["total_timeout"] = config.timeout
    return OpenAIEngine(
        None if found.base_url == url_from(PRESETS[found.key], os.environ) else found.base_url,
        config.api_key if config is not None and mine else None,
        preset=None if found.key == "openai" else found.key,
        model=found.model if found.source == "server" else "",
        **options,
    )


def _nothing(looked: list[Found]) -> EngineError:
    from jarvis_nb.core.bridge import HAS_THREADS

    if not HAS_THREADS:
        return EngineError(
            "no engine was found: in a page there are no keys, no local servers and no embedded model",
            code="no_engine",
            hint="give engine=ScriptedEngine([…]), or OpenAIEngine(base_url=…, api_key=…) for a server with CORS",
        )
    keys = ", ".join(name for p in PRESETS.values() for name in p.key_names[:1])
    servers = "; ".join(f"{PRESETS[f.key].title} {f.reason}" for f in looked if f.source == "server")
    embedded = next((f.reason for f in looked if f.source == "embedded"), "")
    return EngineError(
        f"no engine was found: no key is set ({keys}); no local server can be used ({servers}); "
        f"the embedded model: {embedded}",
        code="no_engine",
        hint="set a key, start Ollama, or: pip install 'jarvis-nb[local]' && jarvis models fetch",
    )
