"""What every agent is: a way to bring one run from its question to its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from jarvis_nb.agents.run import Run


class BaseAgent(ABC):
    """The base of every agent. Register one with ``@AgentRegistry.register("name")``."""

    agent_id: ClassVar[str] = ""
    takes_tools: ClassVar[bool] = True
    """Whether it is an error to ask this agent with tools."""

    @abstractmethod
    async def run(self, run: Run) -> None:
        """Carry the run out; every step is recorded on it as it happens."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
