"""The container and compose files: they parse, and name only what exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from runsight_site.environment import VARIABLES

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "docs" / "deploy"
INSTRUCTIONS = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN",
                "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}  # fmt: skip
SERVICE_KEYS = {"build", "command", "depends_on", "deploy", "environment", "healthcheck", "image", "ports",
                "restart", "stop_grace_period", "volumes"}  # fmt: skip


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    text = (FOLDER / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def test_container_file_has_known_instructions_and_starts_from_an_image(instructions):
    assert {name for name, _ in instructions} <= INSTRUCTIONS
    assert instructions[0][0] == "FROM"


def test_container_file_copies_only_what_is_there(instructions):
    stages = {match[1] for _, rest in instructions if (match := re.search(r" AS (\w+)$", rest))}
    for name, rest in instructions:
        words = rest.split()
        if name == "COPY" and not words[0].startswith("--from="):
            assert all((PROJECT / source).exists() for source in words[:-1]), rest
        elif name == "COPY":
            assert words[0].removeprefix("--from=") in stages


def test_container_has_every_package_and_does_not_run_as_root(instructions):
    copied = {word for name, rest in instructions if name == "COPY" for word in rest.split()}
    assert {"runsight_site", "workflows_app", "evals_app", "templates", "static"} <= copied
    last = max(index for index, (name, _) in enumerate(instructions) if name == "FROM")
    assert [rest for name, rest in instructions[last:] if name == "USER"] == ["runsight"]
    assert instructions[-1] == ("CMD", '["runsight", "up"]')


def test_compose_services_have_known_keys_and_depend_on_each_other_only(compose):
    services = compose["services"]
    for name, service in services.items():
        assert service.keys() <= SERVICE_KEYS, name
        assert "image" in service, name
        assert set(service.get("depends_on", ())) <= services.keys(), name
        for volume in service.get("volumes", ()):
            assert volume.partition(":")[0] in compose["volumes"], name
    needed = {one for service in services.values() if isinstance(service.get("depends_on"), dict)
              for one, how in service["depends_on"].items() if how["condition"] == "service_healthy"}  # fmt: skip
    checked = {name for name in needed if "healthcheck" in services[name]}
    assert needed - checked == {"web"}, "the web image brings its own check"


def test_compose_sets_only_variables_that_exist(compose):
    known = {variable.name for variable in VARIABLES}
    for name in ("web", "worker"):
        assert compose["services"][name]["environment"].keys() <= known


def test_compose_starts_commands_that_exist(compose):
    from django.core.management import get_commands

    assert compose["services"]["worker"]["command"][1] in get_commands()


def test_compose_build_names_the_container_file(compose):
    build = compose["services"]["web"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == FOLDER / "Containerfile"


def test_secrets_are_asked_for_and_not_written_down(compose):
    text = (FOLDER / "compose.yaml").read_text()
    for name in ("RUNSIGHT_SECRET_KEY", "POSTGRES_PASSWORD"):
        assert re.search(rf"\$\{{{name}:\?", text), f"{name} has no default"
