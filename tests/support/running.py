"""How the tests run what is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


def wait(awaitable: Awaitable[T], seconds: float = 5) -> T:
    """Run something to its end, for at most so many seconds."""

    async def main() -> T:
        return await asyncio.wait_for(awaitable, seconds)

    return asyncio.run(main())
