"""The command: tools.md 22. Exit codes, the answer alone on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import jarvis_nb
from jarvis_nb import Reply
from jarvis_nb.cli import app
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.engines.presets import KEY_NAMES, PRESETS
from jarvis_nb.testing import HANG, StrictServer, chunks, error


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, tmp_path):
    """No key, address, proxy or setting of the machine reaches a test."""
    names = {*KEY_NAMES, *(name for preset in PRESETS.values() for name in preset.url_names)}
    for name in {
        *names,
        *(n for n in os.environ if n.lower().endswith("_proxy") or n.startswith("JARVIS_NB_")),
    }:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JARVIS_NB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


def jarvis(*arguments, stdin=None):
    return CliRunner().invoke(app, list(arguments), input=stdin)


def calling(name, /, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


@pytest.fixture
def serve(monkeypatch):
    """Start a strict server that is the configured engine."""
    servers: list[StrictServer] = []

    def start(*replies):
        servers.append(StrictServer(replies).start())
        monkeypatch.setenv("JARVIS_NB_BASE_URL", servers[-1].url)
        return servers[-1]

    yield start
    for server in servers:
        server.close()
        server.assert_accepted()


def test_22_a_message_is_one_line_also_in_a_narrow_pipe(monkeypatch):
    """tools.md 22: what a script searches for is not broken at the width of a terminal that is not there."""
    monkeypatch.setenv("COLUMNS", "40")
    stderr = jarvis("ask", "--tools", "calculater", "x").stderr
    assert "did you mean 'calculator'?" in stderr
    assert stderr.count("\n") == 1


def test_22_the_answer_alone_on_stdout(serve):
    """tools.md 22: answer on stdout, everything else on stderr, exit code 0."""
    server = serve(calling("calculator", expression="340*15/100"), "It is 51.")
    done = jarvis("ask", "--agent", "orchestrator", "--tools", "calculator,think", "What is 15% of 340?")
    assert (done.exit_code, done.stdout) == (0, "It is 51.\n"), done.stderr
    assert "calculator" in done.stderr
    assert "51.0" in done.stderr
    assert [t["function"]["name"] for t in server.requests[0].body["tools"]] == ["calculator", "think"]


def test_22_direct_mode(serve):
    """tools.md 20: without tools and agent, one model call."""
    serve("Hello.")
    assert jarvis("ask", "Hi").stdout == "Hello.\n"


def test_22_the_question_from_standard_input(serve):
    server = serve("Hello.")
    assert jarvis("ask", "-", stdin="Hi from a pipe").exit_code == 0
    assert server.requests[0].messages[-1]["content"] == "Hi from a pipe"


def test_22_json(serve, tmp_path):
    """tools.md 22: --json is the whole record, and nothing else is on stdout."""
    serve(calling("calculator", expression="2+2"), "It is 4.")
    done = jarvis("ask", "--tools", "calculator", "--json", "--save", "turn.json", "2+2?")
    data = json.loads(done.stdout)
    reply = Reply.from_dict(data)
    assert (reply.output, reply.status, reply.tool_attempts[0].output) == ("It is 4.", "completed", "4")
    assert Reply.load(tmp_path / "turn.json") == reply


def test_22_options_reach_the_request(serve):
    server = serve("ok")
    done = jarvis(
        "ask", "--tools", "calculator,think", "--visible", "think", "--require", "think", "--system", "Be brief.",
        "--temperature", "0.5", "--max-tokens", "7", "--model", "m9", "x",
    )  # fmt: skip
    body = server.requests[0].body
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (body["model"], body["temperature"]) == ("m9", 0.5)
    assert 7 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert [t["function"]["name"] for t in body["tools"]] == ["think"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "think"}}
    # The model answered without the tool it had to call: the run failed, and its text is kept.
    assert (done.exit_code, done.stdout) == (1, "ok\n")
    assert "required_tool_not_called" in done.stderr


def test_22_a_file_that_is_not_utf8_is_no_crash(serve):
    serve(calling("file_read", path="none.txt"), "There is none.")
    done = jarvis("ask", "--tools", "file_read", "x")
    assert (done.exit_code, done.stdout) == (0, "There is none.\n")
    assert "✗" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "--tools", "calculatr", "x"], "calculator"),
        (["ask", "--agent", "orchestrater", "x"], "orchestrator"),
        (["ask", "--agent", "simple", "--tools", "calculator", "x"], "takes no tools"),
        (["ask", "--engine", "nope", "x"], "nope"),
        (["ask", "--tools", "calculator", "--visible", "calclator", "x"], "calculator"),
        (["ask", "--tools", "calculator", "--require", "think", "x"], "think"),
        (["ask", "--tools", "calculator", "--visible", "", "--require", "required", "x"], "required"),
        (["ask", "--temperature", "3", "x"], "temperature"),
        (["ask", "--rounds", "-1", "x"], "rounds"),
        (["ask", "--approve", "maybe", "x"], "deny"),
        (["ask", "--context", "x"], "memory"),
        (["ask", "--skills", "nowhere", "x"], "nowhere"),
        (["ask", ""], "question"),
        (["ask"], "Missing argument"),
        (["ask", "--nope", "x"], "--nope"),
        (["nope"], "nope"),
        (["skills", "nowhere"], "nowhere"),
        (["memory", "index", "nowhere.md"], "nowhere.md"),
        (["models", "remove", "nope"], "nope"),
        (["models", "fetch", "nope"], "nope"),
    ],
)
def test_22_a_callers_mistake_is_2(arguments, said, serve):
    """tools.md 22, 20: usage errors name what is wrong or what exists; no model is called."""
    server = serve()
    done = jarvis(*arguments)
    assert done.exit_code == 2, (done.stdout, done.stderr, done.exception)
    assert said in done.stderr
    assert done.stdout == ""
    assert server.requests == []


@pytest.mark.parametrize(
    ("replies", "arguments", "said"),
    [
        ((error(401, "Incorrect API key provided"),), [], "API key"),
        ((error(404, "no such model"),), [], "no such model"),
        ((calling("calculator", expression="1"), error(400, "broken")), ["--tools", "calculator"], "broken"),
        (
            (calling("calculator", expression="1"), "It was one."),
            ["--tools", "calculator", "--rounds", "1"],
            "max_rounds",
        ),
    ],
    ids=["key", "model", "later", "limit"],
)
def test_22_a_failing_run_is_1(replies, arguments, said, serve):
    """tools.md 22: exit code 1, with the reason."""
    serve(*replies)
    done = jarvis("ask", *arguments, "x")
    assert done.exit_code == 1, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_22_no_server_is_1(monkeypatch):
    monkeypatch.setenv("JARVIS_NB_BASE_URL", "http://127.0.0.1:9/v1")
    done = jarvis("ask", "--model", "m", "x")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "127.0.0.1:9" in done.stderr


def test_22_the_json_of_a_failed_run_is_the_record(serve):
    serve(calling("calculator", expression="1"), error(400, "broken"))
    done = jarvis("ask", "--tools", "calculator", "--json", "x")
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert (data["status"], data["tool_attempts"][0]["output"]) == ("failed", "1")


@pytest.mark.slow
@pytest.mark.parametrize("reply", [chunks("It ", HANG), chunks(HANG)], ids=["in an answer", "before it"])
def test_22_an_interrupt_is_130(reply):
    """An interrupted command says so, and has no traceback."""
    with StrictServer([reply]) as server:
        code = "from jarvis_nb.cli import main; main()"
        env = os.environ | {"JARVIS_NB_BASE_URL": server.url}
        process = subprocess.Popen(
            [sys.executable, "-c", code, "ask", "x"], env=env, stdout=-1, stderr=-1, text=True
        )
        server.wait_for_requests(1, 30)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said


# Settings.


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('modle = "m"', "modle"),
        ("temperature = 'warm'", "temperature"),
        ("limits = 5", "limits"),
        ("engine = [", "config.toml"),
    ],
)
def test_23_a_wrong_setting_is_named(toml, said, tmp_path):
    """tools.md 23: a wrong key or type is an error that names it."""
    (tmp_path / "config" / "jarvis_nb").mkdir(parents=True)
    (tmp_path / "config" / "jarvis_nb" / "config.toml").write_text(toml)
    for arguments in (["ask", "x"], ["engines"], ["memory", "stats"]):
        done = jarvis(*arguments)
        assert (done.exit_code, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr.replace("\n", "")


# The other commands.


def test_22_tools_are_listed_though_one_is_broken(monkeypatch, tmp_path):
    """tools.md 22, 2: another package's tool that cannot be imported is a problem of its own."""
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jarvis_nb.tools]\nbroken = no_such_module:Tool\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(ToolRegistry, "_points", None)
    done = jarvis("tools", "--json")
    assert done.exit_code == 0
    assert "no_such_module" in done.stderr
    assert {"calculator", "file_read"} <= {row["name"] for row in json.loads(done.stdout)}


def test_22_tools():
    """tools.md 22: jarvis tools."""
    done = jarvis("tools")
    assert done.exit_code == 0
    for name in ("calculator", "think", "retrieval", "llm", "file_read"):
        assert name in done.stdout
    assert "path, max_lines?" in done.stdout
    rows = json.loads(jarvis("tools", "--json").stdout)
    assert {r["name"]: r["category"] for r in rows}["calculator"] == "math"
    assert next(r for r in rows if r["name"] == "think")["parameters"]["type"] == "object"


def test_22_version():
    assert jarvis("--version").stdout == f"{jarvis_nb.__version__}\n"


def test_22_engines(serve):
    """tools.md 22: jarvis engines; the one an ask takes comes first."""
    serve()
    rows = json.loads(jarvis("engines", "--json").stdout)
    assert (rows[0]["status"], rows[0]["source"]) == ("used", "config")
    assert all(row["reason"] for row in rows)
    assert "ollama" in jarvis("engines").stdout


def test_22_skills(tmp_path):
    """tools.md 22: jarvis skills; problems on stderr."""
    for name, text in {
        "refund-policy": "---\nname: refund-policy\ndescription: Apply it.\n---\nRefund.\n",
        "broken": "no frontmatter",
    }.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(text)
    done = jarvis("skills", "skills")
    assert done.exit_code == 0
    assert "refund-policy" in done.stdout
    assert "broken" not in done.stdout
    assert "broken" in done.stderr
    assert json.loads(jarvis("skills", "skills", "--json").stdout) == [
        {"name": "refund-policy", "description": "Apply it."}
    ]


def test_22_a_skill_in_an_ask(serve, tmp_path):
    (tmp_path / "skills" / "refund-policy").mkdir(parents=True)
    (tmp_path / "skills" / "refund-policy" / "SKILL.md").write_text(
        "---\nname: refund-policy\ndescription: Apply it.\n---\nRefund within 30 days.\n"
    )
    server = serve(calling("load_skill", name="refund-policy"), "30 days.")
    assert jarvis("ask", "--skills", "skills", "How long?").stdout == "30 days.\n"
    assert "Refund within 30 days" in server.requests[1].messages[-1]["content"]


def test_22_memory(serve, tmp_path):
    """tools.md 22, 16: index, search, stats, clear; a later command finds what an earlier one stored."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "refunds.md").write_text("Refunds take thirty days.\n")
    (tmp_path / "docs" / "photo.png").write_bytes(b"\x89PNG\0")
    done = jarvis("memory", "index", "docs")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1)
    assert "photo.png: " in done.stderr  # each file that was skipped, and why
    assert json.loads(jarvis("memory", "index", "docs", "--json").stdout)
    (hit,) = json.loads(jarvis("memory", "search", "refund", "--json").stdout)
    assert "thirty days" in hit["content"]
    assert hit["source"].endswith("refunds.md")
    assert "refunds.md" in jarvis("memory", "search", "refund").stdout
    assert json.loads(jarvis("memory", "stats", "--json").stdout)[0]["count"] == 1
    server = serve(calling("retrieval", query="refund"), "Thirty days.")
    done = jarvis("ask", "--tools", "retrieval", "How long?")
    assert done.stdout == "Thirty days.\n"
    assert "thirty days" in server.requests[1].messages[-1]["content"]
    refused = jarvis("memory", "clear", stdin="n\n")
    assert refused.exit_code == 1
    assert json.loads(jarvis("memory", "stats", "--json").stdout)[0]["count"] == 1
    assert jarvis("memory", "clear", "--yes").exit_code == 0
    assert json.loads(jarvis("memory", "stats", "--json").stdout)[0]["count"] == 0
    assert json.loads(jarvis("memory", "search", "refund", "--json").stdout) == []


def test_22_an_ask_carries_what_was_indexed(serve, tmp_path):
    """tools.md 22, 17: --context puts what an earlier command indexed into the question; --no-context does not."""
    (tmp_path / "refunds.md").write_text("Refunds take thirty days.\n")
    assert jarvis("memory", "index", "refunds.md").exit_code == 0
    server = serve("Thirty days.", "No idea.")
    done = jarvis("ask", "--context", "--json", "How long does a refund take?")
    (carried,) = json.loads(done.stdout)["injected"]
    assert (carried["source"], carried["used"]) == ("refunds.md", True)
    system = server.requests[0].messages[0]
    assert system["role"] == "system"
    assert "[Source: refunds.md] Refunds take thirty days." in system["content"]
    assert jarvis("ask", "--no-context", "How long does a refund take?").stdout == "No idea.\n"
    assert [message["role"] for message in server.requests[1].messages] == ["user"]


def test_22_models_list():
    done = jarvis("models", "list")
    assert done.exit_code == 0
    rows = json.loads(jarvis("models", "list", "--json").stdout)
    assert rows
    assert all({"name", "installed", "license"} <= set(row) for row in rows)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["ask", "--help"], ["memory", "--help"], ["models", "--help"], ["mcp", "--help"]],
)
def test_22_help(arguments):
    done = jarvis(*arguments)
    assert done.exit_code == 0
    assert "Usage" in done.stdout


def test_22_what_a_model_says_is_no_markup(serve):
    """notebook.md 5: neither names nor results are read as markup of the terminal."""
    serve(calling("think", thought="[red]not[/red] [/] [link=http://x]y"), "[bold]as it is[/bold] :smile:")
    done = jarvis("ask", "--tools", "think", "x")
    assert (done.exit_code, done.stdout) == (0, "[bold]as it is[/bold] :smile:\n"), done.stderr
    assert "[red]not[/red]" in done.stderr
