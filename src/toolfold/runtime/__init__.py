"""The agent runtime: a host in which folding is invisible to everything but the model.

Example:
    from toolfold.runtime import Agent, OpenAIChat, Registry

    registry = Registry()

    @registry.tool(toolset="mail", read_only=True)
    def read_inbox(day: str) -> list[str]:
        "List the messages of a day."

    agent = Agent(OpenAIChat("gpt-5.4-mini"), registry)
    done = await agent.conversation().ask("What came in today?")
"""

from toolfold.dispatch.activity import Activity, Listener
from toolfold.dispatch.approvals import Approvals, destructive, not_read_only
from toolfold.dispatch.hooks import Guardrail, Hook
from toolfold.runtime.agent import Agent, Limits
from toolfold.runtime.clients import Anthropic, OpenAIChat, OpenAIResponses
from toolfold.runtime.compaction import compacted
from toolfold.runtime.conversation import Conversation, Done, Event
from toolfold.runtime.executor import Batch
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.model import Model, ModelError, Reply, Request, TextDelta, Usage
from toolfold.runtime.profiles import SMALL, STANDARD, Profile, profile_named
from toolfold.runtime.scripted import Says, ScriptedModel, calls, says
from toolfold.sources.calls import CallContext, Output, PendingCall, Refusal, current_call
from toolfold.sources.registry import Registered, Registry, Runner

__all__ = [
    "SMALL",
    "STANDARD",
    "Activity",
    "Agent",
    "Anthropic",
    "Approvals",
    "Batch",
    "Call",
    "CallContext",
    "Conversation",
    "Done",
    "Event",
    "Guardrail",
    "Hook",
    "Limits",
    "Listener",
    "Message",
    "Model",
    "ModelError",
    "ModelMessage",
    "OpenAIChat",
    "OpenAIResponses",
    "Output",
    "PendingCall",
    "Profile",
    "Refusal",
    "Registered",
    "Registry",
    "Reply",
    "Request",
    "ResultMessage",
    "Runner",
    "Says",
    "ScriptedModel",
    "TextDelta",
    "Usage",
    "UserMessage",
    "calls",
    "compacted",
    "current_call",
    "destructive",
    "not_read_only",
    "profile_named",
    "says",
]
