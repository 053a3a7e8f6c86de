"""The house: which room may import which, sizes, examples, names, the README."""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "jarvis_nb"
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 420


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = [name_of(path) for path in MODULES]


@cache
def imports(path: Path, *, late: bool) -> frozenset[str]:
    """Return the modules of this package that a module imports.

    Args:
        path: The module.
        late: Those inside functions too; imports for the type checker alone never count.
    """
    found: set[str] = set()
    here = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]

    def take(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not late:
                continue
            if isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert not child.level, f"{here}: imports are absolute"
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    found.add(whole if whole in NAMES else child.module)
            take(child)

    take(ast.parse(path.read_text()))
    return frozenset(name for name in found if name.split(".")[0] == "jarvis_nb")


def room(name: str) -> str:
    """Return the room of a module: a package of the house, or the module itself at the top."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "jarvis_nb"


# What each room may read when it is imported. Each stands on those below it; reprs reach display by one hook.
STANDS_ON = {
    "core": set(),
    "engines": {"core"},
    "memory": {"core"},
    "tools": {"core", "memory"},  # the retrieval tool takes a memory backend
    "record": {"core"},
    "toolsets": {"core", "tools", "record"},
    "reply": {"core", "record"},
    "agents": {"core", "tools", "toolsets", "engines", "record", "reply"},
    "config": {"core"},
    "run": {"core", "tools", "toolsets", "agents", "engines", "memory", "record", "reply", "config"},
    "display": {"core", "tools", "toolsets", "record", "reply"},
    "testing": {"core", "engines"},
}
READERS_OF_DISPLAY = {"display", "widgets", "jarvis", "magics", "cli", "core.pictured"}


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_imports_go_one_way(path):
    """design: core, tools, toolsets, agents, run, jarvis; engines and memory on core."""
    name = name_of(path)
    allowed = STANDS_ON.get(room(name))
    if allowed is None:  # the facade, the command, the widgets: nobody below reads them
        return
    read = {room(other) for other in imports(path, late=False)} - {room(name), "jarvis_nb"}
    assert read <= allowed, f"{name} reads {sorted(read - allowed)}"


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_display_is_read_by_few(path):
    """design: display is read by nobody but widgets, jarvis and reprs through one hook."""
    name = name_of(path).removeprefix("jarvis_nb.")
    if room(name_of(path)) in READERS_OF_DISPLAY or name in READERS_OF_DISPLAY:
        return
    deep = {other for other in imports(path, late=True) if other.startswith("jarvis_nb.display.")}
    assert not deep, f"{name} reads {sorted(deep)}: only the hook, jarvis_nb.display, is for everybody"
    assert "jarvis_nb.display" not in imports(path, late=False)


@pytest.mark.parametrize("top", ["jarvis", "cli", "widgets", "magics"])
def test_nobody_below_reads_the_top(top):
    """design: the facade is read by the command and the widgets, not by the rooms below it."""
    below = [p for p in MODULES if room(name_of(p)) in STANDS_ON]
    readers = [name_of(p) for p in below if any(room(other) == top for other in imports(p, late=False))]
    assert readers == []


def test_no_import_cycle():
    """design: no import cycle, among the imports that happen when a module is imported."""
    graph = {
        name_of(path): {n for n in imports(path, late=False) if n in NAMES and n != name_of(path)}
        for path in MODULES
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for other in sorted(graph[name]):
            visit(other, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_no_module_is_too_long(path):
    """design: no module over about 400 lines."""
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_run(name, monkeypatch, tmp_path):
    """Every example of a docstring gives what it says."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=said.write)
    assert runner.failures == 0, said.getvalue()


PUBLIC = {
    "jarvis_nb": "Jarvis Reply Toolset ToolPolicy ToolSource Skills Secret Flow action BaseTool ToolSpec ToolResult"
    " ToolCall ToolExecutor ToolRegistry EventBus EventType",
    "jarvis_nb.engines": "OpenAIEngine LocalEngine ScriptedEngine ReplayEngine call",
    "jarvis_nb.tools.calculator": "CalculatorTool",
    "jarvis_nb.tools.think": "ThinkTool",
    "jarvis_nb.tools.retrieval": "RetrievalTool",
    "jarvis_nb.tools.llm_tool": "LLMTool",
    "jarvis_nb.tools.file_read": "FileReadTool",
    "jarvis_nb.memory.sqlite": "SQLiteMemory",
    "jarvis_nb.core.types": "ToolCall ToolResult Message Role",
    "jarvis_nb.core.registry": "ToolRegistry",
    "jarvis_nb.widgets": "PolicyPicker ToolBench Playground RunView ApprovalGate",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names(module):
    """design: the public names, each at its place."""
    held = importlib.import_module(module)
    missing = [name for name in PUBLIC[module].split() if not hasattr(held, name)]
    assert missing == []


def test_every_public_name_resolves():
    """What `__all__` and `dir()` promise is there."""
    import jarvis_nb

    assert [n for n in jarvis_nb.__all__ if not hasattr(jarvis_nb, n)] == []
    assert set(jarvis_nb.__all__) <= set(dir(jarvis_nb))
    with pytest.raises(AttributeError, match="nope"):
        jarvis_nb.nope  # noqa: B018 - the access is the test


def test_readme_runs_from_top_to_bottom(tmp_path, monkeypatch):
    """The README's blocks run in order; what stands in a comment behind an expression is its value."""
    from jarvis_nb.engines import ScriptedEngine, call

    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    # The first block asks the embedded model, which not every machine has: its answer is the README's own.
    scripted = ScriptedEngine([call("calculator", expression="340*15/100"), "The result is 51.0."])
    names: dict[str, object] = {"__name__": "readme", "scripted": scripted}
    checked = 0
    for block in blocks:
        for node in ast.parse(block).body:
            code = ast.unparse(node).replace("engine='local'", "engine=scripted")
            comment = re.search(
                r"  # (.+)$", "".join(block.splitlines(True)[node.end_lineno - 1 : node.end_lineno])
            )
            if not isinstance(node, ast.Expr):
                exec(code, names)
                continue
            value = eval(code, names)
            if comment and comment[1][0] in "({[":
                assert value == eval(comment[1]), code
                checked += 1
    assert checked >= 3
    scripted.assert_complete()


@pytest.mark.slow
def test_readme_shows_the_card_that_its_first_block_makes():
    """What stands below the first block is what the embedded model makes of it, to the letter."""
    from jarvis_nb.engines.models import model_path

    if find_spec("xllamacpp") is None or not model_path().is_file():
        pytest.skip("the embedded model is not on this machine: jarvis models fetch")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block, card = re.findall(r"^```(?:python|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[:2]
    *statements, last = ast.parse(block).body
    assert isinstance(last, ast.Expr)
    names: dict[str, object] = {"__name__": "readme"}
    exec("\n".join(map(ast.unparse, statements)), names)
    assert str(eval(ast.unparse(last), names).show()).strip() == card.strip()


def test_readme_counts_what_there_is():
    """The numbers the README gives."""
    from jarvis_nb.testing.oddities import ODDITIES

    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"a [table](jarvis_nb/testing/oddities.py) of {len(ODDITIES)}, each read" in text
    assert len(list((ROOT / "notebooks").glob("*.ipynb"))) == 13
    assert "thirteen short lessons" in text


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


MACHINE = re.compile(
    rb"(?<![\w.])/(?:work|home/(?!user\b|jovyan\b|ada\b)\w+|Users/\w+|root)/(?!\.ssh/config)[\w.]"
)


def test_no_machine_paths():
    """No file names a place on somebody's machine."""
    found = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in tracked()
        if path.suffix not in {".png", ".gguf", ".npz", ".ico"}
        for match in MACHINE.finditer(path.read_bytes())
    ]
    assert found == []


def test_the_wheel_is_pure_python():
    """design rule 7."""
    assert [p.name for p in PACKAGE.rglob("*") if p.suffix in {".so", ".pyd", ".c", ".pyx"}] == []


@pytest.mark.parametrize(
    "name",
    [
        "jarvis_nb",
        "jarvis_nb.engines",
        "jarvis_nb.tools",
        "jarvis_nb.testing",
        "jarvis_nb.memory",
        "jarvis_nb.display",
    ],
)
def test_importing_starts_no_thread(name):
    """design rule 7."""
    code = f"import threading, {name}; assert threading.active_count() == 1"
    subprocess.run([sys.executable, "-c", code], check=True)
