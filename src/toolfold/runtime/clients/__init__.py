"""The clients of model servers: OpenAI's two APIs and whatever is like them, and Anthropic's.

They need the extra `agent`, which brings the HTTP library; importing them does not.
"""

from toolfold.runtime.clients.anthropic import Anthropic
from toolfold.runtime.clients.openai_chat import OpenAIChat
from toolfold.runtime.clients.openai_responses import OpenAIResponses

__all__ = ["Anthropic", "OpenAIChat", "OpenAIResponses"]
