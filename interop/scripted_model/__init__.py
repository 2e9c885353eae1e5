"""A model server that plays a script on the true wire, for clients that know no better.

    with ScriptedModel(play) as model:
        ...  # point a client at model.url
    model.asked  # what it was asked, request by request

What the model says is decided by a play, a function from a request to a reply; one class a
dialect writes it as that provider does, streamed or whole. All dialects are served at once,
each under its provider's own paths.
"""

from scripted_model.anthropic_messages import AnthropicMessages
from scripted_model.exchange import (
    Asked,
    Call,
    Hang,
    Offered,
    Part,
    Play,
    Refuse,
    Reply,
    Result,
    Say,
    Think,
)
from scripted_model.gemini import Gemini
from scripted_model.openai_chat import OpenAIChat
from scripted_model.openai_responses import OpenAIResponses
from scripted_model.plays import OneTask, in_order
from scripted_model.server import DIALECTS, Heard, ScriptedModel

__all__ = [
    "DIALECTS",
    "AnthropicMessages",
    "Asked",
    "Call",
    "Gemini",
    "Hang",
    "Heard",
    "Offered",
    "OneTask",
    "OpenAIChat",
    "OpenAIResponses",
    "Part",
    "Play",
    "Refuse",
    "Reply",
    "Result",
    "Say",
    "ScriptedModel",
    "Think",
    "in_order",
]
