"""Settings: a TOML file, then the environment, then arguments, each stronger than the one before."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any

from jarvis_nb.core.errors import InvalidRequest, close_names

PREFIX = "JARVIS_NB_"
NOT_SETTINGS = {"CONFIG", "DATA", "GGUF"}
"""Variables with our prefix that name files and folders, not settings."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a ``Jarvis`` starts from. Every key may stand in the file, or in the environment as ``JARVIS_NB_KEY``.

    Example:
        >>> load_config({"engine": "ollama", "model": "qwen3:8b"}).model
        'qwen3:8b'
    """

    engine: str | None = None
    """An engine key: ``ollama``, ``openai``, ``local``, …"""
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    agent: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    """Seconds one model call may take."""
    memory: str | None = None
    """A memory key: ``sqlite``, ``hybrid``, ``postgres``."""
    memory_path: str | None = None
    """A file, ``:memory:``, or a database's address."""
    context_top_k: int = 5
    """Memory hits that an ask may carry."""
    context_tokens: int = 1000
    """Tokens of memory that an ask may carry."""
    limits: dict[str, int | float | None] = field(default_factory=dict[str, int | float | None])
    secrets: dict[str, str] = field(default_factory=dict[str, str], repr=False)


def config_path() -> Path:
    """Return where the file is looked for: ``JARVIS_NB_CONFIG``, else ``config.toml`` in the user's folder."""
    given = os.environ.get(PREFIX + "CONFIG")
    if given:
        return Path(given).expanduser()
    if sys.platform == "linux" and "ANDROID_ROOT" not in os.environ:
        # What platformdirs says here, without importing it for every Jarvis: seven modules, 4 ms.
        base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        folder = (base if base.is_absolute() else Path.home() / ".config") / "jarvis_nb"
    else:
        from platformdirs import user_config_path

        folder = user_config_path("jarvis_nb", appauthor=False)
    return folder / "config.toml"


def load_config(given: Mapping[str, Any] | Config | str | os.PathLike[str] | None = None) -> Config:
    """Return the settings.

    Args:
        given: A mapping stronger than file and environment; a path to a file used instead of the user's;
            or a finished ``Config``, taken as it is.

    Raises:
        InvalidRequest: ``invalid_config``: names the wrong key or the value of a wrong type, and where it stands.
    """
    if isinstance(given, Config):
        return given
    data: dict[str, Any] = {}
    if given is None or isinstance(given, Mapping):
        data |= _from_file(config_path(), required=PREFIX + "CONFIG" in os.environ)
    elif isinstance(given, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's word
        data |= _from_file(Path(given), required=True)
    else:
        raise InvalidRequest(
            f"config is {given!r:.100}",
            code="invalid_config",
            value=given,
            hint="give a mapping of settings, or the path of a TOML file",
        )
    data |= _from_environment()
    if isinstance(given, Mapping):
        data |= _known(given, "config=")
    return _checked(data) if data else Config()


def _from_file(path: Path, *, required: bool) -> dict[str, Any]:
    if not required and not path.is_file():
        return {}
    import tomllib

    try:
        with path.open("rb") as file:
            return _known(tomllib.load(file), str(path))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(
            f"cannot read the config file {path}: {error}", code="invalid_config", value=str(path)
        ) from error


def _from_environment() -> dict[str, Any]:
    found = {
        name.removeprefix(PREFIX): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in NOT_SETTINGS
    }
    data = _known({name.lower(): value for name, value in found.items()}, "the environment (JARVIS_NB_…)")
    for key in ("limits", "secrets"):
        if key in data:
            try:
                data[key] = json.loads(data[key])
            except ValueError:
                raise InvalidRequest(
                    f"{PREFIX}{key.upper()} is not JSON", code="invalid_config", value=key
                ) from None
    return data


def _known(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    names = [f.name for f in fields(Config)]
    for key in data:
        if key not in names:
            close = close_names(str(key), names)
            raise InvalidRequest(
                f"{where} has the unknown key {key!r}",
                code="invalid_config",
                value=key,
                valid=names,
                hint=f"did you mean {close[0]!r}?" if close else None,
            )
    return dict(data)


def _checked(data: dict[str, Any]) -> Config:
    from pydantic import TypeAdapter, ValidationError

    try:
        config = TypeAdapter(Config).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(
            f"the setting {key!r} is wrong: {first['msg']}", code="invalid_config", value=key
        ) from None
    for key, (least, most) in _RANGES.items():
        value = getattr(config, key)
        if value is not None and not least <= value <= most:  # NaN is not, either
            above = "or more" if most == inf else f"to {most:g}"
            raise InvalidRequest(
                f"the setting {key!r} is {value!r}",
                code="invalid_config",
                value=value,
                hint=f"give {least:g} {above}",
            )
    return config


_RANGES = {
    "temperature": (0, 2),
    "max_tokens": (1, inf),
    "timeout": (0, inf),
    "context_top_k": (0, inf),
    "context_tokens": (0, inf),
}
