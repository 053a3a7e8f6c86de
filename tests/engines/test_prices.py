"""What a call costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jarvis_nb.core.types import Usage
from jarvis_nb.engines.presets import PRESETS
from jarvis_nb.engines.prices import cost_usd

MILLION = Usage(1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("model", "provider", "dollars"),
    [
        ("gpt-4o", "openai", 12.5),
        ("gpt-4o-2024-08-06", "openai", 12.5),  # as the server names it
        ("claude-haiku-4-5", "anthropic", 6.0),
        ("qwen3:4b", "ollama", 0.0),
        ("anything", "local", 0.0),
        ("a model nobody sells", "openai", None),
        ("gpt-4o", "a provider nobody knows", None),
        ("gpt-4o", "scripted", None),
        ("gpt-4o", "", None),
        ("", "openai", None),
    ],
)
def test_cost(model, provider, dollars):
    assert cost_usd(model, provider, MILLION) == dollars


def test_tokens_count():
    assert cost_usd("gpt-4o", "openai", Usage()) == 0
    assert cost_usd("gpt-4o", "openai", Usage(2000, 0)) == pytest.approx(0.005)


@pytest.mark.parametrize("key", [key for key, preset in PRESETS.items() if not preset.local])
def test_the_default_model_of_every_hosted_preset_has_a_price(key):
    """So that a limit in dollars holds for ``Jarvis()`` with nothing but a key."""
    assert (cost_usd(PRESETS[key].model, key, MILLION) or 0) > 0


def test_nothing_is_imported_for_what_has_no_price():
    script = (
        "import sys; from jarvis_nb.engines.prices import cost_usd; from jarvis_nb.core.types import Usage;"
        "cost_usd('m', 'local', Usage(1, 1)); cost_usd('m', 'scripted', Usage(1, 1));"
        "assert 'genai_prices' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
