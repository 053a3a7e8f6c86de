from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.tools.calculator import CONSTANTS, FUNCTIONS, CalculatorTool, calculate

calc = CalculatorTool()

VALUES = [
    ("2+2", "4"),
    ("sqrt(144) + 3**2", "21.0"),
    ("2+3*4", "14"),
    ("sqrt(16)", "4.0"),
    ("7 / 2", "3.5"),
    ("7 // 2", "3"),
    ("-7 % 3", "2"),
    ("2 ^ 10", "1024"),
    ("2 ^ 3 ^ 2", "512"),
    ("-2 ^ 2", "-4"),
    ("0.15*340", "51.0"),
    ("ln(e)", "1.0"),
    ("log(e)", "1.0"),
    ("log(8, 2)", "3.0"),
    ("log10(1000)", "3.0"),
    ("log2(8)", "3.0"),
    ("abs(-3)", "3"),
    ("round(2.567, 2)", "2.57"),
    ("round(2.5)", "2"),
    ("min(3, 1, 2)", "1"),
    ("max(3, 1, 2)", "3"),
    ("max(5)", "5"),
    ("ceil(2.1)", "3"),
    ("floor(-2.1)", "-3"),
    ("sin(0) + cos(0) + tan(0)", "1.0"),
    ("pi", str(math.pi)),
    ("math.sqrt(16) + PI - pi", "4.0"),
    ("3 × 4 ÷ 2 − 1", "5.0"),
    ("3²", "9"),
    ("1_000 + 1e3", "2000.0"),
    ("10**400 / 10**399", "10.0"),
    ("+".join(["1"] * 1000), "1000"),
    ("(" * 90 + "1" + ")" * 90, "1"),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_09_values(expression, value):
    """tools.md 9: Python's int and float, `^` is power, the reference's operators, functions and constants."""
    result = calc.execute(expression=expression)
    assert (result.success, result.content) == (True, value)


def test_09_largest_integer_is_printed():
    """tools.md 9: 4,300 digits are allowed, one more is not."""
    assert len(calc.execute(expression="10**4299").content) == 4300
    assert calc.execute(expression="9" * 4300).content == "9" * 4300
    assert not calc.execute(expression="10**4300").success
    assert not calc.execute(expression="9" * 4301).success


REFUSED = [
    ("1/0", "division_by_zero", "division by zero"),
    ("1 // 0", "division_by_zero", "division by zero"),
    ("5 % 0", "division_by_zero", "division by zero"),
    ("0 ** -1", "division_by_zero", "division by zero"),
    ("log(2, 1)", "division_by_zero", "division by zero"),
    ("2.0 ** 5000", "too_large", "overflow"),
    ("1e308 * 10", "too_large", "overflow"),
    ("1e999", "too_large", "overflow"),
    ("1e308*10 - 1e308*10", "too_large", "overflow"),
    ("10**400 * 1.5", "too_large", "overflow"),
    ("round(1e308*10)", "too_large", "overflow"),
    ("9**9**9", "too_large", "overflow"),
    ("10**10**8", "too_large", "overflow"),
    ("10**4000 * 10**4000", "too_large", "overflow"),
    ("-(10**4300)", "too_large", "overflow"),
    ("round(5, -10**9)", "invalid_expression", "places"),
    ("(-8) ** 0.5", "not_real", "complex"),
    ("(-8) ^ (1/3)", "not_real", "complex"),
    ("sqrt(-1)", "not_real", "sqrt(-1)"),
    ("log(0)", "not_real", "log(0)"),
    ("(" * 101 + "1" + ")" * 101, "too_large", "nested"),
    ("-" * 500 + "1", "too_large", "nested"),
    ("2**" * 300 + "1", "too_large", "nested"),
    ("abs(" * 200 + "1" + ")" * 200, "too_large", "nested"),
    ("1+" * 2000 + "1", "too_large", "1,000 operations"),
    ("1+" * 50_000 + "1", "too_large", "10,000"),
    ("1" * 100_000, "too_large", "10,000"),
    ("foo(1)", "unknown_name", "sqrt"),
    ("__import__('os')", "unknown_name", "__import__"),
    ("(1).real", "invalid_expression", "'.'"),
    ("lambda: 1", "unknown_name", "lambda"),
    ("'a' * 3", "invalid_expression", '"\'"'),
    ("[1][0]", "invalid_expression", "'['"),
    ("1 < 2", "invalid_expression", "'<'"),
    ("5!", "invalid_expression", "'!'"),
    ("2 + 2 =", "invalid_expression", "'='"),
    ("15%", "invalid_expression", "0.15 * 340"),
    ("15% of 340", "unknown_name", "0.15 * 340"),
    ("2pi", "invalid_expression", "2 * pi"),
    ("0x10", "invalid_expression", "'x10'"),
    ("1,000 + 5", "invalid_expression", "comma"),
    ("sqrt", "invalid_expression", "sqrt(16)"),
    ("sqrt()", "invalid_expression", "1 argument"),
    ("sqrt(1, 2)", "invalid_expression", "1 argument"),
    ("round(1, 2, 3)", "invalid_expression", "1 or 2"),
    ("max()", "invalid_expression", "1 or more"),
    ("max(*(1, 2))", "invalid_expression", "not arithmetic"),
    ("round(number=1)", "unknown_name", "'number'"),
    ("pi(2)", "invalid_expression", "not arithmetic"),
    ("1 2", "invalid_expression", "not a valid expression"),
    ("(1", "invalid_expression", "not a valid expression"),
    ("٣ + 1", "invalid_expression", "٣"),
    ("1\0", "invalid_expression", "x00"),
    ("\ud800", "invalid_expression", "ud800"),
    ("", "invalid_expression", "empty"),
    (" \n", "invalid_expression", "empty"),
]


@pytest.mark.parametrize(("expression", "code", "says"), REFUSED)
def test_09_refused_in_milliseconds_with_a_reason(expression, code, says):
    """tools.md 9: what has no finite real value, or would take long, is refused before it runs."""
    fastest = math.inf
    for _ in range(3):
        start = time.perf_counter()
        result = calc.execute(expression=expression)
        fastest = min(fastest, time.perf_counter() - start)
    assert not result.success
    assert result.metadata["code"] == code
    assert says in result.content
    assert len(result.content) < 500
    assert fastest < 0.05


def test_09_unknown_name_lists_what_there_is():
    """tools.md 9: the functions and constants of the table."""
    message = calc.execute(expression="sqr(2)").content
    assert all(name in message for name in [*FUNCTIONS, *CONSTANTS])


@pytest.mark.parametrize("value", [None, [], {}, 5, -5, 2.5, b"1", True, object()])
def test_odd_values_are_failed_results(value):
    """tools.md, built-in tools: they never raise, also when execute is called directly with odd values."""
    result = calc.execute(expression=value)
    assert (result.success, result.metadata["code"]) == (False, "invalid_arguments")


def test_missing_parameter_and_foreign_ones():
    """tools.md, built-in tools: a missing parameter is a failed result; a foreign one does no harm."""
    assert "missing" in calc.execute().content
    assert calc.execute(expression="1", self=2, function=3, params=4).content == "1"


@given(st.text(alphabet="0123456789.+-*/%^() ,esqrtpilogn_", max_size=60))
@settings(max_examples=300, deadline=1000)
def test_09_never_raises(expression):
    """tools.md 9: any text gives a result in bounded time; a number that is given is finite."""
    result = calc.execute(expression=expression)
    assert result.tool_name == "calculator"
    if result.success:
        assert math.isfinite(float(result.content)) or abs(int(result.content)) > 10**300


@given(
    st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.sampled_from(["+", "-", "*", "//", "%"])
)
@settings(max_examples=200)
def test_09_agrees_with_python(a, b, operator):
    """tools.md 9: Python's own arithmetic."""
    if b or operator in "+-*":
        assert calculate(f"({a}) {operator} ({b})") == eval(f"({a}) {operator} ({b})")


def test_spec_is_the_references():
    """Reference, Calculator: registry key, category, parameter; ToolSpec's OpenAI form."""
    tool = ToolRegistry.create("calculator")
    assert (tool.tool_id, tool.spec.name, tool.spec.category) == ("calculator", "calculator", "math")
    parameters = tool.to_openai_function()["function"]["parameters"]
    assert parameters["type"] == "object"
    assert parameters["properties"]["expression"]["type"] == "string"
    assert parameters["required"] == ["expression"]


def test_examples_work():
    """local.md 5: ten examples, each a call that succeeds."""
    examples = calc.spec.metadata["examples"]
    assert len(examples) == 10
    assert all(calc.execute(**arguments).success for _, arguments in examples)


def test_specs_are_not_shared():
    """tools.md 23: nothing mutable is shared between instances."""
    calc.spec.metadata["examples"].append("x")
    assert len(CalculatorTool().spec.metadata["examples"]) == 10
    calc.spec.metadata["examples"].pop()
