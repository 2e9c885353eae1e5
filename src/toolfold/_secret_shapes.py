"""Secrets by their shape and by what stands before them, beside those with a plain name.

Four rules, in this order. A maker's prefix says it (`shpat_…`), and so does any prefix with
a word for a key in it (`acme_live_…`). An address of a webhook is one. A flag or a variable
says it (`curl -u me:…`, `DB_PASS=…`). And words say it of what follows them, where that is
nothing a person would write (`invalid token q7Rt2…`). Digests, ids and addresses without
such a sign are left alone.

In each pattern the first group is what stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["without_shapes"]

_MAKERS = re.compile(
    r"""
    (?<![A-Za-z0-9_-])()(?:
        shp(?:at|ss|ca|pa|tka)_[A-Za-z0-9]{24,}
        | do[opr]_v1_[a-f0-9]{32,}
        | dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])
        | (?:ATATT|ATCTT|ATSTT)3[\w=-]{20,} | ATBB[A-Za-z0-9]{20,}
        | ntn_[A-Za-z0-9]{30,}
        | SK[a-f0-9]{32}(?![A-Za-z0-9])
        | gl(?:sa|c)_[\w+/=-]{24,}
        | gl(?:dt|rt|ft|ptt|cbt|soat|imt|agent|oas)-[\w.-]{16,}
        | dckr_(?:pat|oat)_[\w-]{20,}
        | sb[pv]_[a-f0-9]{32,} | sb_secret_[\w-]{16,}
        | fig[dou]_[\w-]{24,}
        | hv[sbr]\.[\w-]{24,}
        | s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![\w(.])
        | GOCSPX-[\w-]{20,}
        | key-[a-f0-9]{32}(?![A-Za-z0-9]) | [a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])
        | PMAK-[a-f0-9]{24}-[a-f0-9]{34} | NRA[KL]-[A-Z0-9]{20,}
        | sntry[su]_[\w+/=-]{24,}
        | tskey-[a-z]+-[\w-]{16,}
        | dp\.[a-z]{2,4}\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{32,}
        | r8_[A-Za-z0-9]{30,} | pplx-[A-Za-z0-9]{32,}
        | rubygems_[a-f0-9]{32,} | ops_eyJ[\w-]{24,}
        | pat-[a-z]{2}\d-[a-f0-9]{8}-[a-f0-9-]{20,}
        | AGE-SECRET-KEY-1[A-Z0-9]{30,}
        | [A-Za-z0-9]{14}\.atlasv1\.[\w-]{32,}
        | [MNO][\w-]{23,28}\.[\w-]{6}\.[\w-]{27,}
        | \d{6,12}:AA[\w-]{32,35}(?![\w-])
    )
    | (bot)\d{6,12}:[\w-]{30,}
    """,
    re.VERBOSE,
)

_TELLING = re.compile(
    r"""
    (?<![A-Za-z0-9_-])()
    (?:[a-z]{1,12}[_-]){0,3}
    (?:pat|tkn|token|key|apikey|secret|api|oauth|live|prod|sk|rk)[_-]
    (?P<run>[A-Za-z0-9_-]{16,})
    """,
    re.VERBOSE,
)

_WEBHOOKS = re.compile(
    r"""
    (https?://[^\s/"'<>\\]{1,200}/(?:[^\s"'<>?\#\\]{0,100}/)??
        (?:services|web-?hook\w{0,8}|hooks?|workflows|triggers|incoming)/
        # What is left of the path before the part that nobody wrote by hand stays.
        (?:[^\s"'<>?\#/\\]{1,20}/){0,4})
    (?P<run>[^\s"'<>?\#\\]{16,})
    """,
    re.VERBOSE,
)

_NEW = r"(?!\[redacted\])"
"""What is marked already is not marked again."""

_CURL = r"\b(?:curl|wget|https?|xh)\b[^\n|;]{0,200}?[ ](?:-u|--user|--proxy-user|-U)(?:[ ]{1,8}|=)"
_VALUE = rf"""{_NEW}(?:"[^"\n]+"|'[^'\n]+'|[^\s"'`\\;,&)\]}}]+)"""
_GIVEN = re.compile(
    rf"""
    ({_CURL}"[^\s:"'$\\]{{0,80}}:){_NEW}(?:[^"\n$\\]+(?=")|[^\s"'$\\]+)
    | ({_CURL}'[^\s:"'$\\]{{0,80}}:){_NEW}(?:[^'\n$\\]+(?=')|[^\s"'$\\]+)
    | ({_CURL}[^\s:"'$\\]{{0,80}}:){_NEW}[^\s"'$\\]+
    | (\bsshpass[ ]{{1,8}}-p[ ]*+){_VALUE}
    | (\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{{0,200}}?[ ]-p)(?=\S){_VALUE}
    | ((?<![A-Za-z])(?i:(?:[a-z0-9]{{1,30}}_){{0,4}}pass|(?:[a-z0-9]{{1,30}}_){{0,4}}pwd)=
        |[a-z0-9](?:Pass|Pwd)=)
        (?![/~.$]|(?i:true|false|yes|no|none|null|ok)\b|\d{{1,5}}(?!\w)){_VALUE}
    """,
    re.VERBOSE,
)

_FLAGGED = re.compile(
    rf"""
    ((?<![\w-])--?(?:[a-z]{{1,20}}-){{0,3}}
        (?:password|passwd|pass|passphrase|token|secret|api-?key|access-?key
            |private-?key)[ ]{{1,8}}+)
    (?P<run>{_VALUE})
    """,
    re.VERBOSE,
)

_SAID = re.compile(
    r"""
    (\b(?i:tokens?|password|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?key|credentials?
        |(?:subscription|functions|master|admin|service|license|consumer|app|application
            |integration|ingest|deploy|account)[_-]?key)
        \b["'`]?
        (?:[ ]{1,4}(?i:is|was|not|are|for|of|invalid|expired|unknown|rejected|revoked|wrong
            |bad)){0,3}
        [ ]{0,4}[:=]?[ ]{0,4}["'`(]?(?<=[ :="'`(]))
    (?P<run>[A-Za-z0-9_+/=.-]{16,})
    """,
    re.VERBOSE,
)

_LOGIN = re.compile(r"(://)(?P<run>[A-Za-z0-9_-]{16,})(?=@)")

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_PARTS = re.compile(r"[A-Za-z0-9]+")
_LONGEST_WORD = 12
"""So long a run of letters with digits among them is no word, and no digest behind a name."""


def without_shapes(text: str, mark: str) -> str:
    """Return `text` with a mark in the place of each secret that its shape or its place tells."""
    for pattern in (_MAKERS, _GIVEN):
        text = pattern.sub(lambda match: _kept(match) + mark, text)
    for pattern, is_one in (
        (_TELLING, _is_made),
        (_WEBHOOKS, _is_made),
        (_LOGIN, _is_made),
        (_SAID, _is_made),
        (_FLAGGED, _is_chosen),
    ):
        text = pattern.sub(
            lambda match, is_one=is_one: _kept(match) + mark if is_one(match["run"]) else match[0],
            text,
        )
    return text


def _kept(match: re.Match[str]) -> str:
    return next((group for group in match.groups() if group is not None), "")


def _is_made(run: str) -> bool:
    """Whether a machine made it: letters and digits mixed, for longer than any word."""
    if _UUID.match(run):
        return False
    return any(_is_mixed(part) for part in _parts(run) if len(part) >= _LONGEST_WORD)


def _is_chosen(value: str) -> bool:
    """Whether it is a value, and not the next word of a sentence or what stands for one."""
    value = value.strip("\"'")
    has_sign = any(not c.isalnum() and c not in "-_.:<>[]…`" for c in value)
    is_mixed_case = not (value.islower() or value.isupper() or value.istitle())
    return len(value) >= 6 and (has_sign or any(map(str.isdigit, value)) or is_mixed_case)


def _is_mixed(part: str) -> bool:
    return any(map(str.isdigit, part)) and any(map(str.isalpha, part))


def _parts(run: str) -> Iterator[str]:
    return (match[0] for match in _PARTS.finditer(run))
