"""What a model call costs, where that is known."""

from __future__ import annotations

from jarvis_nb.core.types import Usage
from jarvis_nb.engines.presets import PRESETS

FREE = frozenset({"local", *(key for key, preset in PRESETS.items() if preset.local)})
"""Engines that run on one's own machine: nobody bills."""
UNPRICED = frozenset({"", "scripted", "replay", "lazy"})
"""Engines without a provider: nothing is looked up."""


def cost_usd(model: str, provider: str, usage: Usage) -> float | None:
    """Return what tokens cost in US dollars, or None where no price is known.

    Prices come with genai-prices and are as old as its release.

    Args:
        model: The model as asked for, or as the server named it.
        provider: An engine key, or a provider's id in genai-prices, such as ``x-ai``.
        usage: Tokens.

    Example:
        >>> cost_usd("gpt-4o", "openai", Usage(1_000_000, 0))
        2.5
        >>> cost_usd("qwen3:4b", "ollama", Usage(1_000_000, 0))
        0.0
        >>> cost_usd("a model nobody sells", "openai", Usage(1, 1)) is None
        True
    """
    if provider in FREE:
        return 0.0
    if provider in UNPRICED or not model:
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    known = PRESETS.get(provider)
    tokens = Tokens(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
    try:
        price = calc_price(tokens, model_ref=model, provider_id=known.provider if known else provider)
    except LookupError:
        return None
    return float(price.total_price)
