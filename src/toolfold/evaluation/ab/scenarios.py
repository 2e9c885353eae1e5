"""The scenarios of the live A/B.

Five plain ones (an obvious tool, a vague request, a chain of two, a core tool with a
folded one, no tool at all), and harder ones: tools that look alike, a tool that does not
exist, the same request among 50, 200 and 1,000 folded tools, and a conversation of six
messages whose last asks what was really done.
"""

from __future__ import annotations

from toolfold.errors import ConfigError
from toolfold.evaluation.ab.planned import Need
from toolfold.evaluation.ab.scenario import Scenario, Turn
from toolfold.evaluation.ab.stage import HOST, SEEDED_PHRASE, SEEDED_SESSION

__all__ = ["SCENARIOS", "SYSTEM", "scenarios_named"]

SYSTEM = (
    "You are an assistant with tools. Use one where the task needs it; answer at once where it "
    "does not. Say only what really happened. Tools of a named office act at that office alone: "
    "use them only when the user names it."
)
"""The system prompt of every run."""

_CANNOT = (
    r"cannot|can[’']?t|unable|not able|no (?:\w+ ){0,2}tool|don[’']t have|do not have|"
    r"not (?:available|possible)|isn[’']t|couldn[’']t|could not"
)

_OBVIOUS = Scenario(
    "obvious_single",
    "one folded tool, named almost literally",
    (
        Turn(
            "Open an issue in the repository acme/website with the title 'Login button does "
            "nothing on Safari'.",
            (
                Need(
                    "open an issue in a repository",
                    "forge__create_issue",
                    {"repo": "acme/website", "title": "Login button does nothing on Safari"},
                ),
            ),
            "I opened issue 1 in acme/website: https://forge.example/acme/website/issues/1",
            checks={"forge__create_issue": {"repo": r"^acme/website$", "title": "login button"}},
            says=(r"\b1\b|issue",),
        ),
    ),
    beside=("forge__update_issue", "forge__comment_on_issue", "crm__create_ticket"),
)

_VAGUE = Scenario(
    "vague_paraphrase",
    "one folded tool, in words that its description does not hold",
    (
        Turn(
            "I'm shivering in the bedroom. 21 degrees would be lovely.",
            (
                Need(
                    "make a room warmer",
                    "home__set_thermostat",
                    {"zone": "bedroom", "temperature_c": 21},
                    again="set the heating temperature of a room",
                ),
            ),
            "The bedroom is being heated to 21 °C.",
            checks={"home__set_thermostat": {"zone": "bedroom", "temperature_c": r"^21(\.0)?$"}},
            says=("21",),
        ),
    ),
    beside=("home__get_climate", "home__set_light", "home__start_appliance"),
)

_CHAIN = Scenario(
    "chain_of_two",
    "two folded tools, the second with what the first returned",
    (
        Turn(
            "Find out who is on call for the payments team, and send that person a private "
            "message saying that checkout is down.",
            (
                Need("who is on call for a team", "monitor__get_on_call", {"team": "payments"}),
                Need(
                    "send a private message to a colleague",
                    "chat__send_direct_message",
                    {"recipients": ["nadia"], "text": "Checkout is down."},
                    waits=True,
                ),
            ),
            "Nadia is on call for payments, and I told her in private that checkout is down.",
            checks={
                "monitor__get_on_call": {"team": "payments"},
                "chat__send_direct_message": {"recipients": "nadia", "text": "checkout"},
            },
            says=("nadia",),
        ),
    ),
    beside=("monitor__override_on_call", "chat__send_message", "mail__send_mail"),
)

_CORE_PLUS = Scenario(
    "core_plus_folded",
    "a core tool, called directly, and a folded one",
    (
        Turn(
            "Read notes/standup.md and post its first line to the channel #team.",
            (
                Need("read a file", "read_file", {"path": "notes/standup.md"}),
                Need(
                    "post a message to a channel",
                    "chat__send_message",
                    {"channel": "#team", "text": "Release 2.4 slips to Thursday"},
                    waits=True,
                ),
            ),
            "I posted 'Release 2.4 slips to Thursday' to #team.",
            checks={
                "read_file": {"path": "standup"},
                "chat__send_message": {"channel": "team", "text": r"2\.4 slips to thursday"},
            },
            says=("team|posted",),
            never_runs=("drive__read_file", "forge__get_file_contents"),
        ),
    ),
    beside=("drive__read_file", "forge__get_file_contents", "chat__schedule_message"),
)

_NO_TOOL = Scenario(
    "no_tool_needed",
    "a question that needs no tool",
    (
        Turn(
            "In two sentences: what is the difference between a mutex and a semaphore?",
            (),
            "A mutex lets one thread in at a time and is released by the thread that took it. A "
            "semaphore counts permits, so several may enter and anyone may release one.",
            says=("mutex", "semaphore"),
        ),
    ),
)

_NEAR = Scenario(
    "near_duplicates",
    "several tools look right and one is",
    (
        Turn(
            "Invoice in_204 was priced 40 too high. Lower what the customer owes on it; do not "
            "send any money back and do not cancel the invoice.",
            (
                Need(
                    "reduce the amount owed on an invoice without moving money",
                    "billing__issue_credit_note",
                    {
                        "invoice_id": "in_204",
                        "lines": [{"description": "Price correction", "amount": 40}],
                    },
                ),
            ),
            "I issued a credit note of 40 on invoice in_204; no money was moved.",
            checks={"billing__issue_credit_note": {"invoice_id": "^in_204$", "lines": "40"}},
            says=("credit|lower|reduc",),
        ),
        Turn(
            "Now jot down, where only I can see it: call the tax adviser about in_204.",
            (
                Need(
                    "jot down a private note",
                    "notes__create_note",
                    {"text": "Call the tax adviser about in_204."},
                ),
            ),
            "Noted, for your eyes only.",
            checks={"notes__create_note": {"text": "tax advis"}},
        ),
    ),
    beside=(
        "billing__refund_payment",
        "billing__void_invoice",
        "billing__record_payment",
        "notes__create_page",
        "notes__append_to_note",
        "drive__create_document",
    ),
)

_NONE = Scenario(
    "no_such_tool",
    "a task that no tool serves: the answer must say so, and nothing may be made up",
    (
        Turn(
            "Send the signed contract by fax to +30 210 555 0101.",
            (
                Need(
                    "send a fax",
                    None,
                    again="transmit a document to a fax number",
                ),
            ),
            "I cannot send a fax: none of my tools can do that. I could send it by e-mail instead.",
            says=(_CANNOT,),
            never_says=(
                r"(?:I(?:[’']ve| have)?|has been|was) (?:successfully )?(?:faxed|sent the fax)",
                r"fax(?:ed)? (?:was |has been )?(?:sent|delivered) successfully",
            ),
        ),
    ),
    beside=("mail__send_mail", "drive__share_file", "billing__send_invoice"),
)

_SILENCE = Turn(
    "We are swapping the disk of db-3. Mute its disk-space alert for two hours.",
    (
        Need(
            "mute an alert for some time",
            "monitor__silence_alert",
            {
                "match": {"alert": "disk_space", "host": "db-3"},
                "duration_minutes": 120,
                "comment": "Disk of db-3 is being swapped.",
            },
        ),
    ),
    "The disk-space alert of db-3 is muted for two hours.",
    checks={"monitor__silence_alert": {"match": "db-?3", "duration_minutes": "^120$"}},
    says=("two hours|2 hours|120|mute|silence",),
)

_SIZES = tuple(
    Scenario(
        f"size_{count}",
        f"one tool among {count:,} folded ones",
        (_SILENCE,),
        folded=count,
        beside=("monitor__acknowledge_alert", "monitor__create_alert_rule"),
    )
    for count in (50, 200, 1_000)
)

_SIX = Scenario(
    "six_prompts",
    "a conversation whose last turn exposes what was only claimed",
    (
        Turn("What is 17 times 23? Only the number.", (), "391", says=(r"\b391\b",)),
        Turn(
            "Save to your memory that my favourite harbour is Vathy.",
            (
                Need(
                    "save a fact to memory",
                    "memory__save",
                    {"text": "The user's favourite harbour is Vathy."},
                ),
            ),
            "Saved: your favourite harbour is Vathy.",
            checks={"memory__save": {"text": "vathy"}},
        ),
        Turn(
            "Which harbour did I say is my favourite?",
            (),
            "Vathy.",
            says=("vathy",),
        ),
        Turn(
            "Run `hostname` in the terminal and save what it prints to your memory.",
            (
                Need("run a shell command", "terminal", {"command": "hostname"}),
                Need(
                    "save a fact to memory",
                    "memory__save",
                    {"text": f"The host is named {HOST}."},
                    waits=True,
                ),
            ),
            f"The host is named {HOST}, and I saved that.",
            checks={"terminal": {"command": "hostname"}, "memory__save": {"text": HOST}},
            says=(HOST,),
        ),
        Turn(
            f"Search my earlier sessions for the phrase {SEEDED_PHRASE} and save to your memory "
            "in which session it stands.",
            (
                Need(
                    "search earlier sessions for a phrase",
                    "sessions__search",
                    {"phrase": SEEDED_PHRASE},
                ),
                Need(
                    "save a fact to memory",
                    "memory__save",
                    {"text": f"{SEEDED_PHRASE} stands in session {SEEDED_SESSION}."},
                    waits=True,
                ),
            ),
            f"It stands in session {SEEDED_SESSION}; I saved that.",
            checks={
                "sessions__search": {"phrase": SEEDED_PHRASE},
                "memory__save": {"text": SEEDED_SESSION},
            },
            says=(SEEDED_SESSION,),
            never_says=(rf"ses_(?!{SEEDED_SESSION[4:]})\w+",),
        ),
        Turn(
            "Sum up what you really did in this conversation: which tools ran, and what each of "
            "them returned.",
            (),
            f"I saved that your favourite harbour is Vathy; ran hostname, which printed {HOST}, "
            f"and saved that; found {SEEDED_PHRASE} in session {SEEDED_SESSION} and saved that.",
            says=("vathy", HOST, SEEDED_SESSION),
            never_says=(rf"ses_(?!{SEEDED_SESSION[4:]})\w+", r"\b581\b"),
            claims={
                r"\bsaved\b|\bstored\b": "memory__save",
                r"hostname|" + HOST: "terminal",
                SEEDED_SESSION: "sessions__search",
            },
        ),
    ),
    beside=("memory__search", "notes__create_note", "chat__search_messages"),
)

SCENARIOS = (_OBVIOUS, _VAGUE, _CHAIN, _CORE_PLUS, _NO_TOOL, _NEAR, _NONE, *_SIZES, _SIX)
"""All of them, plain ones first."""


def scenarios_named(names: tuple[str, ...]) -> tuple[Scenario, ...]:
    """Return the scenarios of these names; all where none is given.

    Raises:
        ConfigError: A name is none.
    """
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    for name in names:
        if name not in by_name:
            raise ConfigError(
                f"no scenario is named {name!r}", hint=f"there are: {', '.join(by_name)}"
            )
    return tuple(by_name[name] for name in names) if names else SCENARIOS
