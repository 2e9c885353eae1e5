"""What stands in `deploy/` names nothing that is not there: settings, flags, paths, metrics."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

import click
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from psycopg import pq

from toolfold.cli import main
from toolfold.config import GatewayConfig, load_gateway
from toolfold.dispatch.records import CallRecord, FoldRecord, Outcome, SearchRecord
from toolfold.serve.http.addresses import Hosts
from toolfold.serve.http.customs import MCP_PATH, McpCustoms
from toolfold.serve.http.guard import DoorRules
from toolfold.serve.oauth.protected_resource import METADATA_PATH
from toolfold.serve.observe.metrics import Metrics
from toolfold.settings import ENVIRONMENT
from toolfold.sources.mcp.server_status import ServerStatus

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
YAML = [path for path in FILES if path.suffix == ".yaml"]
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
UNIT = (DEPLOY / "systemd" / "toolfold.service").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "guides" / "deployment.md").read_text(encoding="utf-8")
PORT = 8765
NAME = "gateway.example.com"
STORE = "TOOLFOLD_STORE"

_FOREIGN = {"HOME", "PATH", "PYTHONDONTWRITEBYTECODE"}


def _id(path: Path) -> str:
    return path.relative_to(DEPLOY).as_posix()


def _read(*parts: str) -> Any:
    return yaml.safe_load(DEPLOY.joinpath(*parts).read_text(encoding="utf-8"))


def _compose() -> Any:
    return _read("compose", "compose.yaml")


def _deployment() -> Any:
    return _read("kubernetes", "deployment.yaml")


def _pod() -> Any:
    return _deployment()["spec"]["template"]["spec"]


def _container() -> Any:
    (container,) = _pod()["containers"]
    return container


def _migration() -> Any:
    return _read("kubernetes", "migration.yaml")["spec"]["template"]


def _migrating() -> Any:
    (container,) = _migration()["spec"]["containers"]
    return container


def _caddy() -> str:
    return (DEPLOY / "compose" / "Caddyfile").read_text(encoding="utf-8")


def _gateways() -> list[Any]:
    services = _compose()["services"]
    return [services["gateway-1"], services["gateway-2"]]


def _configurations(folder: Path) -> Iterator[GatewayConfig]:
    """Read that of one machine, of compose and of the cluster."""
    ours = DEPLOY / "gateway"
    one = (ours / "toolfold.yaml").read_text(encoding="utf-8")
    shared = (ours / "replicas.yaml").read_text(encoding="utf-8")
    in_cluster = _read("kubernetes", "configuration.yaml")["data"]["toolfold.yaml"]
    for text in (one, shared, in_cluster):
        file = folder / "toolfold.yaml"
        file.write_text(text, encoding="utf-8")
        yield load_gateway(file, environ={})


def _unit() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def _image_lists(name: str) -> list[str]:
    (found,) = re.findall(rf"^{name} (\[.*\])$", CONTAINERFILE, re.MULTILINE)
    return cast("list[str]", yaml.safe_load(found))


# ---- files


@pytest.mark.parametrize("path", YAML, ids=_id)
def test_every_file_is_yaml_with_something_in_it(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_kustomization_names_every_manifest() -> None:
    there = {path.name for path in (DEPLOY / "kubernetes").iterdir()} - {"kustomization.yaml"}
    assert set(_read("kubernetes", "kustomization.yaml")["resources"]) == there


def test_what_the_image_copies_and_what_compose_mounts_is_there() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, re.MULTILINE)
    mounted = chain.from_iterable(s.get("volumes", []) for s in _compose()["services"].values())
    sources = [v.partition(":")[0] for v in mounted]
    assert [n for n in " ".join(copied).split() if not (ROOT / n).exists()] == []
    missing = [s for s in sources if s[0] == "." and not (DEPLOY / "compose" / s).exists()]
    assert missing == []
    assert {s for s in sources if s[0] != "."} <= set(_compose()["volumes"])


# ---- settings, variables and flags


def test_the_configurations_are_ours_and_serve_nobody_without_a_token(tmp_path: Path) -> None:
    for config in _configurations(tmp_path):
        names = {token.env for token in config.serve.tokens}
        assert names == {"TEAM_A_TOKEN", "TEAM_B_TOKEN", "METRICS_TOKEN"}
        assert not config.serve.watch
        assert Hosts("0.0.0.0", config.serve.allowed_hosts).admit(NAME)
        assert not Hosts("0.0.0.0", config.serve.allowed_hosts).admit("elsewhere.example")


def test_the_configurations_open_a_door_on_every_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for config in _configurations(tmp_path):
        for token in config.serve.tokens:
            monkeypatch.setenv(token.env, f"a long secret for {token.name}")
        rules = DoorRules.of(config.serve, "0.0.0.0")
        assert rules.principal("team-a") is not None
        assert rules.principal("local") is None


def test_every_token_of_a_configuration_reaches_its_process(tmp_path: Path) -> None:
    one, own, in_cluster = _configurations(tmp_path)
    example = (DEPLOY / "compose" / "example.env").read_text(encoding="utf-8")
    named = {token.env for token in own.serve.tokens}
    assert {token.env for token in one.serve.tokens} == named
    assert all(named <= set(gateway["environment"]) for gateway in _gateways())
    assert named <= set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    given = {entry["name"] for entry in _container()["env"]}
    assert {token.env for token in in_cluster.serve.tokens} <= given


def test_replicas_share_a_store_and_one_machine_needs_none(tmp_path: Path) -> None:
    one, own, in_cluster = _configurations(tmp_path)
    assert one.serve.store == "files"
    assert own.serve == replace(one.serve, store=STORE)
    assert in_cluster.serve.store == STORE
    addresses = {gateway["environment"][STORE] for gateway in _gateways()}
    assert addresses == {"postgresql://app:${APP_PASSWORD:?see example.env}@database/tools"}
    assert all("store" in gateway["networks"] for gateway in _gateways())
    assert _gateways()[0]["environment"]["TOOLFOLD_CONFIG"] == "/etc/toolfold/replicas.yaml"
    (from_secret,) = [entry for entry in _container()["env"] if entry["name"] == STORE]
    assert from_secret["valueFrom"]["secretKeyRef"]["name"] == "toolfold-store"


def test_the_image_can_speak_to_postgresql() -> None:
    (extras,) = re.findall(r'"\.\[([a-z,]+)\]"', CONTAINERFILE)
    assert {"mcp", "postgres"} <= set(extras.split(","))


def test_the_owner_migrates_before_a_gateway_starts_and_no_gateway_is_the_owner() -> None:
    services = _compose()["services"]
    migrate = services["migrate"]
    assert migrate["environment"]["PGUSER"] == services["database"]["environment"]["POSTGRES_USER"]
    assert migrate["depends_on"] == {"database": {"condition": "service_healthy"}}
    for gateway in _gateways():
        assert gateway["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert "OWNER_PASSWORD" not in str(gateway["environment"])
    assert migrate["command"] == _migrating()["args"] == ["store", "migrate", "--role", "app"]
    assert "create role app login" in (DEPLOY / "compose" / "roles.sh").read_text(encoding="utf-8")
    assert _migrating()["image"] == _container()["image"]
    assert "toolfold-owner" in str(_migrating()["env"])
    assert "toolfold-owner" not in str(_pod())


def test_a_database_that_is_being_set_up_is_not_taken_for_ready() -> None:
    check = _compose()["services"]["database"]["healthcheck"]["test"]
    assert check[check.index("--host") + 1] == "127.0.0.1"


def test_every_variable_that_compose_asks_for_is_in_the_example() -> None:
    text = (DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8")
    example = (DEPLOY / "compose" / "example.env").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{(\w+)", text))
    assert asked == set(re.findall(r"^(\w+)=", example, re.MULTILINE))


def test_every_variable_of_a_process_is_read_by_somebody(tmp_path: Path) -> None:
    tokens = {t.env for config in _configurations(tmp_path) for t in config.serve.tokens}
    libpq = {option.envvar.decode() for option in pq.Conninfo.get_defaults() if option.envvar}
    known = {*ENVIRONMENT, "TOOLFOLD_CONFIG", STORE, *tokens, *libpq, *_FOREIGN}
    services = _compose()["services"]
    ours = [s for s in services.values() if s["image"] == "toolfold:local"]
    named = set(chain.from_iterable(service["environment"] for service in ours))
    named |= {entry["name"] for entry in (*_container()["env"], *_migrating()["env"])}
    named |= set(re.findall(r"^(?:ENV)? +([A-Z_]+)=", CONTAINERFILE, re.MULTILINE))
    named |= {w.partition("=")[0] for v in _unit()["Environment"] for w in v.split()}
    assert len(ours) == 4
    assert sorted(named - known) == []


def test_every_command_has_the_flags_it_is_given() -> None:
    services = _compose()["services"]
    (start,) = _unit()["ExecStart"]
    program, *from_unit = shlex.split(start)
    given = [
        _image_lists("CMD"),
        _container()["args"],
        from_unit,
        services["migrate"]["command"],
        _migrating()["args"],
        [*services["catalog"]["entrypoint"][1:], *services["catalog"]["command"]],
    ]
    assert program.endswith("/toolfold")
    root = main.make_context("toolfold", [], resilient_parsing=True)
    for name, *arguments in given:
        command = main.get_command(root, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            name, *arguments = arguments
            command = command.get_command(root, name)
            assert command is not None, name
        command.make_context(name, arguments, parent=root)


# ---- ports and paths


def test_everybody_speaks_of_the_port_that_is_served() -> None:
    (start,) = _unit()["ExecStart"]
    caddy = _caddy()
    (scrape,) = _read("prometheus", "scrape.yaml")["scrape_configs"]
    (service,) = _read("kubernetes", "service.yaml")["spec"]["ports"]
    policy = _read("kubernetes", "network-policy.yaml")["spec"]["ingress"][0]["ports"]
    assert f"0.0.0.0:{PORT}" in _image_lists("CMD")
    assert f"0.0.0.0:{PORT}" in _container()["args"]
    assert f"127.0.0.1:{PORT}" in start
    assert f"EXPOSE {PORT}\n" in CONTAINERFILE
    assert _container()["ports"] == [{"name": "http", "containerPort": PORT}]
    assert (service["port"], service["targetPort"]) == (PORT, "http")
    assert policy == [{"port": PORT}]
    ports = re.findall(r"gateway-\d:(\d+)", f"{caddy}{scrape['static_configs']}")
    assert ports == [str(PORT)] * 4


def test_probes_and_proxies_ask_for_paths_that_are_open() -> None:
    caddy = _caddy()
    probes = {kind: _container()[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")}
    paths = {kind: probe["httpGet"]["path"] for kind, probe in probes.items()}
    assert set(paths.values()) == set(McpCustoms.open_paths)
    assert paths["readiness"] == McpCustoms.ready_path
    assert f"127.0.0.1:{PORT}{McpCustoms.health_path}" in CONTAINERFILE
    assert f"health_uri {McpCustoms.ready_path}\n" in caddy
    assert f"@mcp path {MCP_PATH} {MCP_PATH}/* {METADATA_PATH}*\n" in caddy
    (scrape,) = _read("prometheus", "scrape.yaml")["scrape_configs"]
    assert scrape["metrics_path"] == McpCustoms.metrics_path


def test_no_client_is_kept_with_a_replica() -> None:
    assert re.findall(r"lb_policy (.+)", _caddy()) == ["least_conn"]
    affinity = [key for key in _read("kubernetes", "service.yaml")["spec"] if "Affinity" in key]
    assert affinity == []


def test_what_a_replica_may_have_got_is_not_sent_to_another() -> None:
    # Caddy asks the next one where no connection was made; with `lb_retry_match` it would do so
    # for requests that were sent.
    directives = re.findall(r"^\s*(lb_\w+)", _caddy(), re.MULTILINE)
    assert "lb_try_duration" in directives
    assert "lb_retry_match" not in directives
    assert "keepalive off\n" in _caddy()


def test_who_balances_sees_a_replica_stop_while_it_still_takes_calls(tmp_path: Path) -> None:
    _, own, in_cluster = _configurations(tmp_path)
    interval, timeout = (
        float(re.findall(rf"health_{name} (\d+)s", _caddy())[0]) for name in ("interval", "timeout")
    )
    probe = _container()["readinessProbe"]
    noticed = (probe["periodSeconds"] + probe["timeoutSeconds"]) * probe["failureThreshold"]
    assert interval + timeout < own.serve.notice
    assert noticed <= in_cluster.serve.notice


def test_replicas_share_no_state_folder(tmp_path: Path) -> None:
    for config in _configurations(tmp_path):
        assert config.serve.state_dir == "/var/lib/toolfold"
    volumes = [v for gateway in _gateways() for v in gateway["volumes"] if "lib/toolfold" in v]
    assert volumes == ["gateway-1:/var/lib/toolfold", "gateway-2:/var/lib/toolfold"]
    assert "VOLUME /var/lib/toolfold\n" in CONTAINERFILE
    assert _unit()["StateDirectory"] == ["toolfold"]
    mounts = {mount["mountPath"] for mount in _container()["volumeMounts"]}
    assert mounts == {"/etc/toolfold", "/var/lib/toolfold", "/tmp"}


def test_who_stops_a_gateway_waits_as_long_as_it_takes(tmp_path: Path) -> None:
    one, own, in_cluster = (c.serve.notice + c.serve.drain + 10 for c in _configurations(tmp_path))
    grace = {gateway["stop_grace_period"] for gateway in _gateways()}
    assert grace == {f"{own:.0f}s"}
    assert _pod()["terminationGracePeriodSeconds"] >= in_cluster
    assert float(_unit()["TimeoutStopSec"][0]) >= one
    assert _unit()["KillMode"] == ["mixed"]
    probe = _container()["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > in_cluster


# ---- what a process may


def test_no_process_of_ours_is_root_or_writes_to_its_root() -> None:
    (uid,) = re.findall(r"^USER (\d+):\d+$", CONTAINERFILE, re.MULTILINE)
    assert CONTAINERFILE.rindex("\nUSER ") > CONTAINERFILE.rindex("\nRUN ")
    for pod in (_pod(), _migration()["spec"]):
        assert pod["securityContext"]["runAsUser"] == int(uid) > 0
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
    for container in (_container(), _migrating()):
        bounds = container["securityContext"]
        assert bounds["readOnlyRootFilesystem"] is True
        assert bounds["allowPrivilegeEscalation"] is False
        assert bounds["capabilities"] == {"drop": ["ALL"]}
    services = _compose()["services"]
    for service in (s for s in services.values() if s["image"] == "toolfold:local"):
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    for key, value in (("User", "toolfold"), ("ProtectSystem", "strict")):
        assert _unit()[key] == [value]
    assert _unit()["NoNewPrivileges"] == ["yes"]


def test_a_reload_that_comes_too_early_leaves_no_gateway_down() -> None:
    # To systemd an end by SIGHUP is one in order, after which nothing is started again.
    assert _unit()["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert _unit()["RestartForceExitStatus"] == ["SIGHUP"]


def test_the_labels_that_select_a_pod_are_those_it_has() -> None:
    labels = _deployment()["spec"]["template"]["metadata"]["labels"]
    budget = _read("kubernetes", "disruption-budget.yaml")["spec"]["selector"]["matchLabels"]
    policy = _read("kubernetes", "network-policy.yaml")["spec"]["podSelector"]["matchLabels"]
    assert _deployment()["spec"]["selector"]["matchLabels"] == labels
    assert _read("kubernetes", "service.yaml")["spec"]["selector"] == labels
    assert budget == policy == labels
    migration = _read("kubernetes", "migration-network-policy.yaml")["spec"]
    assert migration["podSelector"]["matchLabels"] == _migration()["metadata"]["labels"] != labels


def test_gateways_and_the_migration_reach_the_database() -> None:
    for name in ("network-policy.yaml", "migration-network-policy.yaml"):
        egress = _read("kubernetes", name)["spec"]["egress"]
        ports = [port["port"] for rule in egress for port in rule["ports"]]
        assert 5432 in ports, name


def test_no_secret_stands_in_a_file() -> None:
    example = (DEPLOY / "compose" / "example.env").read_text(encoding="utf-8")
    filled = re.findall(r"^(\w+)=.", example, re.MULTILINE)
    assert filled == ["GATEWAY_NAME"]
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"kind: Secret\b|\b[0-9a-f]{32,}\b", text), path


# ---- alerts


def _metrics() -> dict[str, set[str]]:
    """Return every metric that the gateway writes, with its labels."""
    metrics = Metrics("1.2.3", sessions=lambda: 4, in_flight=lambda: 2)
    metrics.called(CallRecord(1.0, "p", None, "s", "s__t", "direct", "ok", 0.1))
    metrics.searched(SearchRecord(1.0, "p", None, "open an issue", 3, 0.001))
    metrics.server_changed(ServerStatus("s", "stdio", "ready", tools=1))
    metrics.folded(FoldRecord(True, 226, 53_994, 398))
    metrics.refused("token")
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.text()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def _alerts() -> list[Any]:
    groups = _read("prometheus", "rules.yaml")["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("alert", _alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_names_metrics_labels_and_values_that_there_are(alert: Any) -> None:
    known = _metrics()
    expression = alert["expr"]
    named = set(re.findall(r"\btoolfold_\w+", expression))
    assert named <= set(known)
    assert named or "up{" in expression
    by = chain.from_iterable(m.split(", ") for m in re.findall(r"by \(([^)]*)\)", expression))
    matched = re.findall(r"[{,](\w+)=", expression)
    labels = set[str]().union(*(known[name] for name in named)) | {"instance", "job"}
    assert {*by, *matched} <= labels
    texts = " ".join(alert["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= labels
    for outcomes in re.findall(r'outcome=~?"([^"]*)"', expression):
        assert set(outcomes.split("|")) <= set(get_args(Outcome))


def test_the_reasons_of_refusals_are_those_of_the_operations_page() -> None:
    page = (ROOT / "docs" / "guides" / "gateway-operations.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `toolfold_requests_refused_total`.*$", page, re.MULTILINE)
    text = (DEPLOY / "prometheus" / "rules.yaml").read_text(encoding="utf-8")
    reasons = chain.from_iterable(r.split("|") for r in re.findall(r'reason=~?"([^"]*)"', text))
    assert [reason for reason in reasons if f"`{reason}`" not in row] == []


def test_the_page_has_every_alert_and_no_metric_that_is_not_there() -> None:
    assert [rule["alert"] for rule in _alerts() if f"`{rule['alert']}`" not in PAGE] == []
    assert set(re.findall(r"\btoolfold_[a-z_]+", PAGE)) <= set(_metrics())
