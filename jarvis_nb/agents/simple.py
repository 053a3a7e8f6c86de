"""The agent without tools: one model call."""

from __future__ import annotations

from typing import ClassVar

from jarvis_nb.agents.base import BaseAgent
from jarvis_nb.agents.run import Run


class SimpleAgent(BaseAgent):
    """Asks the model once. A tool call it makes all the same is refused and recorded."""

    agent_id: ClassVar[str] = "simple"
    takes_tools: ClassVar[bool] = False

    async def run(self, run: Run) -> None:
        """Carry the run out."""
        turn = await run.ask_model(with_tools=False)
        if turn.calls:
            await run.run_calls(turn)
            if not turn.text:
                run.fail(
                    "stray_tool_call",
                    "the model called a tool though none was offered, and said nothing else",
                )
