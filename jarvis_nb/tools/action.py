"""``@action``: a typed function becomes a tool; its signature and docstring are the schema."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, overload

from jarvis_nb.core.errors import InvalidArguments, ToolsetError
from jarvis_nb.core.types import ToolDefinition, ToolResult
from jarvis_nb.tools.base import BaseTool, Kind, ToolContext, ToolLike, ToolSpec, check_name
from jarvis_nb.tools.docstring import read_docstring
from jarvis_nb.tools.signature import Parameter, read_signature

P = ParamSpec("P")
R = TypeVar("R")

Example = tuple[str, dict[str, Any]]


class Action(BaseTool, Generic[P, R]):
    """One validated function as a tool. Made by :func:`action`; still callable like the function.

    Args:
        fn: A function, sync or async; a bound method, a partial or a callable object.
        name: The name for the model; the function's own if empty.
        description: What the model reads; the docstring's text if empty.
        timeout: Seconds until a call is reported as timed out; None for no limit.
        requires_confirmation: Ask before each call.
        idempotent: A flow may try it again after a failure.
        examples: ``(question, arguments)`` pairs that the embedded model learns from.
        category: Such as math, memory, reasoning.

    Raises:
        ToolsetError: ``invalid_name``, ``blank_description``, ``unsupported_signature``,
            ``unsupported_annotation``, ``invalid_example`` or ``invalid_timeout``, here, where it is defined.
    """

    kind: Kind = "action"

    def __init__(
        self,
        fn: Callable[P, R],
        *,
        name: str = "",
        description: str = "",
        timeout: float | None = 30.0,
        requires_confirmation: bool = False,
        idempotent: bool = False,
        examples: Iterable[Example] = (),
        category: str = "",
    ) -> None:
        if isinstance(fn, Action):  # what asked for a person's word asks for it under another name too
            requires_confirmation = requires_confirmation or fn.spec.requires_confirmation
        fn = _function(fn)
        core = _core(fn)
        self.fn = fn
        self.idempotent = idempotent
        self.tool_id = name = name or getattr(core, "__name__", "") or type(core).__name__
        _check_author_name(name)
        owner = f"the tool {name!r}"
        doc = read_docstring(_docstring(core))
        description = description.strip() or doc.description
        if not description:
            raise ToolsetError(
                f"{owner} has a blank description",
                code="blank_description",
                value=name,
                hint="give it a docstring that tells the model what it does",
            )
        _check_timeout(timeout, owner)
        self._signature = read_signature(fn, owner, doc)
        self._plan(self._signature.parameters)
        self._spec = ToolSpec(
            name,
            description,
            self._signature.schema,
            category,
            requires_confirmation=requires_confirmation,
            timeout_seconds=float("inf") if timeout is None else float(timeout),
        )
        self._is_async = _gives_awaitable(fn)
        examples = list(examples)
        if examples:
            self._spec.metadata["examples"] = [self._example(one) for one in examples]
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(self, attribute, getattr(core, attribute, None))
        self.__wrapped__ = fn

    def _plan(self, parameters: dict[str, Parameter]) -> None:
        """Prepare what a call looks at."""
        self._exact = {name: one.shape.exact for name, one in parameters.items()}
        self._required = frozenset(name for name, one in parameters.items() if one.required)
        self._positional = [one for one in parameters.values() if one.positional]
        self._made = [one for one in parameters.values() if one.default is not None]

    def _example(self, example: Any) -> Example:
        problem = "it is a pair of a question and its arguments"
        if isinstance(example, tuple | list) and [type(part) for part in example] == [str, dict]:
            try:
                self.check_arguments(example[1])
            except InvalidArguments as error:
                problem = error.message
            else:
                return example[0], example[1]
        raise ToolsetError(
            f"an example of the tool {self.tool_id!r} does not fit: {problem}",
            code="invalid_example",
            value=example,
            hint=f"got {example!r:.200}",
        )

    @property
    def spec(self) -> ToolSpec:
        """The tool specification, made from the function."""
        return self._spec

    @property
    def definition(self) -> ToolDefinition:
        """What a model is told: canonical, strict, plain data. Made once."""
        if self._definition is None:
            # Made of canonical parts, and so canonical itself.
            self._definition = ToolDefinition(self.name, self._spec.description, self._spec.parameters)
        return self._definition

    @functools.cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the result, from the return annotation; None where that does not tell."""
        from jarvis_nb.tools.schema import output_schema_of

        returns = self._signature.returns
        return None if returns in (inspect.Parameter.empty, Any, ToolResult) else output_schema_of(returns)

    @property
    def is_async(self) -> bool:
        """Whether the function is async and so runs on the loop, not in a thread."""
        return self._is_async

    @property
    def wants_context(self) -> bool:
        """Whether a parameter gets the :class:`ToolContext`."""
        return bool(self._signature.context)

    def with_name(self, name: str) -> Self:
        """Return a copy under another name; the tool itself keeps its own.

        Raises:
            ToolsetError: ``invalid_name``.
        """
        renamed = super().with_name(name)
        renamed._spec = copy(self._spec)  # noqa: SLF001 - a copy of self
        renamed._spec.name = name  # noqa: SLF001
        return renamed

    def check_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them: models made, dates parsed, "2" as 2.

        Raises:
            InvalidArguments: Lists every problem with its field.
        """
        exact = self._exact
        for name, value in arguments.items():
            if exact.get(name) is not type(value):
                return self._check_fully(arguments)
        if len(arguments) < len(exact) and not self._required <= arguments.keys():
            return self._check_fully(arguments)
        return arguments

    def _check_fully(self, arguments: dict[str, Any]) -> dict[str, Any]:
        from pydantic import ValidationError

        from jarvis_nb.tools.schema import problems_of

        out: dict[str, Any] = {}
        problems: list[dict[str, str]] = []
        parameters = self._signature.parameters
        for name, value in arguments.items():
            one = parameters.get(name)
            if one is None:
                valid = f"; valid: {', '.join(parameters) or 'none'}"
                problems.append({"field": str(name)[:200], "message": f"is not expected{valid}"})
            elif value is None and not one.required and not one.shape.takes_null:
                continue  # null stands for the default where null is no value
            else:
                try:
                    out[name] = one.shape.check(value)
                except ValidationError as error:
                    problems += problems_of(error, name, value)
        problems += [
            {"field": name, "message": "is missing"}
            for name in parameters
            if name in self._required - arguments.keys()
        ]
        if problems:
            raise InvalidArguments(problems)
        return out

    def invoke(self, arguments: dict[str, Any], context: ToolContext) -> R:
        """Call the function with checked arguments."""
        if not (self._signature.context or self._made or self._positional):
            return cast("Callable[..., R]", self.fn)(**arguments)
        return self._invoke_fully(dict(arguments), context)

    def _invoke_fully(self, arguments: dict[str, Any], context: ToolContext) -> R:
        for one in self._made:
            if one.default is not None and one.name not in arguments:
                arguments[one.name] = one.default()
        arguments.update(dict.fromkeys(self._signature.context, context))
        places = [arguments.pop(one.name) for one in self._positional]
        return cast("Callable[..., R]", self.fn)(*places, **arguments)

    def execute(self, /, **params: Any) -> ToolResult | Awaitable[ToolResult]:
        """Check the parameters, run the function and wrap what it returns; awaitable for an async function.

        Raises:
            InvalidArguments: A parameter does not fit.
            Exception: Whatever the function raises; the executor is what makes results of errors.
        """
        value = self.invoke(self.check_arguments(params), ToolContext(tool_name=self.name))
        return self._awaited(value) if inspect.isawaitable(value) else self._wrap(value)

    async def _awaited(self, value: Awaitable[Any]) -> ToolResult:
        return self._wrap(await value)

    def _wrap(self, value: Any) -> ToolResult:
        if isinstance(value, ToolResult):
            return value
        from jarvis_nb.tools.content import render

        return ToolResult(self.name, render(value))

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it had never become a tool."""
        return self.fn(*args, **kwargs)


@overload
def action(
    fn: Callable[P, R],
    /,
    *,
    name: str = "",
    description: str = "",
    timeout: float | None = 30.0,
    requires_confirmation: bool = False,
    idempotent: bool = False,
    examples: Iterable[Example] = (),
    category: str = "",
) -> Action[P, R]: ...
@overload
def action(
    *,
    name: str = "",
    description: str = "",
    timeout: float | None = 30.0,
    requires_confirmation: bool = False,
    idempotent: bool = False,
    examples: Iterable[Example] = (),
    category: str = "",
) -> Callable[[Callable[P, R]], Action[P, R]]: ...
def action(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a typed function; see :class:`Action` for the options.

    The signature becomes the schema, the docstring (google, numpy or sphinx style) the descriptions. A
    parameter annotated :class:`ToolContext` gets the host's run context and is not shown to the model.

    Raises:
        ToolsetError: The function cannot be a tool as it stands; the message names the tool.

    Example:
        >>> @action
        ... def lookup_order(order_id: str) -> dict:
        ...     "Look up one order by ID."
        ...     return {"order_id": order_id, "total_cents": 4200}
        >>> lookup_order.definition.parameters["properties"]
        {'order_id': {'type': 'string'}}
        >>> lookup_order("ORD-5")
        {'order_id': 'ORD-5', 'total_cents': 4200}
    """
    return functools.partial(Action, **options) if fn is None else Action(fn, **options)


def as_tool(obj: ToolLike | Any) -> BaseTool:
    """Return a tool as it is, what offers ``as_tool()`` as that, and a function as an action.

    Raises:
        ToolsetError: ``not_a_tool``, or why the function cannot be one.

    Example:
        >>> def ping(host: str) -> str:
        ...     "Ping a host."
        ...     return f"{host} is up"
        >>> as_tool(ping)
        Action('ping')
    """
    if isinstance(obj, BaseTool):
        return obj
    if isinstance(obj, type):
        raise _not_a_tool(obj.__name__, obj, f"give an instance: {obj.__name__}()")
    offered = getattr(obj, "as_tool", None)
    if callable(offered):
        return cast("BaseTool", offered())
    if callable(obj):
        return Action(obj)
    raise _not_a_tool(f"{obj!r:.100}", obj, "a tool is a BaseTool, a function or a Flow")


def _not_a_tool(what: str, obj: Any, hint: str) -> ToolsetError:
    return ToolsetError(f"{what} is not a tool", code="not_a_tool", value=obj, hint=hint)


def _function(fn: Any) -> Any:
    """Return the function that a decorator may have wrapped already."""
    if isinstance(fn, Action):
        return cast("Action[..., Any]", fn).fn
    if isinstance(fn, staticmethod):
        return cast("staticmethod[..., Any]", fn).__func__
    if isinstance(fn, type | BaseTool) or not callable(fn):
        what = fn.__name__ if isinstance(fn, type) else f"{fn!r:.100}"
        raise _not_a_tool(what, fn, "@action stands above a function")
    return fn


def _core(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def _docstring(core: Any) -> str | None:
    if inspect.isroutine(core):
        return core.__doc__
    return type(core).__call__.__doc__ or type(core).__doc__


def _check_author_name(name: str) -> None:
    try:
        check_name(name)
    except ToolsetError as error:
        raise ToolsetError(
            error.message, code=error.code, value=name, hint=f"{error.hint}; @action(name=…) sets one"
        ) from None


def _check_timeout(timeout: Any, owner: str) -> None:
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ToolsetError(
            f"the timeout of {owner} is {timeout!r:.100}",
            code="invalid_timeout",
            value=timeout,
            hint="it is a number of seconds above 0, or None for no limit",
        )


def _gives_awaitable(fn: Any) -> bool:
    core = _core(fn)
    if not inspect.isroutine(core):
        core = type(core).__call__
    return inspect.iscoroutinefunction(core) or inspect.isasyncgenfunction(core)
