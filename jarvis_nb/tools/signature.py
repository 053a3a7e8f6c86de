"""A function's signature and docstring, as a model and a call need them."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from jarvis_nb.core.errors import NotPortable, ToolsetError
from jarvis_nb.core.portable import portable
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.core.subschemas import Schema
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.tools.content import json_value
from jarvis_nb.tools.docstring import Doc
from jarvis_nb.tools.schema import Shape, is_field, shape_of, type_name

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that a model fills in."""

    name: str
    shape: Shape
    required: bool
    positional: bool
    """Python takes it by place only."""
    default: Callable[[], Any] | None
    """Makes the default, where Python would not put it in by itself: it stands in a ``Field``."""
    schema: Schema


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives."""

    parameters: dict[str, Parameter]
    context: tuple[str, ...]
    """Names of the parameters that get the :class:`ToolContext`."""
    returns: Any
    """The return annotation; ``inspect.Parameter.empty`` where there is none, or none that can be resolved."""
    schema: Schema
    """JSON Schema of the parameters, canonical."""


def read_signature(fn: Callable[..., Any], owner: str, doc: Doc) -> Signature:
    """Read the signature of a tool.

    Args:
        fn: A function, method, partial or callable object.
        owner: How errors name the tool.
        doc: Its docstring, for the descriptions of the parameters.

    Raises:
        ToolsetError: ``unsupported_signature`` or ``unsupported_annotation``, naming tool and parameter.
    """
    try:
        given = _signature(fn)
    except (ValueError, TypeError, NameError) as error:
        raise ToolsetError(
            f"the signature of {owner} cannot be read: {error}", code="unsupported_signature", value=fn
        ) from error
    bound = _bound_names(fn)
    space = _Namespace(fn)
    parameters: dict[str, Parameter] = {}
    context: list[str] = []
    for place, (name, one) in enumerate(given.parameters.items()):
        if name in bound:
            continue
        _check_kind(one, owner, fn, first=place == 0)
        annotation = (
            Any if one.annotation is _EMPTY else space.resolve(one.annotation, f"{name!r} of {owner}")
        )
        if _is_context(annotation):
            context.append(name)
        else:
            parameters[name] = _parameter(one, annotation, owner, doc.parameters.get(name, ""))
    returns: Any = given.return_annotation
    if returns is not _EMPTY:
        try:
            returns = space.resolve(returns, f"the result of {owner}")
        except ToolsetError:  # it only says what comes back, which a call shows anyway
            returns = _EMPTY
    return Signature(parameters, tuple(context), returns, _object_schema(parameters))


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except NameError:
        if sys.version_info < (3, 14):
            raise
        # Python 3.14 evaluates annotations only now; names that are not there become references, which are
        # looked up one by one.
        from annotationlib import Format

        return inspect.signature(fn, annotation_format=Format.FORWARDREF)


def _bound_names(fn: Any) -> frozenset[str]:
    """Return the keywords a partial fixed: the host's business, never shown to the model."""
    names: set[str] = set()
    while isinstance(fn, functools.partial):
        names |= fn.keywords.keys()
        fn = fn.func
    return frozenset(names)


def _check_kind(one: inspect.Parameter, owner: str, fn: Any, *, first: bool) -> None:
    if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**"
        raise ToolsetError(
            f"{owner} takes {stars}{one.name}: a model cannot be told what to put there",
            code="unsupported_signature",
            value=one.name,
            hint="name the parameters, or take one list or dict",
        )
    scope = getattr(fn, "__qualname__", "").rpartition(".")[0]
    if (
        first
        and one.name in ("self", "cls")
        and one.annotation is _EMPTY
        and scope
        and not scope.endswith("<locals>")
    ):
        raise ToolsetError(
            f"{owner} is defined in the class {scope}: as a tool it would ask the model for {one.name!r}",
            code="unsupported_signature",
            value=one.name,
            hint=f"make a tool of a bound method: action({scope.rpartition('.')[2].casefold()}.{fn.__name__})",
        )


def _parameter(one: inspect.Parameter, annotation: Any, owner: str, described: str) -> Parameter:
    try:
        shape = shape_of(annotation)
        info: FieldInfo | None = None
        if is_field(one.default):  # x: int = Field(…), pydantic's way to write a default and more
            info = one.default
            shape = shape_of(Annotated[annotation, info])
    except ToolsetError as error:
        raise ToolsetError(
            f"the parameter {one.name!r} of {owner}: {error.message}",
            code=error.code,
            value=annotation,
            hint=error.hint,
        ) from error
    default, make = _default(one.default, shape.default if info is None else info)
    schema = shape.schema
    text = shape.description or described
    if text:
        schema = {**schema, "description": text}
    if default is not _EMPTY:
        schema = {**schema, **_shown_default(shape, default)}
    positional = one.kind is one.POSITIONAL_ONLY
    if (
        positional and make is None and default is not _EMPTY
    ):  # by place, it cannot be left out before another
        make = partial(_same, default)
    return Parameter(one.name, shape, default is _EMPTY and make is None, positional, make, schema)


def _same(value: Any) -> Any:
    return value


def _default(given: Any, info: FieldInfo | None) -> tuple[Any, Callable[[], Any] | None]:
    """Return the default and, where Python does not know it, what makes it."""
    if info is None or not (given is info or given is _EMPTY):
        return given, None
    if info.is_required():
        return _EMPTY, None
    if info.default_factory is not None:
        return _EMPTY, cast("Callable[[], Any]", info.default_factory)
    return info.default, partial(deepcopy, info.default)


def _shown_default(shape: Shape, default: Any) -> Schema:
    """Return the default for the schema; one that JSON cannot hold is left out."""
    if default is None or type(default) in (str, int, bool):
        return {"default": default}
    if type(default) is float:
        return {"default": default} if isfinite(default) else {}
    try:
        return {"default": portable(default)}
    except NotPortable:
        pass  # perhaps pydantic knows its JSON form
    try:
        written = shape.adapter.dump_python(default, mode="json", warnings=False)
        if isinstance(default, set | frozenset):
            written = json_value(default)  # the same order every time
        return {"default": portable(written)}
    except Exception:  # pydantic cannot write it, or the author's own code fails: it stays what Python uses
        return {}


def _object_schema(parameters: dict[str, Parameter]) -> Schema:
    properties = {name: one.schema for name, one in parameters.items()}
    required = [name for name, one in parameters.items() if one.required]
    out: Schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    definitions: Schema = {}
    for one in parameters.values():
        for name, schema in one.shape.definitions.items():
            if definitions.setdefault(name, schema) != schema:  # two classes of one name
                return _disambiguated(parameters, out)
    return {**out, "$defs": definitions} if definitions else out


def _disambiguated(parameters: dict[str, Parameter], out: Schema) -> Schema:
    """Let pydantic name the definitions of all parameters together."""
    from pydantic import TypeAdapter

    made, shared = TypeAdapter.json_schemas(
        [(n, "validation", one.shape.adapter) for n, one in parameters.items()]
    )
    properties = {
        name: {
            **made[name, "validation"],
            **{k: v for k, v in one.schema.items() if k in ("description", "default")},
        }
        for name, one in parameters.items()
    }
    return canonical_schema({**out, "properties": properties, "$defs": shared["$defs"]})


def _is_context(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, ToolContext)
    return get_origin(annotation) in (Union, types.UnionType) and ToolContext in get_args(annotation)


class _Namespace:
    """Where the names in a function's annotations are looked up."""

    def __init__(self, fn: Any) -> None:
        while isinstance(fn, functools.partial):
            fn = fn.func
        if not inspect.isroutine(fn) and hasattr(fn, "__call__"):  # noqa: B004 - its code is what is wanted
            fn = type(fn).__call__
        self._globals: dict[str, Any] = getattr(inspect.unwrap(fn), "__globals__", {})

    def resolve(self, annotation: Any, owner: str) -> Any:
        """Return the annotation with every name in it looked up.

        Raises:
            ToolsetError: ``unsupported_annotation``: a name is not there at run time.
        """
        if _is_resolved(annotation):
            return annotation
        try:
            return self._evaluate(annotation, None)
        except NameError as error:
            for names in _callers():
                if error.name in names:
                    try:
                        return self._evaluate(annotation, names)
                    except NameError:
                        continue
            problem: Exception = error
        except Exception as error:  # an annotation is any expression
            problem = error
        raise ToolsetError(
            f"the annotation {type_name(annotation)!r} of {owner} cannot be evaluated: {problem}",
            code="unsupported_annotation",
            value=annotation,
            hint="import its names where the tool is defined, not under TYPE_CHECKING",
        ) from problem

    def _evaluate(self, annotation: Any, names: dict[str, Any] | None) -> Any:
        def holder() -> None: ...

        holder.__annotations__ = {"it": annotation}
        return typing.get_type_hints(holder, self._globals, names, include_extras=True)["it"]


def _callers() -> Iterator[dict[str, Any]]:
    """Yield the local names of the callers, the nearest first: a tool may be defined inside a function."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame.f_locals
        frame = frame.f_back


def _is_resolved(annotation: Any) -> bool:
    try:
        return _remembered(annotation)
    except TypeError:  # not hashable
        return _look_for_names(annotation)


def _look_for_names(annotation: Any) -> bool:
    if isinstance(annotation, str | ForwardRef):
        return False
    if isinstance(annotation, type | TypeVar) and not get_args(annotation):
        return True
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return True
    if get_origin(annotation) is Annotated:
        inner = inner[:1]
    return all(_is_resolved(part) for part in inner if not isinstance(part, list))


_remembered = functools.lru_cache(maxsize=4096)(_look_for_names)
