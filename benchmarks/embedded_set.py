"""Writes the development set of the embedded model: ``python benchmarks/embedded_set.py``.

Every question is a template filled with values drawn from a fixed seed, and its expected arguments follow from
the same values, so nothing was picked by how a model did on it. None of the questions is an example of a tool.
The five built-in tools come with their ten examples; the other tools have none, as a user's first functions.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "data" / "embedded.json"
SEED = 20260101
EACH = 3
"""Questions a template."""

Template = tuple[str, str, dict[str, str]]
"""Tool, question, arguments; an argument that begins with = is an expression whose value is compared."""

CITIES = ["Oslo", "Lima", "Nairobi", "Toronto", "Hanoi", "Porto"]
TOPICS = [
    "parental leave",
    "the login bug",
    "solar panels",
    "travel costs",
    "the release plan",
    "data retention",
]
FILES = [
    "report.txt",
    "src/app.py",
    "docs/setup.md",
    "config/prod.yaml",
    "/var/log/sys.log",
    "data/items.csv",
]
WORDS = ["hello", "thank you", "good night", "where is the station", "I am tired", "see you tomorrow"]
LANGUAGES = ["French", "German", "Spanish", "Italian"]
NAMES = ["Maria", "Tom", "Aisha", "Kenji", "Lena", "Omar"]
MONEY = ["USD", "EUR", "GBP", "JPY"]
THINGS = ["the sea", "autumn", "a lost key", "an old bridge", "morning coffee", "the moon"]

TEMPLATES: list[Template] = [
    ("calculator", "What is {a}% of {b}?", {"expression": "={a}*{b}/100"}),
    ("calculator", "How much is {a} percent of {b}?", {"expression": "={a}*{b}/100"}),
    ("calculator", "What is {a} plus {b}?", {"expression": "={a}+{b}"}),
    ("calculator", "Subtract {a} from {b}.", {"expression": "={b}-{a}"}),
    ("calculator", "Multiply {a} by {c}.", {"expression": "={a}*{c}"}),
    ("calculator", "What is {b} divided by {c}?", {"expression": "={b}/{c}"}),
    ("calculator", "What is {c} to the power of {d}?", {"expression": "={c}**{d}"}),
    ("calculator", "What is the square root of {b}?", {"expression": "={b}**0.5"}),
    ("calculator", "Evaluate ({a} + {c}) * {d}", {"expression": "=({a}+{c})*{d}"}),
    ("calculator", "What is the area of a circle with radius {c}?", {"expression": "=3.141592653589793*{c}**2"}),
    ("calculator", "Add {a}, {b} and {c}.", {"expression": "={a}+{b}+{c}"}),
    ("calculator", "A box holds {a} eggs. How many eggs are in {c} boxes?", {"expression": "={a}*{c}"}),
    ("calculator", "{name} has {b} coins and gives away {a}. How many are left?", {"expression": "={b}-{a}"}),
    ("calculator", "A coat costs {b} dollars and is reduced by {a}%. What is the new price?",
     {"expression": "={b}*(100-{a})/100"}),
    ("think", "Think about {topic} before you answer.", {"thought": "{topic}"}),
    ("think", "Reason step by step about {topic}.", {"thought": "{topic}"}),
    ("think", "Write down your thoughts on {topic} first.", {"thought": "{topic}"}),
    ("retrieval", "What do my notes say about {topic}?", {"query": "{topic}"}),
    ("retrieval", "Search the documents for {topic}.", {"query": "{topic}"}),
    ("retrieval", "Find what was written on {topic}.", {"query": "{topic}"}),
    ("retrieval", "Give me the {d} best hits for {topic}.", {"query": "{topic}", "top_k": "{d}"}),
    ("llm", "Ask the model to write a poem about {thing}.", {"prompt": "poem about {thing}"}),
    ("llm", "Let the LLM explain {thing} to a child.", {"prompt": "explain {thing} to a child"}),
    ("llm", "Have the model tell a story about {thing}.", {"prompt": "story about {thing}"}),
    ("file_read", "Read {file}.", {"path": "{file}"}),
    ("file_read", "What is in {file}?", {"path": "{file}"}),
    ("file_read", "Show me the first {d} lines of {file}.", {"path": "{file}", "max_lines": "{d}"}),
    ("file_read", "Open the file {file}, please.", {"path": "{file}"}),
    ("get_weather", "What is the weather in {city}?", {"city": "{city}"}),
    ("get_weather", "Will it rain in {city} today?", {"city": "{city}"}),
    ("lookup_order", "Where is order {order}?", {"order_id": "{order}"}),
    ("lookup_order", "What is the status of my order {order}?", {"order_id": "{order}"}),
    ("convert_currency", "Convert {a} {money} to {other}.",
     {"amount": "{a}", "source": "{money}", "target": "{other}"}),
    ("convert_currency", "How many {other} do I get for {a} {money}?",
     {"amount": "{a}", "source": "{money}", "target": "{other}"}),
    ("send_email", "Send an email to {name} about {topic}.", {"to": "{name}", "subject": "{topic}"}),
    ("send_email", 'Write {name} a mail with the subject "{topic}".', {"to": "{name}", "subject": "{topic}"}),
    ("set_timer", "Set a timer for {c} minutes.", {"minutes": "{c}"}),
    ("set_timer", "Remind me in {c} minutes.", {"minutes": "{c}"}),
    ("translate", 'Translate "{words}" into {language}.', {"text": "{words}", "language": "{language}"}),
    ("translate", "How do you say '{words}' in {language}?", {"text": "{words}", "language": "{language}"}),
    ("", "Hello, I am {name}.", {}),
    ("", "Thanks, {name} is happy.", {}),
    ("", "Who are you?", {}),
    ("", "How are you today, my friend?", {}),
    ("", "Tell me a joke.", {}),
]  # fmt: skip


def text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "get_weather": ("Get the current weather of a city.", {"city": text("Name of the city")}),
    "lookup_order": ("Look up one order by its ID.", {"order_id": text("ID of the order")}),
    "convert_currency": (
        "Convert an amount of money from one currency to another.",
        {
            "amount": {"type": "number", "description": "Amount to convert"},
            "source": {"enum": MONEY, "description": "Currency of the amount"},
            "target": {"enum": MONEY, "description": "Currency to convert to"},
        },
    ),
    "send_email": (
        "Send an email to a person.",
        {"to": text("Who gets it"), "subject": text("Subject of the email")},
    ),
    "set_timer": (
        "Set a timer or reminder.",
        {"minutes": {"type": "integer", "description": "Minutes from now"}},
    ),
    "translate": (
        "Translate a text into another language.",
        {"text": text("The text to translate"), "language": text("Language to translate into")},
    ),
}


def draw(rng: random.Random) -> dict[str, Any]:
    money, other = rng.sample(MONEY, 2)
    return {
        "a": rng.randint(3, 95), "b": rng.randint(100, 2000), "c": rng.randint(2, 30), "d": rng.randint(2, 6),
        "name": rng.choice(NAMES), "topic": rng.choice(TOPICS), "thing": rng.choice(THINGS), "file": rng.choice(FILES),
        "city": rng.choice(CITIES), "order": f"{rng.choice(['ORD', 'A', 'PX'])}-{rng.randint(1, 9999)}",
        "money": money, "other": other, "words": rng.choice(WORDS), "language": rng.choice(LANGUAGES),
    }  # fmt: skip


def main() -> None:
    rng = random.Random(SEED)
    rows: list[dict[str, Any]] = []
    for tool, question, arguments in TEMPLATES:
        for _ in range(EACH if "{" in question else 1):
            values = draw(rng)
            filled = {name: value.format(**values) for name, value in arguments.items()}
            rows.append({"tool": tool, "question": question.format(**values), "arguments": filled})
    tools = [
        {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
            },
        }
        for name, (description, properties) in TOOLS.items()
    ]  # fmt: skip
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps({"tools": tools, "questions": rows}, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(rows)} questions in {TARGET}")


if __name__ == "__main__":
    main()
