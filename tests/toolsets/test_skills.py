"""Skills: contract skills.md, its six rules and its table (one file of cases a row, under ``skills/``)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jarvis_nb import Skills, ToolContext, ToolError
from jarvis_nb.core.errors import SkillError, SourceError
from jarvis_nb.toolsets.frontmatter import Refused, _simple_fields, _yaml_fields, fields, split
from jarvis_nb.toolsets.source import SourceSpec, load_sources

CASES = Path(__file__).parent / "skills"
GOOD = "---\nname: {0}\ndescription: Does {0}.\n---\nBody of {0}.\n"

posix = pytest.mark.skipif(os.name != "posix", reason="FIFOs, devices and permissions of POSIX")


def all_cases():
    for file in sorted(CASES.glob("*.json")):
        row = json.loads(file.read_text())
        for case in row["cases"]:
            yield pytest.param(case, id=f"{file.stem}: {case['case']}")


def text_of(given_):
    """A case's text: a string, or a list of strings and [string, times]."""
    pieces = [given_] if isinstance(given_, str) else given_
    return "".join(p if isinstance(p, str) else p[0] * p[1] for p in pieces)


def build(root: Path, case) -> None:
    tree = case.get("tree")
    if tree is None:
        data = case["bytes"].encode("latin-1") if "bytes" in case else text_of(case["text"]).encode()
        tree = {"a/SKILL.md": data}
    root.mkdir()
    for path, what in tree.items():
        put(Path(os.path.normpath(root / path)), what)


def put(target: Path, what) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(what, str | bytes):
        what = {"text": what}
    if "text" in what:
        target.write_bytes(what["text"] if isinstance(what["text"], bytes) else what["text"].encode())
    elif "link" in what:
        target.symlink_to(what["link"])
    elif "fifo" in what:
        os.mkfifo(target)
    elif "device" in what:
        try:
            os.mknod(target, 0o600 | 0o020000, os.makedev(1, 5))
        except PermissionError:
            with socket.socket(socket.AF_UNIX) as end:
                end.bind(str(target))
    elif "directory" in what:
        target.mkdir(exist_ok=True)
    if "mode" in what:
        target.chmod(what["mode"])


@contextlib.contextmanager
def as_nobody():
    """Root reads everything: for a while this process is nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def place():
    """A directory that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(os.path.realpath(made))


@posix
@pytest.mark.parametrize("case", list(all_cases()))
def test_table(case, place):
    """skills.md, table."""
    build(place / "root", case)
    roots = [place / root for root in case.get("roots", ["root"])]
    says = [case["says"]] if isinstance(case.get("says"), str) else case.get("says", [])
    start = time.perf_counter()
    with as_nobody() if case.get("as_nobody") else contextlib.nullcontext():
        if "error" in case:
            with pytest.raises(SkillError) as caught:
                Skills.discover(roots)
            assert caught.value.code == case["error"]
            assert all(said in caught.value.message for said in says)
            return
        skills = Skills.discover(roots, allow_symlinks=case.get("allow_symlinks", False))
    assert time.perf_counter() - start < 1
    assert [skill.name for skill in skills] == case.get("accepted", [])
    found = {"/".join(Path(p.path).parts[-2:]): p.code for p in skills.problems}
    assert found == case.get("problems", {})
    for problem in skills.problems:
        assert all(said in problem.message for said in says)
        assert case.get("hint", "") in problem.hint
        assert case.get("line", problem.line) == problem.line
        assert case.get("column", problem.column) == problem.column
    assert [warning.code for warning in skills.warnings] == case.get("warnings", [])
    if "description" in case:
        assert skills[0].description == case["description"]
    if "instructions" in case:
        assert load(roots, skills[0].name, allow_symlinks=case.get("allow_symlinks", False)) == {
            "instructions": case["instructions"]
        }
    if "line_in_tool" in case:
        (line,) = tool_of(roots).definition.description.splitlines()[1:]
        assert json.loads(line) == {"name": "a", "description": case["description"]}


def test_table_has_a_file_for_each_of_its_rows():
    rows = [json.loads(file.read_text())["row"] for file in sorted(CASES.glob("*.json"))]
    assert len(rows) == len(set(rows)) == 20


# Helpers for the rest.


def skill(root: Path, name: str, text: str | None = None) -> Path:
    file = root / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(GOOD.format(name) if text is None else text)
    return file


def tools_of(roots, **options):
    return asyncio.run(load_sources([Skills.source(roots, **options)]))


def tool_of(roots, **options):
    (tool,) = tools_of(roots, **options)
    return tool


def load(roots, name, **options):
    return tool_of(roots, **options).invoke({"name": name}, ToolContext())


# 1: fields


def test_01_the_other_fields_are_read_and_shown(tmp_path):
    skill(
        tmp_path,
        "a",
        "---\nname: a\ndescription: Does a.\nlicense: MIT\ncompatibility: Python 3.11\n"
        "allowed-tools: Bash(git:*) Read\nmetadata:\n  author: me\n  version: 1.0\n  tags: [x, y]\n---\nBody.\n",
    )
    (found,) = Skills.discover(tmp_path)
    assert (found.license, found.compatibility, found.allowed_tools) == (
        "MIT",
        "Python 3.11",
        "Bash(git:*) Read",
    )
    assert found.metadata == {"author": "me", "version": "1.0", "tags": ["x", "y"]}
    assert found.warnings == ()
    assert json.loads(json.dumps(found.to_dict()))["license"] == "MIT"


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("allowed-tools: [Read, Grep]", "allowed_tools", "Read Grep"),
        ("allowed-tools:", "allowed_tools", None),
        ("allowed-tools: []", "allowed_tools", None),
        ("license: ~", "license", None),
        ("license: 2.0", "license", "2.0"),
        ("metadata:", "metadata", {}),
        ("metadata:\n  a:", "metadata", {"a": None}),
    ],
)
def test_01_optional_fields_are_text_as_written(tmp_path, line, field, value):
    skill(tmp_path, "a", f"---\nname: a\ndescription: Does a.\n{line}\n---\nBody.\n")
    skills = Skills.discover(tmp_path)
    assert skills.problems == []
    assert getattr(skills[0], field) == value


@pytest.mark.parametrize(
    "line", ["metadata: [a]", "metadata: text", "license: {a: b}", "allowed-tools: [[a]]"]
)
def test_01_optional_fields_of_the_wrong_shape_are_rejected(tmp_path, line):
    skill(tmp_path, "a", f"---\nname: a\ndescription: Does a.\n{line}\n---\nBody.\n")
    assert [p.code for p in Skills.discover(tmp_path).problems] == ["invalid_field"]


def test_01_allowed_tools_never_grants_a_tool(tmp_path):
    skill(tmp_path, "a", "---\nname: a\ndescription: Does a.\nallowed-tools: shell file_read\n---\nBody.\n")
    assert [tool.name for tool in tools_of(tmp_path)] == ["load_skill"]


def test_01_an_unknown_field_is_a_warning_with_its_place(tmp_path):
    skill(tmp_path, "a", "---\nname: a\ndescription: Does a.\nlicence: MIT\nmodel: x\n---\nBody.\n")
    skills = Skills.discover(tmp_path)
    assert skills.problems == []
    first, second = skills.warnings
    assert (first.code, first.line, first.column, first.hint) == (
        "unknown_field",
        4,
        1,
        "did you mean 'license'?",
    )
    assert second.hint == "put it under metadata"


# 2: discovery


def test_02_good_ones_are_listed_and_the_others_are_problems(tmp_path):
    for name in ("b", "a", "c"):
        skill(tmp_path, name)
    skill(tmp_path, "bad", "no frontmatter")
    skills = Skills.discover([tmp_path])
    assert [(s.name, s.description) for s in skills] == [("a", "Does a."), ("b", "Does b."), ("c", "Does c.")]
    (problem,) = skills.problems
    assert problem.to_dict() == {
        "path": str(tmp_path.resolve() / "bad" / "SKILL.md"),
        "code": "no_frontmatter",
        "message": "the file does not begin with frontmatter",
        "hint": "its first line is ---",
        "line": 1,
        "column": 1,
    }
    assert (
        str(problem)
        == "bad/SKILL.md:1:1: the file does not begin with frontmatter (its first line is ---) [no_frontmatter]"
    )


def test_02_strict_raises_with_every_problem(tmp_path):
    skill(tmp_path, "bad", "no frontmatter")
    skill(tmp_path, "worse", "---\nname: x\n---\n")
    with pytest.raises(SkillError) as caught:
        Skills.discover([tmp_path], strict=True)
    assert caught.value.code == "no_frontmatter"
    assert [problem.code for problem in caught.value.value] == ["no_frontmatter", "name_mismatch"]
    assert "bad/SKILL.md" in str(caught.value)
    assert "worse/SKILL.md" in str(caught.value)


def test_02_strict_accepts_warnings(tmp_path):
    skill(tmp_path, "a", "---\nname: a\ndescription: Does a.\nfoo: x\n---\nBody.\n")
    assert len(Skills.discover([tmp_path], strict=True)) == 1


@pytest.mark.parametrize("form", [str, Path, lambda p: [str(p)], lambda p: (p,)])
def test_02_roots_are_paths_or_lists_of_them(tmp_path, form):
    skill(tmp_path, "a")
    assert [s.name for s in Skills.discover(form(tmp_path))] == ["a"]


@pytest.mark.parametrize("what", ["missing", "file", "nul", 7, None, b"bytes"])
def test_02_a_root_that_is_no_directory_is_an_error(tmp_path, what):
    (tmp_path / "file").write_text("x")
    root = {"missing": tmp_path / "missing", "file": tmp_path / "file", "nul": "a\0b"}.get(what, what)
    for call in (Skills.discover, Skills.source):
        with pytest.raises(SkillError) as caught:
            call([root])
        assert caught.value.code == "unknown_root"
        assert repr(str(root)) in caught.value.message


def test_02_reprs_are_deterministic_escaped_and_bounded(tmp_path):
    for index in range(60):
        skill(
            tmp_path, f"s{index:02d}", f"---\nname: s{index:02d}\ndescription: <b>{'x' * 500}\n---\nBody.\n"
        )
    skill(tmp_path, "<i>", "x")
    skills = Skills.discover(tmp_path)
    bundle = skills._repr_mimebundle_()
    for shown in (repr(skills), *bundle.values()):
        assert str(tmp_path) not in shown
        assert len(shown) < 20_000
    assert "\n" not in repr(skills)
    assert repr(skills).endswith("40 more; 1 problem)")
    assert bundle["text/plain"].splitlines()[0] == "Skills: 60 skills, 1 problem"
    for shown in bundle.values():
        assert "10 more" in shown
    assert "<b>x" not in bundle["text/html"]
    assert "<i>" not in bundle["text/html"]
    assert str(tmp_path) not in repr(skills[0])


@pytest.mark.slow
def test_02_two_thousand_skills_in_under_a_second_and_no_more_than_that(tmp_path):
    for index in range(2_000):
        skill(tmp_path, f"skill-{index}")
    start = time.perf_counter()
    skills = Skills.discover(tmp_path)
    assert time.perf_counter() - start < 1
    assert len(skills) == 2_000
    tool = tool_of(tmp_path)
    assert len(tool.definition.parameters["properties"]["name"]["enum"]) == 2_000
    skill(tmp_path, "one-more")
    with pytest.raises(SkillError) as caught:
        Skills.discover(tmp_path)
    assert caught.value.code == "too_many_skills"


# 3: the source


def test_03_exactly_one_tool_whose_description_lists_the_skills_as_data(tmp_path):
    skill(
        tmp_path,
        "refund-policy",
        '---\nname: refund-policy\ndescription: "Say \\"hi\\"\\nand été."\n---\nBody.\n',
    )
    skill(tmp_path, "b")
    tool = tool_of([tmp_path])
    assert (tool.name, tool.kind, tool.uncapped) == ("load_skill", "source", True)
    _, *lines = tool.definition.description.split("\n")
    assert [json.loads(line) for line in lines] == [
        {"name": "b", "description": "Does b."},
        {"name": "refund-policy", "description": 'Say "hi"\nand été.'},
    ]
    assert "été" in lines[1]
    assert tool.definition.parameters == {
        "type": "object",
        "properties": {"name": {"type": "string", "enum": ["b", "refund-policy"]}},
        "required": ["name"],
        "additionalProperties": False,
    }


def test_03_no_good_skill_offers_no_tool(tmp_path):
    assert tools_of([tmp_path]) == []
    skill(tmp_path, "bad", "x")
    assert tools_of([tmp_path]) == []


def test_03_the_source_is_portable_data_and_keeps_its_id(tmp_path):
    spec = SourceSpec.of(Skills.source([tmp_path]))
    assert spec.id == "jarvis_nb.toolsets.skills.SkillSource"
    assert spec.to_dict()["config"] == {"roots": [str(tmp_path.resolve())], "allow_symlinks": False}


def test_03_a_root_that_went_away_fails_the_request(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    source = Skills.source([root])
    root.rmdir()
    with pytest.raises(SourceError) as caught:
        asyncio.run(load_sources([source]))
    assert caught.value.code == "unknown_root"
    assert "SkillSource" in caught.value.message


def test_03_problems_are_logged_once_not_at_each_ask(tmp_path, caplog):
    skill(tmp_path, "bad", "x")
    spec = SourceSpec.of(Skills.source([tmp_path]))
    asyncio.run(load_sources([spec]))
    asyncio.run(load_sources([spec]))
    assert [record.getMessage() for record in caplog.records] == [
        "skill not offered: bad/SKILL.md:1:1: the file does not begin with frontmatter (its first line is ---) [no_frontmatter]"
    ]


# 4: loading

recorders = []


def record_open(event, args):
    if event == "open" and recorders:
        recorders[-1].append(Path(str(args[0])).name)


@contextlib.contextmanager
def opened_files():
    """The names of the files that are opened meanwhile. An audit hook stays, so there is one."""
    if not hasattr(sys, "_jarvis_test_hook"):
        sys._jarvis_test_hook = True
        sys.addaudithook(record_open)
    recorders.append([])
    try:
        yield recorders[-1]
    finally:
        recorders.pop()


def test_04_the_tutorials_skill(tmp_path):
    skill(
        tmp_path,
        "refund-policy",
        "---\nname: refund-policy\ndescription: Apply the refund policy to an order.\n---\nRefund within 30 days of delivery.\n",
    )
    assert load([tmp_path], "refund-policy") == {"instructions": "Refund within 30 days of delivery.\n"}


def test_04_a_body_is_never_cut(tmp_path):
    body = "0123456789abcdef" * 16_000
    skill(tmp_path, "a", f"---\nname: a\ndescription: Does a.\n---\n{body}\n")
    assert load([tmp_path], "a")["instructions"] == body + "\n"


def test_04_no_other_file_is_read_and_no_script_runs(tmp_path):
    skill(tmp_path, "a")
    marker = tmp_path / "ran"
    script = tmp_path / "a" / "setup.py"
    script.write_text(f"open({str(marker)!r}, 'w')")
    os.mkfifo(tmp_path / "a" / "reference.md")  # reading it would block
    tool = tool_of([tmp_path])
    with opened_files() as opened:
        tool.invoke({"name": "a"}, ToolContext())
    assert "SKILL.md" in opened
    assert not {"setup.py", "reference.md"} & set(opened)
    assert not marker.exists()


# 5: names


@pytest.mark.parametrize("name", ["b", "../a", "a/../a", "/etc/passwd", "A", "a ", "", "a\0", "x" * 10_000])
def test_05_a_name_that_is_not_listed_is_an_error_with_the_valid_names(tmp_path, name):
    skill(tmp_path, "a")
    skill(tmp_path, "c")
    with pytest.raises(ToolError) as caught:
        load([tmp_path], name)
    assert caught.value.code == "unknown_skill"
    assert caught.value.valid == ("a", "c")
    assert len(caught.value.message) < 300


def test_05_a_name_is_looked_up_never_joined_to_a_path(tmp_path):
    skill(tmp_path / "root", "a")
    skill(tmp_path / "out", "secret")
    with pytest.raises(ToolError):
        load([tmp_path / "root"], "../out/secret")


# 6: reading again


def test_06_a_changed_body_is_read_again(tmp_path):
    file = skill(tmp_path, "a")
    tool = tool_of([tmp_path])
    file.write_text("---\nname: a\ndescription: Does a.\n---\nNew.\n")
    assert tool.invoke({"name": "a"}, ToolContext()) == {"instructions": "New.\n"}


def gone(file):
    file.unlink()


def directory_gone(file):
    gone(file)
    file.parent.rmdir()


def renamed(file):
    file.parent.rename(file.parent.with_name("z"))


def name_changed(file):
    file.write_text(GOOD.format("z"))


def broken(file):
    file.write_text("---\nname: a\n")


def too_large(file):
    file.write_text(GOOD.format("a") + "x" * 300_000)


def linked(file):
    file.rename(file.with_name("other"))
    file.symlink_to("other")


def directory_linked(file):
    file.parent.rename(file.parent.with_name("moved"))
    file.parent.symlink_to("moved")


def fifo(file):
    file.unlink()
    os.mkfifo(file)


@posix
@pytest.mark.parametrize(
    "change", [gone, directory_gone, renamed, name_changed, broken, too_large, linked, directory_linked, fifo]
)
def test_06_a_skill_that_is_gone_or_no_longer_good_is_unavailable(tmp_path, change):
    file = skill(tmp_path, "a")
    tool = tool_of([tmp_path])
    change(file)
    with pytest.raises(ToolError) as caught:
        tool.invoke({"name": "a"}, ToolContext())
    assert caught.value.code == "skill_unavailable"
    assert "'a'" in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_06_a_link_swapped_in_between_listing_and_loading_is_not_followed(tmp_path):
    file = skill(tmp_path / "root", "a")
    skill(tmp_path / "out", "a", GOOD.format("a") + "outside")
    tool = tool_of([tmp_path / "root"])
    directory_gone(file)
    file.parent.symlink_to(tmp_path / "out" / "a")
    with pytest.raises(ToolError, match="link"):
        tool.invoke({"name": "a"}, ToolContext())


# Properties


def outcome(data):
    """What became of some bytes: (frontmatter, body, fields), or the code they were refused with."""
    try:
        front, body = split(data)
        return front, body, fields(front)
    except Refused as refused:
        return refused.code


@given(st.text(max_size=300).map(lambda body: body.replace("\r", "")))
@example("---\n")
def test_a_body_comes_back_as_it_was_or_the_file_is_refused(body):
    data = body.encode(errors="replace")
    found = outcome(b"---\nname: a\n---\n" + data)
    assert found == "control_character" or found[:2] == ("name: a\n", data.decode())


@given(st.binary(max_size=400) | st.text("---\n :#&*!|>'\"[]{}ab\t\\", max_size=200).map(str.encode))
def test_any_bytes_are_fields_or_refused(data):
    for found in (outcome(data), outcome(b"---\n" + data + b"\n---\n")):
        assert isinstance(found, str) or len({field.key.text for field in found[2]}) == len(found[2])


line = st.text("abz-: #'\"[]{}!&*|>%@`,.059YyNn~=?\\é", max_size=12)


@given(
    st.lists(
        st.tuples(st.sampled_from(["name", "a-b", "description", "x", "yes"]), line), min_size=1, max_size=4
    )
)
@example([("name", "yes")])
@example([("name", "a"), ("name", "b")])
def test_simple_lines_are_read_as_yaml_reads_them(pairs):
    front = "".join(f"{key}: {value}\n" for key, value in pairs)
    simple = _simple_fields(front)
    if simple is not None:
        assert simple == _yaml_fields(front)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=80))
def test_a_quoted_value_is_read_as_it_is(value):
    (field,) = fields(f"description: {json.dumps(value)}")
    assert field.value.text == value
    assert field.value.other_type is None
