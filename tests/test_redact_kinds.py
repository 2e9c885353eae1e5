"""`toolfold.redact`: kind by kind, what is a secret and what only resembles one."""

from __future__ import annotations

import time

import pytest

from toolfold.redact import MARK, Redactor, redact, redacted

HEX = "4f9a2c7e1b8d3056"
RUN = "q7Rt2LmX9vB4nK8sW1zH5cJ3"
"""What nobody would write by hand. Keys are put together here, so that none stands in the file."""

KINDS = {
    "a Slack webhook": ("https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/", RUN),
    "a Slack workflow": ("https://hooks.slack.com/workflows/T0AB12CD3/A0EF45/1234/", RUN),
    "a Discord webhook": ("https://discord.com/api/webhooks/123456789012345678/", RUN * 2),
    "an old Discord webhook": ("https://discordapp.com/api/webhooks/1234567890/", RUN * 2),
    "a Teams webhook": ("https://x.webhook.office.com/webhookb2/", f"{HEX * 2}@a/IncomingWebhook"),
    "a webhook of anybody": ("https://ci.example.org/api/hooks/deploy/", RUN),
    "a Discord bot": ("", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
    "a Telegram bot": ("", "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawx"),
    "a Telegram address": ("https://api.telegram.org/bot", f"110201543:AA{RUN}{RUN[:9]}"),
    "Vault": ("", "hvs." + RUN * 2),
    "Vault, batch": ("", "hvb." + RUN * 2),
    "Vault, older": ("token is ", "s." + RUN),
    "Shopify": ("", "shpat_" + HEX * 2),
    "Shopify, shared": ("", "shpss_" + HEX * 2),
    "DigitalOcean": ("", "dop_v1_" + HEX * 4),
    "Databricks": ("", "dapi" + HEX * 2),
    "Atlassian": ("", f"ATATT3xFfGF0{RUN}-{RUN}_a=4F9A2C7E"),
    "Bitbucket": ("", "ATBB" + RUN),
    "Notion": ("", "ntn_" + RUN + RUN[:22]),
    "Notion, older": ("", "secret_" + RUN + RUN[:19]),
    "Linear": ("", "lin_api_" + RUN + RUN[:16]),
    "Twilio": ("", "SK" + HEX * 2),
    "Twilio's token": ("TWILIO_AUTH_TOKEN=", HEX * 2),
    "Grafana": ("", f"glsa_{RUN}{RUN[:8]}_4f9a2c7e"),
    "Grafana Cloud": ("", "glc_eyJ" + RUN * 2),
    "Docker": ("", f"dckr_pat_{RUN}abc"),
    "Supabase": ("", "sbp_" + HEX * 2 + HEX[:8]),
    "Supabase's secret": ("", f"sb_secret_{RUN}_abc"),
    "Figma": ("", f"figd_{RUN}-{RUN[:15]}"),
    "GitLab, deploy": ("", "gldt-" + RUN),
    "GitLab, runner": ("", "glrt-" + RUN),
    "Google's client": ("", "GOCSPX-" + RUN),
    "Mailgun": ("", "key-" + HEX * 2),
    "Mailchimp": ("", HEX * 2 + "-us12"),
    "Postman": ("", f"PMAK-{HEX}{HEX[:8]}-{HEX * 2}ab"),
    "New Relic": ("", "NRAK-" + RUN.upper()),
    "Sentry": ("", "sntrys_eyJ" + RUN * 2),
    "Tailscale": ("", f"tskey-auth-{RUN[:12]}-{RUN}"),
    "Doppler": ("", "dp.pt." + RUN * 2),
    "Replicate": ("", "r8_" + RUN + RUN[:13]),
    "Perplexity": ("", "pplx-" + RUN * 2),
    "PlanetScale": ("", "pscale_tkn_" + RUN * 2),
    "RubyGems": ("", "rubygems_" + HEX * 3),
    "HubSpot": ("", "pat-na1-4f9a2c7e-1b8d-3056-4f9a-2c7e1b8d3056"),
    "1Password": ("", "ops_eyJ" + RUN * 3),
    "age": ("", "AGE-SECRET-KEY-1" + RUN.upper() * 2),
    "Terraform": ("", f"{RUN[:14]}.atlasv1.{RUN * 2}"),
    "a maker nobody has heard of": ("", "acme_live_" + RUN),
    "another of those": ("", "zorg_prod_key_" + RUN),
    "curl -u": ("curl -sS -u admin:", "hunter2"),
    "curl --user": ("curl https://host/x --user 'me:", "s3cr3t-pass"),
    "DB_PASS": ("DB_PASS=", "hunter2"),
    "pwd": ("Server=h;Uid=me;pwd=", "hunter2"),
    "dbPass": ("dbPass=", "correct-horse"),
    "sshpass": ("sshpass -p ", "hunter2"),
    "mysql -p": ("mysqldump -u root -p", "hunter2"),
    "a flag": ("serve --api-key ", RUN),
    "another flag": ("login --password ", "Hunter!x"),
    "an address with a token": ("cloning https://", f"{RUN}@git.example.org/x.git"),
    "a sentence": ("401: invalid token ", RUN),
    "a longer one": ("the API key was rejected: ", HEX * 2),
    "a subscription": ("Ocp-Apim-Subscription-Key: ", HEX * 2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("around", ["{}", "npm ERR! {} (see the log)", '{{"line": "{}"}}'])
def test_each_kind_of_secret_is_taken_out(kind: str, around: str) -> None:
    before, secret = KINDS[kind]
    text = around.format(before + secret)

    shown = redact(text)

    core = secret.partition("@")[0]
    assert core not in shown
    assert core[-8:] not in shown or len(core) < 9
    lead, _, rest = around.format("|").partition("|")
    assert shown.startswith(lead)
    assert shown.endswith(f"{MARK}{rest}" if "@" not in secret else rest)
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "commit 4f9a2c7e1b8d30564f9a2c7e1b8d30564f9a2c7e",
        "sha256:4f9a2c7e1b8d30564f9a2c7e1b8d30564f9a2c7e1b8d30564f9a2c7e1b8d3056",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "the token 123e4567-e89b-12d3-a456-426614174000 of the page",
        "request req_011CSHoEeqs5C35K2UUqR7Fy call_q7Rt2LmX9vB4nK8sW1zH5cJ3 toolu_01A09q90qw90lq9",
        "chatcmpl-q7Rt2LmX9vB4nK8sW1zH5cJ3 msg_01XFDUDYJgAACzvnptvVoYEL resp_67ccd2bed1ec8190b14f",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "https://github.com/me/repo/settings/hooks/12345678",
        "https://docs.example.org/webhooks/getting-started-with-webhooks",
        "https://example.org/services/consulting-and-more",
        "https://example.org/a/very/long/path/with/4f9a2c7e1b8d30564f9a2c7e/in/it?page=2",
        "https://me@example.org/x git+ssh://git@github.com/me/repo.git",
        "get_repository_access_token_permissions_for_enterprise_installation_1a2b3c4d",
        "github_api_list_pull_requests_for_authenticated_user_v3_2022",
        "mcp__secret_manager__list_secret_versions",
        "docker run -u 1000:1000 --user app:app image",
        "PWD=/home/me OLDPWD=/tmp pwd=~/x",
        "12 passed: pass=12 fail=3 bypass=yes pass=true",
        "pass: all tests are green",
        "Use --token TOKEN, or --password to be asked for one; --api-key-env NAME names it.",
        "The password is at least 8 characters long and has 2 digits.",
        "max token length 4096 tokens; the token is invalid; your API key was rejected",
        "a secret shared by 2 people; the credentials were not accepted by the server",
        "secret_manager_client_library_for_python secret_santa",
        "primary_key=4f9a2c7e1b8d30564f9a cache_key: 4f9a2c7e1b8d30564f9a2c7e1b8d3056",
        "at 2026-01-31T12:34:56.789012345+00:00, port 12345:678",
        "127.0.0.1:8080->10.0.0.1:443 12:34:56",
        "s.replaceAllOccurrencesOfTheWord(x) hvs.module",
        "dapibus ac facilisis in, egestas eget quam",
        "/nix/store/q7rt2lmx9vb4nk8sw1zh5cj3q7rt2lmx-python3-3.12.1/bin",
        "sk-learn keyboard-shortcuts-for-windows-11 key-value-store-of-2024",
        "curl -u $USER:$PASS https://host; curl https://host/x -o out",
        "mysql -u root -p db; mkdir -p a/b",
        "`sshpass -p`, `DB_PASS=`, `pwd=` and `curl -u` say it",
        "npm install --save-dev @types/node@20.1.0",
        "SKU12345678901234567890123456789012345",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_a_quoted_password_is_taken_out_to_its_end() -> None:
    text = "curl --user 'me:my long pass' https://host/x"

    assert redact(text) == f"curl --user 'me:{MARK}' https://host/x"


def test_names_of_keys_and_variables_tell() -> None:
    assert redacted({"db_pass": "x1y2z3", "pwd": "abc", "userPass": "a", "pass": 12}) == {
        "db_pass": MARK, "pwd": MARK, "userPass": MARK, "pass": 12,
    }  # fmt: skip
    environment = {"DB_PASS": "one-value", "SLACK_WEBHOOK_URL": "two-value", "BYPASS": "three-v"}
    redactor = Redactor.from_environment(environment)
    assert redactor.redact("one-value two-value three-v") == f"{MARK} {MARK} three-v"


@pytest.mark.parametrize(
    "text",
    [
        "curl " * 60_000,
        "curl -u " * 40_000,
        "https://a/hooks/" * 20_000,
        "https://" + "a/" * 150_000,
        "a_" * 150_000,
        "key_" * 75_000,
        "token " * 50_000,
        "token is " * 40_000,
        "1" * 300_000,
        "1:" * 150_000,
        "--token " * 40_000,
        "sshpass -p" * 30_000,
        "dp." * 100_000,
        "x.atlasv1" * 30_000,
        "a" * 300_000 + "-us1",
    ],
    ids=lambda text: text[:12],
)
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    redact(text)

    assert time.process_time() - started < 3
