"""Tables and arrays a tool returns, recognised by what they offer: none of their libraries is imported."""

from __future__ import annotations

from typing import Any


def records(value: Any) -> tuple[Any] | None:
    """Return a table as a list of records, an array as nested lists, in a tuple of one; None for neither.

    pandas, polars, pyarrow and numpy (and what looks like them) are understood. A data frame's index is
    kept as columns where it says more than the row's number.
    """
    kind = type(value)
    for method in ("to_dicts", "to_pylist"):  # polars, pyarrow
        if hasattr(kind, method):
            return (getattr(value, method)(),)
    if hasattr(kind, "to_dict") and hasattr(value, "columns"):
        return (_frame(value),)
    if hasattr(kind, "to_dict") and hasattr(kind, "index") and hasattr(kind, "dtype"):
        return (value.tolist() if _is_counted(value.index) else value.to_dict(),)
    for method in ("tolist", "to_list"):
        if hasattr(kind, method) and hasattr(kind, "dtype"):
            return (getattr(value, method)(),)
    return None


def _frame(value: Any) -> Any:
    if not _is_counted(getattr(value, "index", None)) and hasattr(value, "reset_index"):
        value = value.reset_index()
    if not getattr(value.columns, "is_unique", True):  # all but one of them would be dropped
        value = value.set_axis(_distinct([str(name) for name in value.columns]), axis="columns")
    return value.to_dict(orient="records")


def _is_counted(index: Any) -> bool:
    """Whether an index only numbers the rows."""
    if index is None:
        return True
    return type(index).__name__ == "RangeIndex" and index.name is None and index.start == 0


def _distinct(names: list[str]) -> list[str]:
    out: list[str] = []
    for name in names:
        n, fresh = 2, name
        while fresh in out:
            fresh, n = f"{name}_{n}", n + 1
        out.append(fresh)
    return out
