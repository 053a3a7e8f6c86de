"""A flow's declared inputs as the strict JSON Schema of its parameters."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping
from typing import Any

from jarvis_nb.core.errors import ToolsetError
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.toolsets.flows.fits import constant_problem
from jarvis_nb.toolsets.flows.problems import FlowError, Problem

Schema = dict[str, Any]

_NONE = inspect.Parameter.empty


def parameters_of(flow: str, inputs: Mapping[str, Any]) -> Schema:
    """Return the canonical schema of a flow's inputs.

    Args:
        flow: The flow's name, for errors.
        inputs: Name to a type annotation, to ``(annotation, default)``, or to a JSON Schema.

    Raises:
        FlowError: ``invalid_input``: a name or a type that cannot be; ``type_mismatch``: a default that its
            own type refuses; ``not_portable``: a default that is no data.

    Example:
        >>> parameters_of("f", {"order_id": str, "percent": (int, 10)})["required"]
        ['order_id']
    """
    if not isinstance(inputs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - the author's word
        hint = 'give a dict of names and types: {"order_id": str}'
        raise FlowError(flow, [Problem("invalid_input", f"inputs is {inputs!r:.100}", hint=hint)])
    problems: list[Problem] = []
    annotated: list[inspect.Parameter] = []
    properties: dict[str, Schema] = {}
    definitions: Schema = {}
    for name, given in inputs.items():
        if not str(name).isidentifier() or keyword.iskeyword(name):
            hint = "use an identifier"
            problems.append(
                Problem("invalid_input", "it is no input name", path=f"input {name!r:.100}", hint=hint)
            )
        elif isinstance(given, dict):
            properties[name] = {key: part for key, part in given.items() if key != "$defs"}
            definitions |= given.get("$defs", {})
        else:
            properties[name] = {}
            annotated += _parameter(name, given, problems)
    made = _schema_of(annotated)
    definitions |= made.get("$defs", {})
    properties |= made["properties"]
    # An input that may be left out has a default to use: what has none is required.
    required = [name for name, schema in properties.items() if "default" not in schema]
    root = {"type": "object", "properties": properties, "required": required, "$defs": definitions}
    problems += _refused_defaults(root)
    if problems:
        raise FlowError(flow, problems)
    return canonical_schema(root if definitions else {k: v for k, v in root.items() if k != "$defs"})


def _parameter(name: str, given: Any, problems: list[Problem]) -> list[inspect.Parameter]:
    """Return an annotated input as a parameter; none, and a problem, if it cannot be one."""
    annotation, default = given if isinstance(given, tuple) and len(given) == 2 else (given, _NONE)  # noqa: PLR2004
    path = f"input {name!r}"
    try:
        one = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        schema = _schema_of([one])["properties"].get(name)
    except ToolsetError as error:
        problems.append(Problem("invalid_input", error.message, path=path, hint=error.hint or ""))
        return []
    if schema is None:
        problems.append(Problem("invalid_input", "it is no type of a value", path=path))
        return []
    if default is not _NONE and "default" not in schema:
        problems.append(
            Problem("not_portable", "its default is no data", path=path, hint="a default is plain data")
        )
    return [one]


def _schema_of(parameters: list[inspect.Parameter]) -> Schema:
    """Return the schema an action with these parameters would have."""
    from jarvis_nb.tools.docstring import Doc
    from jarvis_nb.tools.signature import read_signature

    def flow() -> None: ...

    flow.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return read_signature(flow, "the flow", Doc()).schema


def _refused_defaults(root: Schema) -> list[Problem]:
    found: list[Problem] = []
    for name, schema in root["properties"].items():
        refused = constant_problem(schema["default"], schema, root) if "default" in schema else None
        if refused:
            found.append(Problem("type_mismatch", f"its default: {refused}", path=f"input {name!r}"))
    return found
