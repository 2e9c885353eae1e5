"""A configuration read again, and taken up by the gateway that runs.

By the rules of a start: the same reader, the same checks, the same refusals. Everything that
can be refused is refused before anything is changed, so a file that cannot be used leaves all
as it was, and that is said in the log, in the status and to whoever asked. One reload runs at
a time; what is the same in the file is not touched.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolfold.config.opened_store import store_of
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.redact import Redactor
from toolfold.serve.control.messages import ControlError
from toolfold.serve.control.moments import moment
from toolfold.serve.reload.api_entries import ApiEntries
from toolfold.serve.reload.config_file import ConfigFile
from toolfold.serve.reload.differences import Differences, difference, taken_up
from toolfold.serve.reload.watching import watch
from toolfold.serve.token_store import FILE_NAME as TOKENS_FILE
from toolfold.serve.token_store import NOBODYS, KeptToken, TokenStore, with_kept_tokens
from toolfold.store.store import StoreAwayError

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.config.serve_settings import Token
    from toolfold.serve.control.control_socket import Verb
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.observe.changes import ChangeLog
    from toolfold.sources.openapi import OpenAPISource
    from toolfold.tool import Json

__all__ = ["Reloading"]

_log = logging.getLogger(__name__)

_AWAY = 0.5
"""Seconds until tokens are read again that could not be, because the store was away."""


class Reloading:
    """Reads a gateway's configuration again.

    Args:
        gateway: The gateway.
        load: Reads the configuration as it was read at the start.
        changes: Takes note of what is changed.
        redactor: Is told the secrets of what is read.
    """

    def __init__(
        self,
        gateway: Gateway,
        load: Callable[[], GatewayConfig],
        changes: ChangeLog,
        redactor: Redactor,
    ) -> None:
        self._gateway = gateway
        self._load = load
        self._changes = changes
        self._redactor = redactor
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        # The file's own words, before anything was held on to: what is found different is
        # what is different in the file.
        self._last_read = gateway.config
        self._apis = ApiEntries(gateway.config.apis)
        path = gateway.config.path
        self._file = None if path is None else ConfigFile(path.absolute())
        if gateway.membership is not None:
            gateway.membership.on_document(TOKENS_FILE, self._tokens_changed)
        self.problem: str | None = None
        """Why the file as it is cannot be used; None where it is what runs."""
        self.at: float | None = None
        """When it was last taken up, in seconds since 1970."""

    @property
    def table(self) -> dict[str, Verb]:
        """The verbs by name."""
        return {"reload": self.verb, "tokens.apply": self.apply_tokens}

    # ---- who asks

    async def verb(self, arguments: Mapping[str, Json]) -> Json:
        """Answer the verb `reload`."""
        try:
            return _told(await self.reload())
        except ToolfoldError as error:
            hint = f" ({error.hint})" if error.hint else ""
            raise ControlError("broken", f"{error.message}{hint}") from None

    async def apply_tokens(self, arguments: Mapping[str, Json]) -> Json:
        """Answer the verb `tokens.apply`: take up the tokens that were made by command.

        What else has changed in the file is left for a reload.
        """
        try:
            return {"tokens": list((await self._apply_tokens()).tokens)}
        except StoreAwayError as error:
            self._changes.note("tokens.apply", "", error.message, refused=True)
            raise ControlError("broken", error.message) from None

    async def _apply_tokens(self, *, tells_same: bool = True) -> Differences:
        async with self._lock:
            try:
                own = await asyncio.to_thread(self._tokens_of_file)
                of_file = replace(self._last_read, serve=replace(self._last_read.serve, tokens=own))
                new = await asyncio.to_thread(with_kept_tokens, of_file)
                found = difference(self._last_read, new)
                apply = self._prepared(new)
            except StoreAwayError:
                raise
            except ToolfoldError as error:
                self._changes.note("tokens.apply", "", error.message, refused=True)
                raise ControlError("broken", error.message) from None
            apply()
            self._last_read = new
            if found.tokens or tells_same:
                self._tell(found, "tokens were made or revoked", "tokens.apply")
            return found

    def _tokens_changed(self) -> None:
        self._start(self._apply_tokens_quietly())

    async def _apply_tokens_quietly(self) -> None:
        # What was announced must be read in the end, or a token that was revoked opens on.
        while True:
            try:
                await self._apply_tokens(tells_same=False)
                return
            except ControlError:  # it has been said
                return
            except StoreAwayError:
                await asyncio.sleep(_AWAY)

    def _tokens_of_file(self) -> tuple[Token, ...]:
        made = {(each.name, each.sha256) for each in self._kept()}
        return tuple(
            token
            for token in self._last_read.serve.tokens
            if (token.name, token.sha256) not in made and token != NOBODYS
        )

    def _kept(self) -> tuple[KeptToken, ...]:
        return TokenStore(store_of(self._gateway.config.serve).documents).load()

    def soon(self, by: str) -> None:
        """Read it again, soon, for somebody who waits for no answer."""
        self._start(self._quietly(by))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def watch(self) -> None:
        """Read it again whenever the file changes."""
        if self._file is None:
            _log.warning("there is no configuration file to watch")
            return
        changed = partial(self._quietly, "the file was changed")
        self._start(watch(self._file, changed, begun=self._catch_up))

    def close(self) -> None:
        """Read nothing any more."""
        for task in self._tasks:
            task.cancel()

    async def _catch_up(self) -> None:
        """Take up what was written while the gateway started, after it had read the file."""
        try:
            is_other = bool(difference(self._last_read, await asyncio.to_thread(self._read)))
        except ToolfoldError:
            is_other = True  # a reload says what is wrong
        if is_other:
            await self._quietly("the file was changed during the start")

    async def _quietly(self, by: str) -> None:
        try:
            await self.reload(by)
        except ToolfoldError:
            pass  # it has been said
        except Exception:
            _log.exception("the configuration could not be read again")

    # ---- what happens

    async def reload(self, by: str = "it was asked for") -> Differences:
        """Read the configuration again and take it up; return what was different.

        Args:
            by: Why, as a clause for the log.

        Raises:
            ToolfoldError: It cannot be used; all stays as it was.
        """
        async with self._lock:
            try:
                new = await asyncio.to_thread(self._read)
                found = difference(self._last_read, new)
                apis = await asyncio.to_thread(self._apis.changed, self._last_read.apis, new)
                found = _with_documents(found, apis)
                apply = self._prepared(new, apis)
            except ToolfoldError as error:
                self._refused(error)
                raise
            # From here on nothing is refused, and nothing waits: nobody sees a half of it.
            apply()
            self._apis.served()
            self._last_read = new
            self.problem, self.at = None, time.time()
            self._tell(found, by)
            return found

    def _read(self) -> GatewayConfig:
        if self._file is None:
            raise ConfigError(
                "the gateway was started without a configuration file",
                hint="restart it with --config FILE",
            )
        self._file.check()
        new = self._load()
        if new.path is None or new.path.absolute() != self._file.path:
            raise ConfigError(
                f"another file would be read by now: `{new.path}`",
                hint="restart the gateway, or name the file with --config",
            )
        return new

    def _prepared(
        self, new: GatewayConfig, apis: Mapping[str, OpenAPISource] = MappingProxyType({})
    ) -> Callable[[], None]:
        """Check all that can be refused, and return what takes a configuration up."""
        gateway = self._gateway
        config = taken_up(gateway.config, new)
        # The protocol's library comes with it, and is imported after the servers were started.
        from toolfold.serve.catalog.server_set import check_names

        before, after = ({api.name for api in each.apis} for each in (gateway.config, config))
        others = gateway.pool.others.keys() - before
        if clash := sorted(after & others):
            raise ConfigError(
                f"`openapi.{clash[0]}` has the name of functions that are loaded",
                hint="give it a name of its own, or restart the gateway",
            )
        check_names(config.servers, others | after)
        apply_doors = [door.prepared(config) for door in gateway.doors]
        tokens = (os.environ.get(name, "") for name in config.serve.token_variables)
        self._redactor.learn([*config.secrets, *filter(None, tokens)])

        def apply() -> None:
            gateway.adopt(config, apis)
            for apply_door in apply_doors:
                apply_door()

        return apply

    def _refused(self, error: ToolfoldError) -> None:
        self.problem = self._redactor.redact(error.message)
        hint = f" ({error.hint})" if error.hint else ""
        _log.error("the configuration stays as it was: %s%s", error.message, hint)
        self._changes.note("reload", self._name, error.message, refused=True)

    def _tell(self, found: Differences, by: str, verb: str = "reload") -> None:
        for note in self._last_read.notes if found else ():
            _log.warning("%s", note)
        for clause in found.widened:
            _log.warning("the configuration permits more than before: %s", clause)
        for key in found.needs_restart:
            _log.warning("`%s` was changed and counts from the next start on", key)
        detail = "; ".join(
            f"{what}: {', '.join(names)}"
            for what, names in (
                ("added", found.added),
                ("removed", found.removed),
                ("changed", found.changed),
                ("openapi", found.apis),
                ("tokens", found.tokens),
                ("profiles", found.profiles),
                ("settings", found.settings),
                ("needs a restart", found.needs_restart),
                ("widened", found.widened),
            )
            if names
        )
        self._changes.note(verb, self._name, f"{by}; {detail or 'nothing is different'}")

    @property
    def _name(self) -> str:
        return "" if self._file is None else str(self._file.path)

    @property
    def status(self) -> dict[str, Json]:
        """What the status says of it."""
        at = None if self.at is None else moment(self.at)
        return {"config_problem": self.problem, "reloaded": at}


def _with_documents(found: Differences, made: Iterable[str]) -> Differences:
    """Return what is different, with the APIs whose documents alone were written since."""
    written = tuple(name for name in made if name not in found.apis)
    return replace(
        found,
        apis=(*found.apis, *written),
        widened=(*found.widened, *(f"API {name!r} has another document" for name in written)),
    )


def _told(found: Differences) -> Json:
    return {
        "servers": {
            "added": list(found.added),
            "removed": list(found.removed),
            "changed": list(found.changed),
        },
        "openapi": list(found.apis),
        "tokens": list(found.tokens),
        "profiles": list(found.profiles),
        "settings": list(found.settings),
        "needs_restart": list(found.needs_restart),
        "widened": list(found.widened),
    }
