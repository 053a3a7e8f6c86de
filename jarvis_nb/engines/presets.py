"""The servers we know: where they listen, which variable holds their key, and what they do differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jarvis_nb.core.errors import InvalidRequest, close_names
from jarvis_nb.engines.base import Support
from jarvis_nb.engines.encode import OPENAI, Dialect


@dataclass(frozen=True, slots=True)
class Preset:
    """One chat-completions server, or a kind of one.

    Example:
        >>> PRESETS["ollama"].local, PRESETS["openai"].key_names
        (True, ('OPENAI_API_KEY',))
    """

    key: str
    """The engine key, such as ``ollama``."""
    title: str
    base_url: str
    key_names: tuple[str, ...] = ()
    """Environment variables that hold the key, best first. Empty: the server needs none."""
    url_names: tuple[str, ...] = ()
    """Environment variables that name another address; the key from the environment goes there too."""
    model: str = ""
    """What is asked for when nobody names a model. A local server with one model serves that one."""
    supports: Support = Support()
    dialect: Dialect = OPENAI
    max_tokens_key: str = "max_tokens"
    stream_usage: bool = True
    """Send ``stream_options``; a server that counts without being asked may refuse the key."""
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Sent with every request."""
    timeout: float = 120.0
    """Seconds without a byte before the server counts as hanging."""
    provider: str = ""
    """The provider whose prices apply; empty where nobody bills."""
    start: str = ""
    """How a local server is started, for the error that it does not answer."""

    @property
    def local(self) -> bool:
        """Whether it runs on the user's own machine."""
        return bool(self.start)


_IMAGES = Support(images=True)
_STRICT = Support(images=True, strict=True)


def _local(key: str, title: str, port: int, *, start: str, **options: Any) -> Preset:
    # A model that is loaded on the first request, or reads a long prompt on a CPU, is silent for minutes.
    return Preset(key, title, f"http://127.0.0.1:{port}/v1", start=start, timeout=600.0, **options)


PRESETS: dict[str, Preset] = {
    preset.key: preset
    for preset in (
        Preset(
            "openai",
            "OpenAI",
            "https://api.openai.com/v1",
            ("OPENAI_API_KEY",),
            ("OPENAI_BASE_URL",),
            model="gpt-5-mini",
            supports=_STRICT,
            max_tokens_key="max_completion_tokens",  # its reasoning models refuse max_tokens
            provider="openai",
        ),
        Preset(
            "anthropic",
            "Anthropic (OpenAI-compatible)",
            "https://api.anthropic.com/v1",
            ("ANTHROPIC_API_KEY",),
            model="claude-haiku-4-5",
            supports=_IMAGES,  # strict is ignored there
            provider="anthropic",
        ),
        Preset(
            "gemini",
            "Google Gemini (OpenAI-compatible)",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            model="gemini-2.5-flash",
            supports=_IMAGES,
            provider="google",
        ),
        Preset(
            "openrouter",
            "OpenRouter",
            "https://openrouter.ai/api/v1",
            ("OPENROUTER_API_KEY",),
            model="openai/gpt-5-mini",
            supports=_STRICT,
            provider="openrouter",
        ),
        Preset(
            "groq",
            "Groq",
            "https://api.groq.com/openai/v1",
            ("GROQ_API_KEY",),
            model="llama-3.3-70b-versatile",
            provider="groq",
        ),
        Preset(
            "together",
            "Together AI",
            "https://api.together.xyz/v1",
            ("TOGETHER_API_KEY",),
            model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
            provider="together",
        ),
        Preset(
            "mistral",
            "Mistral",
            "https://api.mistral.ai/v1",
            ("MISTRAL_API_KEY",),
            model="mistral-small-latest",
            supports=_IMAGES,
            dialect=Dialect(call_content="empty"),
            stream_usage=False,  # it counts unasked and refuses keys it does not know
            provider="mistral",
        ),
        Preset(
            "deepseek",
            "DeepSeek",
            "https://api.deepseek.com/v1",
            ("DEEPSEEK_API_KEY",),
            model="deepseek-chat",
            provider="deepseek",
        ),
        _local(
            "ollama",
            "Ollama",
            11434,
            start="ollama serve",
            url_names=("OLLAMA_HOST",),
            supports=Support(forced_choice=False),  # its OpenAI form ignores tool_choice
        ),
        _local(
            "llamacpp",
            "llama.cpp",
            8080,
            start="llama-server --jinja -m MODEL.gguf",
        ),
        _local("vllm", "vLLM", 8000, start="vllm serve MODEL --enable-auto-tool-choice --tool-call-parser …"),
        _local("lmstudio", "LM Studio", 1234, start="lms server start"),
        _local("sglang", "SGLang", 30000, start="python -m sglang.launch_server --model-path MODEL"),
    )
}
"""Every preset by its key: hosted ones first, in the order in which their keys are looked for."""

KEY_NAMES: frozenset[str] = frozenset(name for preset in PRESETS.values() for name in preset.key_names)
"""Every environment variable that may hold a key: what recordings are scrubbed of."""


def get_preset(key: str) -> Preset:
    """Return a preset.

    Raises:
        InvalidRequest: ``unknown_engine``, with the presets there are.
    """
    if key in PRESETS:
        return PRESETS[key]
    close = close_names(key, PRESETS)
    raise InvalidRequest(
        f"no engine preset is called {key!r}",
        code="unknown_engine",
        value=key,
        valid=PRESETS,
        hint=f"did you mean {close[0]!r}?" if close else "for any other server give base_url=",
    )


def key_from(preset: Preset, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the variable that holds the preset's key and the key, or None.

    Example:
        >>> key_from(PRESETS["gemini"], {"GOOGLE_API_KEY": "k"})
        ('GOOGLE_API_KEY', 'k')
    """
    for name in preset.key_names:
        value = environ.get(name, "").strip()
        if value:
            return name, value
    return None


def url_from(preset: Preset, environ: Mapping[str, str]) -> str:
    """Return the preset's address, or the one the environment gives it.

    Example:
        >>> url_from(PRESETS["ollama"], {"OLLAMA_HOST": "0.0.0.0:11500"})
        'http://127.0.0.1:11500/v1'
    """
    for name in preset.url_names:
        value = environ.get(name, "").strip()
        if value:
            return _ollama_url(value) if name == "OLLAMA_HOST" else value
    return preset.base_url


def _ollama_url(value: str) -> str:
    """OLLAMA_HOST is what the server binds to: maybe without scheme or port, maybe 0.0.0.0."""
    from urllib.parse import urlsplit

    parts = urlsplit(value if "://" in value else f"http://{value}")
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else parts.hostname  # noqa: S104 - replaced
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{parts.port or 11434}/v1"


def custom(preset: Preset) -> Preset:
    """Return the preset as it holds at an address of the user's own: an unknown server of that kind.

    Nobody's prices, keys or default model apply there, ``max_tokens`` is what every server knows, and whether
    the model takes images is not known.
    """
    return replace(
        preset,
        supports=replace(preset.supports, images=False),
        max_tokens_key="max_tokens",
        key_names=(),
        url_names=(),
        model="",
        provider="",
    )
