"""What became of a call, as the record of the reply has it."""

from __future__ import annotations

from collections.abc import Mapping

from jarvis_nb.record import Attempt, ToolRef
from jarvis_nb.tools.calls import copied, read_arguments
from jarvis_nb.tools.outcome import Outcome


def make_attempt(
    outcome: Outcome, round_: int, index: int, by: Mapping[str, str], run_started: float
) -> Attempt:
    """Return the attempt of a settled call.

    Args:
        outcome: The call and what became of it.
        round_: The model call that asked for it.
        index: Its place in the round.
        by: Who chose the tool and the arguments, where the engine says.
        run_started: When the run started, in seconds of the performance counter.
    """
    call, tool, result = outcome.call, outcome.tool, outcome.result
    arguments = outcome.arguments
    if arguments is None and call.raw_arguments is None:  # refused before anybody read them
        read = read_arguments(call.arguments)
        arguments = copied(read) if isinstance(read, dict) else None
    shown = call.raw_name if tool is None and call.raw_name is not None else call.name
    return Attempt(
        ToolRef(tool.kind, tool.name, tool.source) if tool else ToolRef("tool", shown),
        call.id,
        round_,
        index,
        arguments,
        outcome.status,
        outcome.ran,
        outcome.output,
        result.content,
        outcome.error,
        outcome.truncated,
        outcome.steps,
        call.provider_id,
        call.raw_name,
        call.raw_arguments,
        dict(by),
        result.usage,
        result.cost_usd,
        result.metadata,
        outcome.value,
        outcome.started - run_started if outcome.started else 0.0,
        max(outcome.ended - outcome.started, 0.0),
    )
