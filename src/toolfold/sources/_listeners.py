"""Who is told that a source's list has changed."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Listeners"]


class Listeners:
    """Listeners in the order in which they came."""

    def __init__(self) -> None:
        self._all: dict[object, Callable[[], None]] = {}

    def add(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener told; return what ends that, and does nothing the second time."""
        mine = object()
        self._all[mine] = listener

        def forget() -> None:
            self._all.pop(mine, None)

        return forget

    def tell(self) -> None:
        """Tell each of them; one may leave, or another come, meanwhile."""
        for listener in tuple(self._all.values()):
            listener()
