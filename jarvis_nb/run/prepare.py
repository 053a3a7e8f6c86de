"""From a question to a run: tools by name, sources, policy, engine, model, memory, history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jarvis_nb.agents.base import BaseAgent
from jarvis_nb.agents.limits import Limits
from jarvis_nb.agents.run import Run
from jarvis_nb.core.errors import EngineError, InvalidRequest
from jarvis_nb.core.events import EventBus, EventType
from jarvis_nb.core.registry import AgentRegistry
from jarvis_nb.core.types import Message, Role
from jarvis_nb.engines.base import InferenceEngine
from jarvis_nb.reply import Reply
from jarvis_nb.run.options import Ask, history_messages
from jarvis_nb.tools.base import ToolContext

if TYPE_CHECKING:
    from jarvis_nb.core.approval import Approver
    from jarvis_nb.jarvis import Jarvis
    from jarvis_nb.tools.executor import ToolExecutor
    from jarvis_nb.toolsets.policy import Offer
    from jarvis_nb.toolsets.toolset import Toolset


async def prepare(jarvis: Jarvis, ask: Ask, bus: EventBus | None = None) -> tuple[BaseAgent, Run]:
    """Turn a question into a run that has not begun.

    Args:
        jarvis: Whose ask it is.
        ask: The question and its options.
        bus: Where the run's events go; a child of the Jarvis's bus.

    Raises:
        JarvisError: The question cannot be carried out as it stands; no model was called.
    """
    bus = bus or EventBus(parent=jarvis.bus)
    __tracebackhide__ = True
    context = ToolContext(
        jarvis.tool_context if ask.tool_context is None else ask.tool_context,
        secrets=jarvis.config.secrets,
        bus=bus,
    )
    name = ask.agent or jarvis.config.agent
    agent, toolset, warnings = await _agent_and_tools(jarvis, ask, name, context)
    offer, policy = _offer(toolset, ask)
    engine = await jarvis.engines.get()
    model = ask.model or await jarvis.engines.model(engine)
    messages, injected = await _messages(jarvis, ask)
    limits = Limits.of(ask.limits, jarvis.limits)
    temperature = jarvis.config.temperature if ask.temperature is None else ask.temperature
    reply = Reply(
        ask.query,
        model=model,
        engine=engine.name,
        agent=agent.agent_id if name or len(toolset) or ask.tool_policy is not None else None,
        policy=policy,
        injected=injected,
        limits=limits.to_dict(),
        options={"temperature": temperature, "max_tokens": ask.max_tokens},
        warnings=warnings,
        definitions=toolset.remember("definitions", toolset.definitions),
    )
    run = Run(
        reply,
        engine,
        model,
        offer,
        _executor(toolset, bus, _approver(jarvis), context),
        bus,
        limits,
        messages,
        temperature,
        ask.max_tokens or jarvis.config.max_tokens,
        examples=_examples(engine, offer),
        known_names=toolset.names,
    )
    run.ids = {call.id for message in messages for call in message.tool_calls or ()}
    return agent, run


def _executor(
    toolset: Toolset, bus: EventBus, approver: Approver | None, context: ToolContext
) -> Callable[[], ToolExecutor]:
    def make() -> ToolExecutor:
        from jarvis_nb.tools.executor import ToolExecutor

        return ToolExecutor(toolset.tools, bus, approver=approver, context=context)

    return make


def _approver(jarvis: Jarvis) -> Approver | None:
    if jarvis.approve is None:
        return None
    from jarvis_nb.run.approval import make_approver

    return make_approver(jarvis.approve, jarvis.always)


async def _agent_and_tools(
    jarvis: Jarvis, ask: Ask, name: str | None, context: ToolContext
) -> tuple[BaseAgent, Toolset, list[str]]:
    __tracebackhide__ = True
    from jarvis_nb.toolsets.toolset import Toolset

    has_tools = bool(jarvis.tools if ask.tools is None else len(ask.tools)) or bool(jarvis.tool_sources)
    if name is None:
        name = "orchestrator" if has_tools or ask.tool_policy is not None else "simple"
    agent = _agent(name)
    if agent.takes_tools:
        return agent, await jarvis.toolsets.get(ask.tools, context), []
    if ask.tools or ask.tool_policy is not None:
        raise InvalidRequest(
            f"the agent {name!r} takes no tools",
            code="tools_not_taken",
            value=name,
            valid=[n for n in AgentRegistry.keys() if AgentRegistry.get(n).takes_tools],  # noqa: SIM118 - not a dict
            hint="leave agent= out, or name one that takes tools",
        )
    warnings = (
        [f"the agent {name!r} takes no tools: those of this Jarvis were not offered"] if has_tools else []
    )
    return agent, Toolset([]), warnings


def _agent(name: str) -> BaseAgent:
    if name not in AgentRegistry.builtin and not AgentRegistry.contains(name):
        AgentRegistry.get(name)  # raises, with the names there are
    return AgentRegistry.create(name)


def _offer(toolset: Toolset, ask: Ask) -> tuple[Offer, dict[str, Any]]:
    from jarvis_nb.toolsets.policy import ToolPolicy, resolve

    policy = ToolPolicy.of(ask.tool_policy)
    return resolve(toolset, policy), policy.to_dict() if ask.tool_policy is not None else {}


def _examples(engine: InferenceEngine, offer: Offer) -> Mapping[str, Sequence[tuple[str, dict[str, Any]]]]:
    if not engine.wants_examples:
        return {}
    return {tool.name: tool.spec.metadata.get("examples", ()) for tool in offer.tools}


async def _messages(jarvis: Jarvis, ask: Ask) -> tuple[list[Message], list[dict[str, Any]]]:
    """Return the messages of the first model call: one system message at most, the history, the question."""
    history = history_messages(ask.history)
    system = ask.system if ask.system is not None else jarvis.system
    block, injected = await _memory_block(jarvis, ask)
    if history and history[0].role is Role.SYSTEM:
        first = history.pop(0)
        system = first.text if system is None else system
    text = "\n\n".join(part for part in (system, block) if part)
    lead = [Message(Role.SYSTEM, text)] if text else []
    return [*lead, *history, Message(Role.USER, ask.query)], injected


async def _memory_block(jarvis: Jarvis, ask: Ask) -> tuple[str, list[dict[str, Any]]]:
    if ask.context is False or (ask.context is None and not jarvis.has_memory):
        return "", []
    if not jarvis.has_memory:
        raise InvalidRequest(
            "context=True needs a memory",
            code="no_memory",
            hint='give Jarvis(memory=…), or fill j.memory.index("docs/")',
        )
    return await jarvis.memory.context(ask.query, jarvis.config.context_top_k, jarvis.config.context_tokens)


def announce(run: Run) -> None:
    """Publish that the run begins."""
    run.bus.publish(
        EventType.RUN_START,
        question=run.reply.question,
        agent=run.reply.agent,
        model=run.model,
        engine=run.engine.name,
        tools=list(run.offer.names),
    )


def need_model(engine: InferenceEngine, models: Sequence[str]) -> str:
    """Return the one model an engine serves.

    Raises:
        EngineError: ``no_model``: it serves none or several, and nobody named one.
    """
    if len(models) == 1:
        return models[0]
    raise EngineError(
        f"no model is named for {engine.name}",
        code="no_model",
        value=engine.name,
        valid=models[:20],
        hint='name one: Jarvis(model="…")',
    )
