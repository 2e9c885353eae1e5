"""The clients of model servers: any OpenAI-compatible one, and Anthropic's.

They need the extra `agent`, which brings the HTTP library; importing them does not.
"""

from toolfold.runtime.clients.anthropic import Anthropic
from toolfold.runtime.clients.openai_chat import OpenAIChat

__all__ = ["Anthropic", "OpenAIChat"]
