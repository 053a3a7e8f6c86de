"""``%load_ext jarvis_nb``: ask in a cell of its own, and look at what there is.

========================  ==========================================================
``%%ask [options]``       the cell is the question; the cell's value is the reply
``%jarvis tools``         the tools a name stands for, and those of the Jarvis
``%jarvis engines``       the engines that were looked for, and why each is usable
``%jarvis memory``        what the memory holds
========================  ==========================================================
"""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from jarvis_nb.core.errors import InvalidRequest

if TYPE_CHECKING:
    from jarvis_nb.display.lists import Listing
    from jarvis_nb.jarvis import Jarvis
    from jarvis_nb.reply import Reply
    from jarvis_nb.toolsets.toolset import Toolset

VIEWS = ("tools", "engines", "memory")
WORDS = ("auto", "required", "disabled")


class _Parser(ArgumentParser):
    """Raises where argparse would end the process, that is the kernel."""

    def error(self, message: str) -> NoReturn:
        raise InvalidRequest(message, code="invalid_magic", hint=self.format_usage().strip())


def _ask_parser() -> ArgumentParser:
    parser = _Parser(prog="%%ask", add_help=False, allow_abbrev=False)
    parser.add_argument("-t", "--tools", default=None, help="names, or variables, with commas between")
    parser.add_argument("-a", "--agent", default=None, help="simple or orchestrator")
    parser.add_argument("-p", "--policy", default=None, help="auto, required, disabled, a variable, or JSON")
    parser.add_argument("-e", "--engine", default=None, help="a key such as ollama, or a variable")
    parser.add_argument("-m", "--model", default=None)
    parser.add_argument("-j", "--jarvis", default=None, help="the variable that holds the Jarvis")
    parser.add_argument("-o", "--as", dest="name", default=None, help="the variable that gets the reply")
    return parser


def parse_ask(line: str) -> Namespace:
    """Read the options of ``%%ask``.

    Raises:
        InvalidRequest: ``invalid_magic``: an unknown option, with the usage.

    Example:
        >>> parse_ask("--tools calculator,think --policy required").tools
        'calculator,think'
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InvalidRequest(f"%%ask {line}: {error}", code="invalid_magic", value=line) from error
    return _ask_parser().parse_args(words)


def tools_of(text: str | None, variables: Mapping[str, Any]) -> list[Any] | None:
    """Return the tools a text names: a variable of the notebook, else a registered name.

    Example:
        >>> tools_of("calculator, mine", {"mine": len})
        ['calculator', <built-in function len>]
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    found: list[Any] = []
    for name in names:
        value = variables.get(name, name)
        found += list(value) if isinstance(value, list | tuple) else [value]
    return found


def policy_of(text: str | None, variables: Mapping[str, Any]) -> Any:
    """Return the policy a text names: a requirement, a variable, or JSON.

    Raises:
        InvalidRequest: ``invalid_policy``: it is none of them.

    Example:
        >>> policy_of('{"hidden": ["think"]}', {}), policy_of("required", {})
        ({'hidden': ['think']}, {'requirement': 'required'})
    """
    if text is None:
        return None
    if text in WORDS:
        return {"requirement": text}
    if text in variables:
        return variables[text]
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequest(
            f"no policy {text!r}", code="invalid_policy", value=text, valid=[*WORDS, "a variable", "JSON"]
        ) from error


class JarvisMagics:
    """The magics of one shell, on its variables."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables
        self._own: dict[str, Jarvis] = {}

    def ask(self, line: str, cell: str) -> Reply:
        """Ask the cell's text."""
        options = parse_ask(line)
        reply = self._jarvis(options.jarvis, options.engine).ask_full(
            cell.strip(),
            tools=tools_of(options.tools, self.variables),
            agent=options.agent,
            tool_policy=policy_of(options.policy, self.variables),
            model=options.model,
        )
        if options.name:
            self.variables[options.name] = reply
        return reply

    def jarvis(self, line: str) -> Toolset | Listing:
        """Show what there is."""
        views = {"tools": self._tools, "engines": _engines, "memory": self._memory}
        word = line.strip()
        if word not in views:
            raise InvalidRequest(f"%jarvis {word}", code="invalid_magic", value=word, valid=VIEWS)
        return views[word]()

    def _jarvis(self, name: str | None = None, engine: str | None = None) -> Jarvis:
        """Return the named Jarvis, the one variable that holds one, or one made for this."""
        from jarvis_nb.jarvis import Jarvis

        if engine is not None:
            given = self.variables.get(engine, engine)
            if engine not in self._own or not isinstance(given, str):
                self._own[engine] = Jarvis(engine=given)
            return self._own[engine]
        if name is not None:
            found = self.variables.get(name)
            if not isinstance(found, Jarvis):
                raise InvalidRequest(f"{name} is no Jarvis", code="invalid_magic", value=name)
            return found
        held = {
            id(v): v for k, v in self.variables.items() if isinstance(v, Jarvis) and not k.startswith("_")
        }
        if len(held) > 1:
            names = [k for k, v in self.variables.items() if isinstance(v, Jarvis) and not k.startswith("_")]
            raise InvalidRequest(
                "several variables hold a Jarvis",
                code="invalid_magic",
                valid=names,
                hint="say which: --jarvis NAME",
            )
        if held:
            return next(iter(held.values()))
        if "" not in self._own:
            self._own[""] = Jarvis()
        return self._own[""]

    def _tools(self) -> Toolset:
        from jarvis_nb.toolsets.toolset import Toolset

        j = self._jarvis()
        found, problems = j.toolsets.registered()
        for problem in problems:  # another package's tool does not hide the others
            sys.stderr.write(f"problem: {problem}\n")
        own = {tool.name: tool for tool in j.tools}
        others = {tool.name: tool for tool in found.values() if tool.name not in own}
        return Toolset([*others.values(), *own.values()])

    def _memory(self) -> Listing:
        from jarvis_nb.display.lists import Listing

        stats = self._jarvis().memory.stats()
        return Listing("Memory", ("what", "is"), tuple((str(k), str(v)) for k, v in stats.items()))


def _engines() -> Listing:
    from jarvis_nb.display.lists import Listing
    from jarvis_nb.engines.discovery import survey

    marks = {"used": "● used", "usable": "○ usable", "missing": "✗ missing"}
    rows = tuple((marks[found.status], found.key, found.reason) for found in survey())
    return Listing("Engines", ("status", "engine", "why"), rows)


def load(shell: Any) -> None:
    """Register the magics in an IPython shell."""
    magics = JarvisMagics(shell.user_ns)
    shell.register_magic_function(magics.ask, "cell", "ask")
    shell.register_magic_function(magics.jarvis, "line", "jarvis")
