"""Where an engine's requests go, with which key, and how errors speak of the place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.portable import Secret
from jarvis_nb.engines.failures import Host
from jarvis_nb.engines.presets import PRESETS, Preset, custom, get_preset, key_from
from jarvis_nb.engines.transport import Timeouts, Transport, make_transport

_SENSITIVE = frozenset({"authorization", "auth", "key", "apikey", "token", "secret", "cookie", "password"})
"""Words in a header's name that say that its value is a secret."""


class Link(NamedTuple):
    """What is fixed once the key is known."""

    transport: Transport
    host: Host
    chat_url: str
    models_url: str


class Hidden:
    """A value that no repr shows."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "***"


class Address(NamedTuple):
    """A base URL, taken apart.

    Example:
        >>> Address.read("http://127.0.0.1:8000/v1/?api-version=1")
        Address(base_url='http://127.0.0.1:8000/v1', query='?api-version=1')
    """

    base_url: str
    query: str = ""

    @property
    def host(self) -> str:
        """Host and port, as the URL has them."""
        return urlsplit(self.base_url).netloc

    @classmethod
    def read(cls, url: str) -> Address:
        """Take what a user gave as base URL.

        Raises:
            InvalidRequest: It is no http address, or holds a password.
        """
        parts = _split(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            hint = "give the whole address, such as http://127.0.0.1:8000/v1"
            raise InvalidRequest(f"base_url is {url!r:.200}", value=url, hint=hint)
        if parts.username or parts.password:
            raise InvalidRequest("base_url holds a user name or a password", hint="give the key as api_key=")
        path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
        return cls(f"{parts.scheme}://{parts.netloc}{path}", f"?{parts.query}" if parts.query else "")


def choose_preset(key: str | None, base_url: str | None) -> Preset:
    """Return the preset that holds for an address.

    Example:
        >>> choose_preset(None, "https://api.groq.com/openai/v1").key
        'groq'
        >>> choose_preset("vllm", "http://10.0.0.7:8000/v1").key_names  # nobody's key goes to an unknown host
        ()
    """
    if base_url is None:
        return get_preset(key or "openai")
    host = _split(base_url).netloc
    if key is None:
        hosted = (p for p in PRESETS.values() if not p.local and urlsplit(p.base_url).netloc == host)
        return next(hosted, None) or custom(PRESETS["openai"])
    preset = get_preset(key)
    return preset if urlsplit(preset.base_url).netloc == host else custom(preset)


def make_link(
    preset: Preset,
    address: Address,
    api_key: str | Secret | None,
    headers: Mapping[str, str],
    *,
    timeouts: Timeouts,
    client: Any = None,
) -> Link:
    """Find the key and return the way to the server.

    Raises:
        EngineError: ``no_key``: the server needs one, and the message says where it is looked for.
        InvalidRequest: The key cannot be one, or a :class:`Secret` is not set.
    """
    key, key_name = _find_key(preset, address, api_key, needed=not headers)
    sent = _headers(key, headers)
    secrets = [key, *(value for name, value in headers.items() if is_sensitive(name))]
    host = Host(
        address.host,
        address.base_url,
        key_name,
        bool(key) or len(secrets) > 1,
        preset.start,
        tuple(s for s in secrets if s),
        timeouts,
    )
    return Link(
        make_transport(sent, timeouts, address.base_url, client),
        host,
        f"{address.base_url}/chat/completions{address.query}",
        f"{address.base_url}/models{address.query}",
    )


def is_sensitive(header: str) -> bool:
    """Whether a header's value is a secret, by its name.

    Example:
        >>> is_sensitive("X-Api-Key"), is_sensitive("X-Title")
        (True, False)
    """
    return not _SENSITIVE.isdisjoint(header.lower().replace("_", "-").split("-"))


def _find_key(
    preset: Preset, address: Address, given: str | Secret | None, *, needed: bool
) -> tuple[str, str]:
    """Return the key, maybe empty, and the variable it may be set in."""
    key_name = preset.key_names[0] if preset.key_names else ""
    if isinstance(given, Secret):
        key_name, key = given.name, given.resolve()
    elif given is not None:
        key = given
    else:
        key_name, key = key_from(preset, os.environ) or (key_name, "")
    key = key.strip()
    if not all("!" <= character <= "~" for character in key):
        raise InvalidRequest("the API key holds characters that no key has", hint="was it pasted whole?")
    if not key and key_name and needed:
        names = " or ".join(preset.key_names) or key_name
        raise EngineError(
            f"no API key for {preset.title} ({address.host})",
            code="no_key",
            value=key_name,
            hint=f"set the environment variable {names}, or give api_key=",
        )
    return key, key_name


def _headers(key: str, given: Mapping[str, str]) -> dict[str, str]:
    from jarvis_nb import __version__

    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "user-agent": f"jarvis-nb/{__version__}",
    }
    if key:
        headers["authorization"] = f"Bearer {key}"
    headers.update({name.lower(): value for name, value in given.items()})
    return headers


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        _ = parts.port  # raises for a port that is no number
    except (ValueError, AttributeError) as error:
        raise InvalidRequest(f"base_url is {url!r:.200}: {error}", value=url) from None
    return parts
