"""Sixteen requests, each for one tool of the demo catalog, with general tools standing open.

`terminal` and `memory` are open, as in any agent, and could be taken for almost anything. A
request is right where its own tool ran with fitting arguments and nothing else was changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolfold.demo import demo_catalog
from toolfold.evaluation.ab.stage import Executed, Stage
from toolfold.sources.registry import Registry
from toolfold.tool import Tool

__all__ = ["SIXTEEN", "OneTool", "registry_of"]


@dataclass(frozen=True, slots=True)
class OneTool:
    """A request that one tool serves."""

    prompt: str
    tool: str
    fits: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its arguments must say, as patterns by name."""

    def chose(self, executed: list[Executed]) -> bool:
        """Whether the right tool ran, whatever it was given."""
        return any(one.tool == self.tool and not one.is_error for one in executed)

    def is_right(self, executed: list[Executed]) -> bool:
        """Whether the right tool ran as it should, and nothing else changed anything."""
        own = [one for one in executed if one.tool == self.tool and not one.is_error]
        others = [one for one in executed if one.tool != self.tool and one.changes]
        return not others and any(self._takes(one) for one in own)

    def _takes(self, one: Executed) -> bool:
        given = {key: json.dumps(value) for key, value in one.arguments.items()}
        return all(re.search(p, given.get(key, ""), re.I) for key, p in self.fits.items())


SIXTEEN = (
    OneTool(
        "Open an issue in acme/website titled 'Login button does nothing on Safari'.",
        "forge__create_issue",
        {"repo": "acme/website", "title": "login button"},
    ),
    OneTool(
        "Which pull requests are open in acme/website?",
        "forge__list_pull_requests",
        {"repo": "acme/website"},
    ),
    OneTool(
        "Post 'Lunch is here' to the channel #office.",
        "chat__send_message",
        {"channel": "office", "text": "lunch is here"},
    ),
    OneTool(
        "Send Nadia a private message: the build is green again.",
        "chat__send_direct_message",
        {"recipients": "nadia", "text": "build is green"},
    ),
    OneTool(
        "Mail ada@example.com with the subject 'Invoice' and the text 'It is on its way.'",
        "mail__send_mail",
        {"to": "ada@example.com", "subject": "invoice", "body": "on its way"},
    ),
    OneTool(
        "Find the mails that Grace sent me about the budget.",
        "mail__search_mail",
    ),
    OneTool(
        "What will the weather be in Lisbon over the next three days?",
        "travel__get_weather_forecast",
        {"place": "lisbon"},
    ),
    OneTool(
        "How much is 250 US dollars in euros?",
        "travel__convert_currency",
        {"amount": "250", "from": "usd", "to": "eur"},
    ),
    OneTool(
        "Is flight LH1234 on time today?",
        "travel__get_flight_status",
        {"flight_number": "LH ?1234"},
    ),
    OneTool(
        "Set the living room to 21 degrees.",
        "home__set_thermostat",
        {"zone": "living", "temperature_c": "21"},
    ),
    OneTool(
        "Turn the kitchen light off.",
        "home__set_light",
        {"target": "kitchen", "on": "false"},
    ),
    OneTool(
        "Put milk on the shopping list.",
        "notes__add_checklist_item",
        {"checklist": "shopping", "item": "milk"},
    ),
    OneTool(
        "Who is on call for the payments team?",
        "monitor__get_on_call",
        {"team": "payments"},
    ),
    OneTool(
        "Show me the last 50 log lines of the checkout service.",
        "monitor__tail_logs",
        {"service": "checkout"},
    ),
    OneTool(
        "Restart the search service in staging.",
        "deploy__restart_service",
        {"service": "search", "environment": "staging"},
    ),
    OneTool(
        "Which invoices of customer cus_77 are overdue?",
        "billing__list_invoices",
        {"customer_id": "cus_77", "status": "overdue"},
    ),
)  # fmt: skip
"""The requests, over eleven sources of the catalog."""

_OPEN = (
    Tool(
        "terminal",
        "Run a shell command and return what it prints.",
        {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command line."}},
            "required": ["command"],
        },
    ),
    Tool(
        "memory",
        "Keep a fact beyond this conversation, or look one up.",
        {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["add", "search"]},
                "text": {"type": "string", "description": "The fact, or words of it."},
            },
            "required": ["action", "text"],
        },
    ),
)


def registry_of(stage: Stage) -> Registry:
    """Return the demo catalog with the two open tools, run by a stage."""
    registry = Registry()
    for tool in _OPEN:
        registry.add(tool, stage.run, core=True)
    registry.add_source(demo_catalog().tools, stage.run)
    return registry
