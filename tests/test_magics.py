"""``%load_ext jarvis_nb`` in an IPython shell: the magics of issue 5."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jarvis_nb import Reply, Toolset
from jarvis_nb.core.errors import InvalidRequest
from jarvis_nb.magics import JarvisMagics, parse_ask, policy_of, tools_of

SETUP = """
from jarvis_nb import Jarvis, ToolPolicy, action
from jarvis_nb.engines import ScriptedEngine, call
@action
def double(n: int) -> int:
    "Double a number."
    return 2 * n
j = Jarvis(engine=ScriptedEngine([call("double", n=21), "It is 42.", "Hello.", "Hello."]))
other = ScriptedEngine(["From another engine."])
policy = ToolPolicy(requirement={"tool": "double"})
"""


@pytest.fixture
def shell():
    made = InteractiveShell()
    made.history_manager.enabled = False
    made.run_line_magic("load_ext", "jarvis_nb")
    made.run_cell(SETUP).raise_error()
    yield made
    made.reset()
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_ask_in_a_cell(shell):
    """The cell's value is the reply, which shows itself."""
    done = shell.run_cell("%%ask --tools double,calculator --policy policy --as r\nWhat is twice 21?\n")
    reply = done.result
    assert isinstance(reply, Reply)
    assert reply.question == "What is twice 21?"
    assert reply.output == "It is 42."
    assert reply.tool_attempts[0].output == 42
    assert shell.user_ns["r"] is reply
    assert reply.policy["requirement"] == {"tool": "double"}


def test_agent_and_engine(shell):
    """Options for agent and engine."""
    assert shell.run_cell("%%ask --engine other --agent simple\nHi").result.output == "From another engine."
    assert shell.run_cell("%%ask -a simple\nHi").result.agent == "simple"


def test_what_there_is(shell):
    """%jarvis tools, engines, memory."""
    tools = shell.run_line_magic("jarvis", "tools")
    assert isinstance(tools, Toolset)
    assert {"calculator", "think"} <= set(tools.names)
    engines = shell.run_line_magic("jarvis", "engines")
    assert {"openai", "ollama"} <= {row[1] for row in engines.rows}
    memory = shell.run_line_magic("jarvis", "memory")
    assert ("count", "0") in memory.rows
    for shown in (engines, memory):
        assert "<table" in shown._repr_mimebundle_()["text/html"]
        assert "\n" not in repr(shown)


@pytest.mark.parametrize("line", ["--nope", "--tools", "'unclosed", "stray"])
def test_a_wrong_option_raises_with_the_usage(line):
    """Caller's mistakes raise; the kernel goes on."""
    with pytest.raises(InvalidRequest) as caught:
        parse_ask(line)
    assert caught.value.code == "invalid_magic"


def test_wrong_names_raise(shell):
    """Caller's mistakes raise, with what would be right."""
    magics = JarvisMagics(shell.user_ns)
    with pytest.raises(InvalidRequest, match="valid: tools, engines, memory"):
        magics.jarvis("nope")
    with pytest.raises(InvalidRequest, match="other is no Jarvis"):
        magics.ask("--jarvis other", "Hi")
    with pytest.raises(InvalidRequest, match="no policy"):
        policy_of("{", {})
    shell.run_cell("k = Jarvis(engine=other)").raise_error()
    with pytest.raises(InvalidRequest, match="say which"):
        magics.ask("", "Hi")


def test_variables_before_names():
    """A variable of the notebook stands before a registered name."""
    assert tools_of("a,b", {"a": [1, 2]}) == [1, 2, "b"]
    assert tools_of(None, {}) is None
    assert policy_of(None, {}) is None
