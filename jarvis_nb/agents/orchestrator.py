"""The tool-calling loop."""

from __future__ import annotations

from typing import ClassVar

from jarvis_nb.agents.base import BaseAgent
from jarvis_nb.agents.run import Run
from jarvis_nb.core.errors import ErrorInfo


class OrchestratorAgent(BaseAgent):
    """Asks the model, runs the calls of a round together, and asks again until it answers in words."""

    agent_id: ClassVar[str] = "orchestrator"

    async def run(self, run: Run) -> None:
        """Carry the run out."""
        over: ErrorInfo | None = None
        while True:
            over = over or run.tools_used_up()
            repeated: ErrorInfo | None = None
            turn = await run.ask_model(with_tools=over is None)
            if turn.calls:
                repeated = await run.run_calls(turn, refuse=over)
                if run.reply.status == "paused":
                    return
            if not turn.calls or over is not None:
                break
            over = repeated
            if run.spent():
                return
        if over is not None:
            run.end("max_rounds", over)
        else:
            run.check_requirement()
