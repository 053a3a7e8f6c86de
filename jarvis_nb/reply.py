"""What an ask gives back: the answer and the whole record of how it came about."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from jarvis_nb.core.errors import ErrorInfo, InvalidRequest
from jarvis_nb.core.types import JSON, Definitions, Message, Repair, ToolDefinition, Usage
from jarvis_nb.record import Attempt, ModelCall, RoundOffer, ToolRef, error_from

if TYPE_CHECKING:
    from jarvis_nb.toolsets.policy import ToolPolicy

__all__ = ["Attempt", "Reply", "ToolRef"]

Status = Literal["completed", "failed", "max_rounds", "cancelled", "paused"]

FORMAT = 1
"""The version of the saved form."""

_PLAIN: dict[str, Any] = {
    "question": str, "output": str, "status": str, "agent": str | None, "model": str, "engine": str,
    "reasoning": str, "warnings": list, "policy": dict, "injected": list, "limits": dict, "options": dict,
}  # fmt: skip
"""The fields that are saved as they are."""


@dataclass
class Reply(Mapping[str, Any]):
    """The outcome of one ask. A mapping of the plain facts, with the record beside them.

    As a mapping it has ``content``, ``usage``, ``model`` and ``engine``, and in agent mode also
    ``tool_results`` and ``turns``.

    Example:
        >>> from jarvis_nb import Jarvis
        >>> from jarvis_nb.engines import ScriptedEngine, call
        >>> j = Jarvis(engine=ScriptedEngine([call("calculator", expression="2+2"), "It is 4."]))
        >>> r = j.ask_full("2+2?", tools=["calculator"])
        >>> r["content"], r.status, r.tool_rounds, r["turns"]
        ('It is 4.', 'completed', 1, 2)
        >>> r.tool_attempts[0].output
        '4'
    """

    question: str
    output: str = ""
    """The answer. Empty when there is none: an answer is never invented."""
    status: Status = "completed"
    error: ErrorInfo | None = None
    """Why the status is what it is, unless it is ``completed``."""
    tool_attempts: list[Attempt] = field(default_factory=list)
    """Every tool call in the model's order, refused ones too."""
    offers: list[RoundOffer] = field(default_factory=list)
    """What each model call was offered, hidden tools with the reason."""
    model_calls: list[ModelCall] = field(default_factory=list)
    """The model calls, each with its raw response."""
    messages: list[Message] = field(default_factory=list)
    """The closed conversation: give it to the next ask as ``history``."""
    repairs: list[Repair] = field(default_factory=list)
    """What of the model's messages had to be mended."""
    warnings: list[str] = field(default_factory=list)
    model: str = ""
    engine: str = ""
    agent: str | None = None
    """None in direct mode."""
    reasoning: str = ""
    """Thinking that came beside the answer."""
    usage: Usage = Usage()
    """Tokens of all model calls of this ask."""
    definitions: Definitions = field(default_factory=Definitions)
    """The definitions of the tools that were offered."""
    policy: JSON = field(default_factory=dict)
    """The policy of the request, as plain data."""
    injected: list[JSON] = field(default_factory=list)
    """What memory put into the system message, and why."""
    limits: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Temperature and the like, kept for a resume."""

    # The mapping.

    def _keys(self) -> tuple[str, ...]:
        direct = ("content", "usage", "model", "engine")
        return direct if self.agent is None else (*direct, "tool_results", "turns")

    def __getitem__(self, key: str) -> Any:
        if key in self._keys():
            if key == "content":
                return self.output
            if key == "usage":
                return self.usage.to_dict()
            return getattr(self, key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    # Facts that follow from the record.

    @property
    def turns(self) -> int:
        """The number of model calls: tool rounds and the final answer."""
        return len(self.model_calls)

    @property
    def tool_rounds(self) -> int:
        """The number of rounds that ran tools; one round means two model calls."""
        return len({a.round for a in self.tool_attempts if a.ran})

    @property
    def tool_results(self) -> list[JSON]:
        """One dict a call: ``tool_name``, ``content``, ``success`` and more, in call order."""
        return [
            {
                "tool_name": a.tool.name,
                "content": a.content,
                "success": a.success,
                "usage": a.usage,
                "cost_usd": a.cost_usd,
                "latency_seconds": a.seconds,
                "metadata": a.metadata,
            }
            for a in self.tool_attempts
        ]

    @cached_property
    def cost_usd(self) -> float | None:
        """US dollars of the model calls and of tools that ask models; None where a price is unknown."""
        from jarvis_nb.engines.prices import cost_usd

        model = cost_usd(self.model, self.engine, self.usage)
        return None if model is None else model + sum(a.cost_usd for a in self.tool_attempts)

    @property
    def pending(self) -> list[Attempt]:
        """The calls that wait for a decision, when the status is ``paused``."""
        return [a for a in self.tool_attempts if a.status == "pending"]

    def request(self, round: int) -> JSON:  # noqa: A002 - the field's word for it
        """Return what model call ``round`` (from 1) was sent, rebuilt from the record.

        Raises:
            InvalidRequest: There was no such round.
        """
        if not 1 <= round <= len(self.model_calls):
            raise InvalidRequest(
                f"round {round} of {len(self.model_calls)}", code="unknown_round", value=round
            )
        from jarvis_nb.core.schema import openai_tools

        offer, sent = self.offers[round - 1], self.model_calls[round - 1].messages
        body: JSON = {"model": self.model, "messages": [m.to_openai() for m in self.messages[:sent]]}
        if offer.choice is not None:
            names = set(offer.offered)
            body["tools"] = openai_tools(Definitions([d for d in self.definitions if d.name in names]))
            body["tool_choice"] = offer.choice
        return body

    # Checks.

    def expect(
        self,
        *,
        calls: Sequence[str] | None = None,
        args: Mapping[str, Mapping[str, Any]] | None = None,
        no_errors: bool = False,
        max_rounds: int | None = None,
        output: str | None = None,
        status: Status | None = None,
    ) -> Reply:
        """Check the run and return the reply, or fail with everything that is not as expected.

        Args:
            calls: The tool names called, in order.
            args: Tool name to arguments that one of its calls had (others may be there too).
            no_errors: Every call succeeded and the run completed.
            max_rounds: The most rounds that may have run tools.
            output: Text the answer contains.
            status: The status.

        Raises:
            AssertionError: Lists each difference.

        Example:
            >>> reply = getfixture("reply")  # doctest: +SKIP
            >>> reply.expect(calls=["calculator"], no_errors=True)  # doctest: +SKIP
        """
        from jarvis_nb.testing.expect import check

        check(
            self,
            calls=calls,
            args=args,
            no_errors=no_errors,
            max_rounds=max_rounds,
            output=output,
            status=status,
        )
        return self

    def to_test(self, name: str = "test_reply") -> str:
        """Return the source of a pytest function that repeats this run with a scripted engine."""
        from jarvis_nb.testing.expect import to_test

        return to_test(self, name)

    def replay(
        self, *, tools: Sequence[Any] = (), tool_policy: ToolPolicy | Mapping[str, Any] | None = None
    ) -> Any:
        """Run the recorded model turns again under another policy, as far as they stay valid.

        Returns:
            A :class:`jarvis_nb.run.replay.Replayed`: the new reply, and where the record stopped being valid.
        """
        from jarvis_nb.run.replay import replay

        return replay(self, tools=tools, tool_policy=tool_policy)

    # JSON.

    def to_dict(self) -> JSON:
        """Return the whole record as JSON-ready data."""
        return {
            "jarvis_nb": FORMAT,
            "question": self.question,
            "output": self.output,
            "status": self.status,
            "error": self.error.to_dict() if self.error else None,
            "agent": self.agent,
            "model": self.model,
            "engine": self.engine,
            "usage": self.usage.to_dict(),
            "cost_usd": self.cost_usd,
            "reasoning": self.reasoning,
            "tool_attempts": [a.to_dict() for a in self.tool_attempts],
            "offers": [o.to_dict() for o in self.offers],
            "model_calls": [c.to_dict() for c in self.model_calls],
            "messages": [m.to_openai() for m in self.messages],
            "repairs": [{"code": r.code, "message": r.message, "round": r.round} for r in self.repairs],
            "warnings": list(self.warnings),
            "definitions": [asdict(d) for d in self.definitions],
            "policy": self.policy,
            "injected": self.injected,
            "limits": self.limits,
            "options": self.options,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reply:
        """Read what :meth:`to_dict` made.

        Raises:
            InvalidRequest: ``invalid_turn``: not a saved turn, or of a newer format.
        """
        if not isinstance(data, Mapping) or data.get("jarvis_nb") != FORMAT:  # pyright: ignore[reportUnnecessaryIsInstance] - it may come from anywhere
            raise InvalidRequest(
                f"this is not a saved turn of format {FORMAT}",
                code="invalid_turn",
                value=data,
                hint="save one with reply.save(path)",
            )
        try:
            for key, kind in _PLAIN.items():
                if not isinstance(data[key], kind):
                    raise TypeError(f"{key} is {data[key]!r:.50}")  # noqa: TRY301 - told below, as all damage is
            if data["status"] not in get_args(Status):
                raise ValueError(f"status is {data['status']!r:.50}")  # noqa: TRY301
            reply = cls(
                **{key: data[key] for key in _PLAIN},
                definitions=Definitions([ToolDefinition(**d) for d in data["definitions"]]),
                error=error_from(data["error"]),
                usage=Usage.from_openai(data["usage"]),
                tool_attempts=[Attempt.from_dict(a) for a in data["tool_attempts"]],
                offers=[RoundOffer.from_dict(o) for o in data["offers"]],
                model_calls=[ModelCall.from_dict(c) for c in data["model_calls"]],
                messages=[Message.from_openai(m) for m in data["messages"]],
                repairs=[Repair(r["code"], r["message"], r["round"]) for r in data["repairs"]],
            )
            reply.__dict__["cost_usd"] = data["cost_usd"]  # prices change: the saved one stands
            return reply
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidRequest(
                f"the saved turn is damaged: {error}", code="invalid_turn", value=str(error)
            ) from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record as a readable JSON file, all or nothing, and return its path."""
        target = Path(path)
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        part = target.with_name(target.name + ".part")
        part.write_text(text + "\n", encoding="utf-8", errors="surrogatepass")
        part.replace(target)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Reply:
        """Read a saved record.

        Raises:
            InvalidRequest: ``invalid_turn``: the file holds something else.
            OSError: The file cannot be read.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8", errors="surrogatepass"))
        except ValueError as error:
            raise InvalidRequest(
                f"{os.fspath(path)} is not JSON: {error}", code="invalid_turn", value=os.fspath(path)
            ) from error
        if not isinstance(data, dict):
            raise InvalidRequest(
                f"{os.fspath(path)} is not a saved turn", code="invalid_turn", value=os.fspath(path)
            )
        return cls.from_dict(data)

    # Pictures.

    def __repr__(self) -> str:
        names = ", ".join(a.tool.name for a in self.tool_attempts)
        tools = f", calls=[{names}]" if names else ""
        output = self.output if len(self.output) <= 80 else self.output[:79] + "…"  # noqa: PLR2004 - one line
        return f"Reply({self.status}, {output!r}{tools})"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from jarvis_nb.display import bundle
        from jarvis_nb.run.live import give_way

        give_way(self)
        return bundle(self)

    def show(self, *, times: bool = False) -> Any:
        """Return the run card, with the times and the timeline where asked for."""
        from jarvis_nb.display import show
        from jarvis_nb.run.live import give_way

        give_way(self)
        return show(self, times=times)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, times: bool = False) -> str:
        """Return the run card as static HTML; with a path, also write one offline file."""
        from jarvis_nb.display import write_html

        return write_html(self, path, times=times)
