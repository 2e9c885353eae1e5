"""Secrets, taken out of what is written down: transcripts, logs, error texts.

Two kinds are known: what looks like a secret wherever it stands (a key with a maker's
prefix, a token behind `Bearer`, a value behind `password=`, a webhook's address, what a
flag or a sentence calls a key), and exact values, such as those of the environment. Each
becomes one mark; the text around it stays as it is, and redacting twice changes nothing more.
Where it is not clear, the mark wins.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard
from urllib.parse import quote, quote_plus

from toolfold._secret_shapes import without_shapes
from toolfold.tool import Json, is_mapping

__all__ = ["MARK", "Redactor", "is_secret_name", "redact", "redacted"]

MARK = "[redacted]"
"""What stands in a secret's place."""

SHORTEST = 6
"""Shorter values are no secrets worth the ordinary words that they would take along."""

_PASSES = 8
_DEPTH = 200

# Names end in one of these. A page token is no secret, and `tokens` is a count.
_NAMES = r"""
    [aA][pP][iI][_\-\ ]?(?i:keys?)
    | [aA](?i:ccess[_-]?key(?:[_-]?id)?|ccount[_-]?key|uthorization|uth[_-]?key)
    | [sS](?i:ecret(?:s|[_-]?key)?|ession[_-]?id|igning[_-]?key|hared[_-]?key)
    | [tT](?<!page.)(?<!next.)(?<!page[_-].)(?<!next[_-].)(?<!Page.)(?<!Next.)(?i:oken)
    | [pP](?i:assword|asswd|assphrase|rivate[_-]?key)
    | [cC](?i:redentials?|ookies?)
    | [eE](?i:ncryption[_-]?key)
"""
_TYPES = r"""
    (?!(?i:string|str|text|number|integer|int|float|boolean|bool|bytes|object|array|list|dict
    |date|any|null|none|nil|true|false|undefined|yes|no|required|optional)(?![\w-]))
"""

# Values without quotes: behind `=` up to what ends it, behind a colon one plain word.
_PART = r"""(?:[^\s"'&;<>\\,)\]}]|[,)\]}](?=[^\s&;"'<>\\,)\]}]))"""
_BARE = r"""[^\s"'&;<>\\,(){}\[\]]"""
_LEAN = r"""[^\s"'\\]"""

_PATTERN = re.compile(
    rf"""
    # a private key in PEM
    -----BEGIN\ [A-Z0-9\ ]{{0,40}}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?s:.*?)(?:-----END\ [A-Z0-9\ ]{{0,40}}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)

    # keys that show whose they are
    | s(?<![A-Za-z0-9].)k-(?=[\w-]{{0,64}}[0-9A-Z])[\w-]{{16,}}
    | [srpw](?<![A-Za-z0-9].)(?:k_(?:live|test)|hsec)_[A-Za-z0-9+/=]{{16,}}(?![A-Za-z0-9])
    | g(?<![A-Za-z0-9].)(?:h[opsru]_[A-Za-z0-9_]{{16,}}|ithub_pat_\w{{16,}}|lpat-[\w-]{{16,}}
        |sk_[A-Za-z0-9]{{16,}})(?![A-Za-z0-9])
    | x(?<![A-Za-z0-9].)(?:ox[a-z](?:\.[a-z]{{3}})?-|app-|ai-)(?=[\w-]{{0,64}}\d)[\w-]{{10,}}
    | A(?<![A-Za-z0-9].)(?:KIA|SIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])
    | A(?<![A-Za-z0-9].)Iza[\w-]{{30,}}
    | y(?<![A-Za-z0-9].)a29\.[\w-]{{16,}}
    | [hn](?<![A-Za-z0-9].)(?:f|pm)_[A-Za-z0-9]{{24,}}
    | p(?<![A-Za-z0-9].)ypi-[\w-]{{40,}}
    | S(?<![A-Za-z0-9].)G\.[\w-]{{16,}}\.[\w-]{{16,}}
    | e(?<![\w-].)yJ[\w-]{{6,}}+\.[\w-]{{6,}}(?:\.[\w.-]*)?

    # https://user:password@host
    | (://[^\s/?\#:@"'\\]*+:)[^\s/?\#"'\\]+(?=@)

    # ?key=…&sig=…
    | ([?&;](?i:key|sig|signature|auth|code|pwd|x-amz-(?:signature|credential))=)
        [^\s&;\#"'<>\\]++

    # Authorization: Bearer …, wherever it is written
    | ([aA](?i:uthorization)\\*["']?[ ]*+[:=][ ]*+\\*["']?
        (?i:bearer|basic|token|apikey|api-key|negotiate)[ ]++)[^\s"',;\\<]{{3,}}+
    | ([aA](?i:uthorization)\\*["']?[ ]*+[:=][ ]*+\\*["']?(?i:digest|aws4-hmac-sha256)[ ]++)
        [^\r\n"'\\]++(?:"[^\r\n"'\\]*+"[^\r\n"'\\]*+)*+
    | ([bB](?<![A-Za-z0-9].)(?i:earer|asic)[ ]++)(?=\S{{0,64}}\d|\S{{1,64}}[a-z][A-Z]|\S{{24}})
        [\w.~+/=-]{{8,}}+

    # Cookie: name=value; name=value
    | ([cC](?i:ookie):[ ]*+)(?=[^\r\n"'\\=]++=)[^\r\n"'\\]++

    # password=…, "api_key": "…", token: …
    | ((?:{_NAMES})\\*["']?[ \t]*+(?:=>?|:=?)(?!=)[ \t]*+)
        (?:
            "(?:[^"\\\n]|\\.)++"?
            | '(?:[^'\\\n]|\\.)++'?
            | \\"(?:[^"\\\n]|\\\\(?:\\.|[^"\\\n])|\\[^"\\\n])++(?:\\")?
            | \\{{2,}}"[^"\n]++"?
            | (?<==){_TYPES}(?![\[({{]){_PART}{_PART}*+
            | (?<=[:=\ \t]){_TYPES}
                (?={_LEAN}{{0,3}}\d{_LEAN}{{3}}|{_LEAN}{{3,20}}\d|{_LEAN}{{20}}
                    |{_BARE}++[ \t]*+(?:["'\\\r\n]|\Z)){_BARE}++
        )
    """,
    re.VERBOSE,
)
_SECRET_NAME = re.compile(
    rf"(?:{_NAMES}|(?:^|[_-])(?i:pwd)|[_-](?i:pass)|[a-z](?:Pass|Pwd))\Z", re.VERBOSE
)
_SECRET_VARIABLE = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIE|WEBHOOK(?:_URL)?"
    r"|_PAT|_PWD|(?:^|_)PASS|_DSN)\Z",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"""\\*["']""")
_QUOTED_KEY = re.compile(r"""\w(\\*["'])[ \t]*:[ \t]*\Z""")
_SCHEMA_KEYS = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is a secret: `api_key`, `Authorization`, `dbPassword`."""
    return _SECRET_NAME.search(name) is not None


_LEARNT_AT_MOST = 1_000


class Redactor:
    """Takes secrets out of texts and JSON values.

    Args:
        secrets: Values that must not appear, beside what looks like a secret. Those
            shorter than six characters are left alone.

    Example:
        redactor = Redactor(["correct horse battery"])
        assert redactor.redact("say correct horse battery") == "say [redacted]"
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = dict.fromkeys(secret.strip() for secret in secrets)
        self._exact = _exact(set(self._secrets))

    def learn(self, secrets: Iterable[str]) -> None:
        """Take these out as well from now on; of what was known, the newest stays known."""
        more = dict.fromkeys(secret.strip() for secret in secrets)
        if more.keys() <= self._secrets.keys():
            return
        known = {**{old: None for old in self._secrets if old not in more}, **more}
        self._secrets = dict.fromkeys(list(known)[-max(_LEARNT_AT_MOST, len(more)) :])
        self._exact = _exact(set(self._secrets))

    def __repr__(self) -> str:
        return "Redactor()" if self._exact is None else "Redactor(…)"

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, secrets: Iterable[str] = ()
    ) -> Redactor:
        """Return one that knows the values of variables named like secrets, and others."""
        variables = os.environ if environment is None else environment
        found = (v for name, v in variables.items() if _SECRET_VARIABLE.search(name))
        return cls((*found, *secrets))

    def redact(self, text: str) -> str:
        """Return `text` with a mark in each secret's place."""
        for _ in range(_PASSES):
            done = without_shapes(_PATTERN.sub(_masked, text), MARK)
            if self._exact is not None:
                done = self._exact.sub(MARK, done)
            if done == text:
                return text
            text = done
        return MARK  # marks that keep making new secrets with what is around them

    def redacted(self, value: Json) -> Json:
        """Return a JSON value with a mark in each secret's place; keys tell of secrets too."""
        return self._value(value, is_secret=False, depth=_DEPTH)

    def _value(self, value: Json, *, is_secret: bool, depth: int) -> Json:
        if isinstance(value, str):
            return MARK if is_secret and value else self.redact(value)
        if is_secret and isinstance(value, int | float) and not isinstance(value, bool):
            return MARK
        if is_mapping(value) and depth:
            # Under `password`, a schema says what a password is; it holds none.
            inherited = is_secret and not _SCHEMA_KEYS & value.keys()
            return {
                self.redact(str(key)): self._value(
                    inner,
                    is_secret=inherited or is_secret_name(str(key)),
                    depth=depth - 1,
                )
                for key, inner in value.items()
            }
        if _is_sequence(value) and depth:
            return [self._value(inner, is_secret=is_secret, depth=depth - 1) for inner in value]
        return MARK if is_mapping(value) or _is_sequence(value) else value


def _is_sequence(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, list | tuple)


def _exact(secrets: set[str]) -> re.Pattern[str] | None:
    """Return what finds the values, also as JSON and URLs write them."""
    forms = {
        form
        for secret in secrets
        if len(secret) >= SHORTEST
        for form in _forms(secret)
        if form not in MARK
    }
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="", errors="replace")
    yield quote_plus(secret, errors="replace")


def _masked(match: re.Match[str]) -> str:
    kept = match[match.lastindex] if match.lastindex else ""
    value = match[0][len(kept) :]
    opening = _QUOTE.match(value)
    if opening is None:
        # A bare value under a quoted key is JSON's, and JSON has no bare marks.
        quoted = _QUOTED_KEY.search(kept)
        return f"{kept}{quoted[1]}{MARK}{quoted[1]}" if quoted else kept + MARK
    quotes = opening[0]
    is_closed = len(value) > len(quotes) and value.endswith(quotes)
    return f"{kept}{quotes}{MARK}{quotes if is_closed else ''}"


_PLAIN = Redactor()


def redact(text: str) -> str:
    """Return `text` with a mark in place of whatever looks like a secret.

    Example:
        assert redact("git clone https://me:pw@host") == "git clone https://me:[redacted]@host"
    """
    return _PLAIN.redact(text)


def redacted(value: Json) -> Json:
    """Return a JSON value with a mark in place of whatever looks like a secret.

    Example:
        assert redacted({"api_key": "abc"}) == {"api_key": "[redacted]"}
    """
    return _PLAIN.redacted(value)
