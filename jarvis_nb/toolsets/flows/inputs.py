"""A flow's declared inputs as the strict JSON Schema of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jarvis_nb.core.errors import NotPortable
from jarvis_nb.core.portable import portable
from jarvis_nb.core.schema import canonical_schema
from jarvis_nb.toolsets.flows.fits import constant_problem
from jarvis_nb.toolsets.flows.problems import FlowError, Problem

Schema = dict[str, Any]


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
    problems: list[Problem] = []
    schemas: dict[str, Schema] = {}
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, given in inputs.items():
        path = f"input {name!r:.100}"
        if not str(name).isidentifier():
            problems.append(
                Problem("invalid_input", "it is no input name", path=path, hint="use an identifier")
            )
            continue
        if isinstance(given, tuple) and len(given) == 2:  # noqa: PLR2004 - (annotation, default)
            given, default = given  # noqa: PLW2901 - the annotation alone
            try:
                defaults[name] = portable(default, path)
            except NotPortable as error:
                problems.append(
                    Problem("not_portable", error.message, path=path, hint="a default is plain data")
                )
        if isinstance(given, dict):
            schemas[name] = given
        else:
            annotations[name] = given
    made, definitions = _from_annotations(annotations, problems)
    schemas |= made
    properties = {name: schemas[name] for name in inputs if name in schemas}
    for name, default in defaults.items():
        if name in properties:
            properties[name] = {**properties[name], "default": default}
    root: Schema = {"type": "object", "properties": properties, "required": list(properties), **definitions}
    problems += _refused_defaults(root)
    if problems:
        raise FlowError(flow, problems)
    return canonical_schema(root)


def _from_annotations(
    annotations: dict[str, Any], problems: list[Problem]
) -> tuple[dict[str, Schema], Schema]:
    """Return the schemas of type annotations by name, and the definitions they share."""
    if not annotations:
        return {}, {}
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    adapters: list[Any] = []
    for name, annotation in annotations.items():
        try:
            adapter: Any = TypeAdapter(annotation)
            adapter.json_schema()
        except PydanticUserError as error:
            text = str(error).partition("\n")[0]
            hint = "use types that JSON can hold"
            problems.append(Problem("invalid_input", f"{text:.200}", path=f"input {name!r}", hint=hint))
        else:
            adapters.append((name, "validation", adapter))
    by_key, shared = TypeAdapter.json_schemas(adapters)
    return {name: schema for (name, _), schema in by_key.items()}, {
        k: v for k, v in shared.items() if k == "$defs"
    }


def _refused_defaults(root: Schema) -> list[Problem]:
    found: list[Problem] = []
    for name, schema in root["properties"].items():
        refused = constant_problem(schema["default"], schema, root) if "default" in schema else None
        if refused:
            found.append(Problem("type_mismatch", f"its default: {refused}", path=f"input {name!r}"))
    return found
