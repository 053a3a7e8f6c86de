"""The calculator: arithmetic from text, by a whitelist over Python's ``ast``, bounded before it runs."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

from jarvis_nb.core.errors import ToolError
from jarvis_nb.core.registry import ToolRegistry
from jarvis_nb.core.types import ToolResult
from jarvis_nb.tools.base import ToolSpec
from jarvis_nb.tools.builtin import BuiltinTool, Examples, text_param

MAX_CHARS = 10_000
MAX_DEPTH = 100
MAX_OPERATIONS = 1_000
MAX_DIGITS = 4_300
"""Python prints integers up to this length; more are refused, in between too."""
_LIMIT = 10**MAX_DIGITS
_LIMIT_BITS = _LIMIT.bit_length()

Number = int | float

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": math.cos,
    "floor": math.floor,
    "ln": math.log,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tan": math.tan,
}
ARITY = {"ln": (1, 1), "log": (1, 2), "max": (1, 1000), "min": (1, 1000), "round": (1, 2)}
"""Least and most arguments; (1, 1) where nothing is said."""
CONSTANTS = {"e": math.e, "pi": math.pi}

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>(?:math\.)?[^\W\d]\w*)"
    r"|(?P<operator>\*\*|//|[-+*/%^(),])"
)
_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_FORM = "write it as in 2 * (3 + 4) or sqrt(16)"
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "²": "**2", "³": "**3", "π": "pi"})  # noqa: RUF001

EXAMPLES: Examples = [
    ("What is 2 + 2?", {"expression": "2 + 2"}),
    ("Compute 17 times 23.", {"expression": "17 * 23"}),
    ("What is 20% of 80?", {"expression": "20 * 80 / 100"}),
    ("What is the square root of 144?", {"expression": "sqrt(144)"}),
    ("Divide 1001 by 7.", {"expression": "1001 / 7"}),
    ("What is 2 to the power of 10?", {"expression": "2 ** 10"}),
    ("Add 12.5, 7.25 and 3.", {"expression": "12.5 + 7.25 + 3"}),
    ("What is the remainder of 100 divided by 7?", {"expression": "100 % 7"}),
    ("What is the area of a circle with radius 3?", {"expression": "pi * 3 ** 2"}),
    ("How much is 5% of 60?", {"expression": "5 * 60 / 100"}),
]


class CalculationError(ToolError):
    """An expression that is not valid or whose value is no real number of bounded size."""

    code = "invalid_expression"


@ToolRegistry.register("calculator")
class CalculatorTool(BuiltinTool):
    """Evaluates mathematical expressions safely: nothing but whitelisted operations runs.

    ``^`` means power. Integers have at most 4,300 digits. A division by zero, an overflow, a complex result
    and whatever else has no finite real value is a failed result that says so.

    Example:
        >>> CalculatorTool().execute(expression="sqrt(144) + 3**2").content
        '21.0'
    """

    tool_id = "calculator"

    def make_spec(self) -> ToolSpec:
        """Return the tool specification."""
        return ToolSpec(
            name="calculator",
            description=(
                "Evaluate a mathematical expression safely. Operators: + - * / // % **; functions: abs, round, min, "
                "max, sqrt, log, log10, log2, ln, sin, cos, tan, ceil, floor; constants: pi, e."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "expression": {
                        "type": "string",
                        "description": 'Math expression to evaluate, such as "2+3*4" or "sqrt(16)"',
                    },
                },
                "required": ["expression"],
            },
            category="math",
            metadata={"examples": list(EXAMPLES)},
        )

    def run(self, params: dict[str, Any]) -> ToolResult:
        """Evaluate the expression."""
        return ToolResult(self.name, str(calculate(text_param(params, "expression"))))


def calculate(expression: str) -> Number:
    """Return the value of an expression.

    Raises:
        CalculationError: ``invalid_expression``, ``division_by_zero``, ``too_large``, ``not_real``, …

    Example:
        >>> calculate("2 ^ 10 + ln(e)")
        1025.0
    """
    return _value(_parse(expression), 0)


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_CHARS:
        raise CalculationError(
            f"the expression has {len(expression):,} characters, at most {MAX_CHARS:,} are evaluated",
            code="too_large",
        )
    tokens = _tokens(expression.translate(_SIGNS))
    if not tokens:
        raise CalculationError("the expression is empty")
    if sum(token in _OPERATORS for token in tokens) > MAX_OPERATIONS:
        raise CalculationError(
            f"the expression has more than {MAX_OPERATIONS:,} operations", code="too_large"
        )
    try:
        return ast.parse(" ".join(tokens), mode="eval").body
    except (RecursionError, MemoryError):
        raise _too_deep() from None
    except (SyntaxError, ValueError) as error:
        if "digits" in str(error):
            raise _too_large() from None
        raise CalculationError(
            f"{_cut(expression)} is not a valid expression", hint=_hint(expression)
        ) from None


def _tokens(expression: str) -> list[str]:
    """Split into numbers, known names and operators: only these ever reach Python's parser."""
    tokens: list[str] = []
    position = depth = 0
    while position < len(expression):
        if expression[position].isspace():
            position += 1
            continue
        match = _TOKEN.match(expression, position)
        if match is None:
            raise CalculationError(
                f"{expression[position]!r} has no meaning in an expression",
                hint=f"operators: + - * / // % ** ( ) ,; functions and constants: {_names()}",
            )
        piece = match.group()
        if match.lastgroup == "name":
            piece = _known(piece, expression, match.start())
        depth += (piece == "(") - (piece == ")")
        if depth > MAX_DEPTH:
            raise _too_deep()
        tokens.append("**" if piece == "^" else piece)
        position = match.end()
    return tokens


def _known(name: str, expression: str, start: int) -> str:
    known = name.removeprefix("math.").lower()
    if start and expression[start - 1].isdigit():
        raise CalculationError(
            f"a sign is missing between a number and {name!r:.60}",
            hint="write 2 * pi, not 2pi, and 16 in place of 0x10",
        )
    if known in FUNCTIONS or known in CONSTANTS:
        return known
    hint = f"; {_hint(expression)}" if "%" in expression else ""
    raise CalculationError(f"unknown name {name!r:.60}", code="unknown_name", hint=f"known: {_names()}{hint}")


def _hint(expression: str) -> str:
    return "% is the remainder: for 15% of 340 write 0.15 * 340" if "%" in expression else _FORM


def _names() -> str:
    return ", ".join(sorted({*FUNCTIONS, *CONSTANTS}))


def _value(node: ast.expr, depth: int) -> Number:
    if depth > MAX_DEPTH:
        raise _too_deep()
    match node:
        case ast.Constant(value=int() | float() as number):
            return _checked(number, "the number")
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.BinOp():
            return _chain(node, depth)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            value = _value(operand, depth + 1)
            return -value if isinstance(sign, ast.USub) else value
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _call(name, [_value(arg, depth + 1) for arg in args])
        case ast.Name(id=name):
            raise CalculationError(f"{name} is a function", hint=f"write {name}(16)")
        case ast.Tuple():
            raise CalculationError(
                "a comma separates the arguments of a function",
                hint="write 1000 in place of 1,000, and 0.5 for 0,5",
            )
        case _:
            raise CalculationError("this is not arithmetic", hint=_FORM)


def _chain(node: ast.BinOp, depth: int) -> Number:
    """Evaluate ``a + b + c + …`` from the left without recursion: a sum of a thousand numbers is not deep."""
    links: list[ast.BinOp] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        links.append(left)
        left = left.left
    value = _value(left, depth + 1)
    for link in reversed(links):
        value = _apply(link.op, value, _value(link.right, depth + 1))
    return value


def _apply(operator: ast.operator, a: Number, b: Number) -> Number:
    try:
        match operator:
            case ast.Add():
                value: Any = a + b
            case ast.Sub():
                value = a - b
            case ast.Mult():
                value = a * b
            case ast.Div():
                value = a / b
            case ast.FloorDiv():
                value = a // b
            case ast.Mod():
                value = a % b
            case _:
                value = _power(a, b)
    except ZeroDivisionError:
        raise CalculationError("division by zero", code="division_by_zero") from None
    except OverflowError:
        raise _too_large() from None
    return _checked(value, "the result")


def _power(a: Number, b: Number) -> Any:
    # a has n bits, so a ** b has more than (n - 1) * b: known to be too large without computing it.
    if isinstance(a, int) and isinstance(b, int) and b > 0 and (a.bit_length() - 1) * b > _LIMIT_BITS:
        raise _too_large()
    return a**b


def _call(name: str, args: list[Number]) -> Number:
    least, most = ARITY.get(name, (1, 1))
    if not least <= len(args) <= most:
        wanted = f"{least}" if least == most else f"{least} or more" if most > 2 else f"{least} or {most}"  # noqa: PLR2004
        raise CalculationError(f"{name} takes {wanted} argument{'s' * (wanted != '1')}, not {len(args)}")
    shown = f"{name}({', '.join(_cut(str(arg)) for arg in args)})"
    if name == "round" and len(args) == 2:  # noqa: PLR2004
        places = args[1]
        if not isinstance(places, int) or abs(places) > MAX_DIGITS:
            raise CalculationError(f"{shown}: the places are a whole number of at most {MAX_DIGITS:,}")
    if name in ("max", "min"):
        args = [args] if len(args) == 1 else args  # pyright: ignore[reportAssignmentType] - max of one number
    try:
        return _checked(FUNCTIONS[name](*args), shown)
    except ZeroDivisionError:
        raise CalculationError(f"{shown}: division by zero", code="division_by_zero") from None
    except OverflowError:
        raise _too_large() from None
    except ValueError:
        raise CalculationError(f"{shown} is not a real number", code="not_real") from None


def _checked(value: Any, what: str) -> Number:
    if isinstance(value, complex):
        raise CalculationError(f"{what} is complex, not a real number", code="not_real")
    if isinstance(value, int):
        if abs(value) >= _LIMIT:
            raise _too_large()
    elif math.isinf(value):
        raise _too_large()
    elif math.isnan(value):
        raise CalculationError(f"{what} is not a number", code="not_real")
    return value


def _too_large() -> CalculationError:
    return CalculationError(
        "overflow: the number is too large",
        code="too_large",
        hint=f"integers have at most {MAX_DIGITS:,} digits, other numbers stay below 1.8e308",
    )


def _too_deep() -> CalculationError:
    return CalculationError(f"the expression is nested more than {MAX_DEPTH} deep", code="too_large")


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004
