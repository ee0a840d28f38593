"""Saving workflows and souls: what is refused, what makes a version, what travels as files."""

from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.factories import ONE_CODE_BLOCK, SOUL, make_workflow
from workflows_app import services
from workflows_app.engine.definition import InvalidDocument
from workflows_app.models import AuditEntry, PriceOverride, Soul, SoulVersion, Workflow, WorkflowVersion
from workflows_app.security import credentials
from workflows_app.services.files import export_all, import_file

pytestmark = pytest.mark.django_db
CAPPED = SOUL.replace("demo-small", "house-model") + (
    'version: "1.0"\nblocks:\n  ask: {type: llm, soul_ref: analyst, prompt: Hi, limits: {cost_cap_usd: 1}}\n'
)


def test_bad_document_is_refused_whole_with_every_fault():
    with pytest.raises(InvalidDocument) as refused:
        make_workflow(
            ONE_CODE_BLOCK.replace("contains", "contians").replace("type: code", "type: coed"), "bad"
        )
    assert len(refused.value.faults) == 2
    assert not Workflow.objects.exists()


@pytest.mark.storage
def test_version_never_changes():
    version = make_workflow().current_version
    version.yaml = "other"
    with pytest.raises(TypeError, match="never changes"):
        version.save()


@pytest.mark.storage
def test_second_of_two_editors_is_reported_and_nothing_is_overwritten():
    make_workflow()
    services.save_version("shout", ONE_CODE_BLOCK + "# mine\n", based_on=1)
    with pytest.raises(services.Stale) as refused:
        services.save_version("shout", ONE_CODE_BLOCK + "# yours\n", based_on=1)
    assert refused.value.current.number == 2
    assert WorkflowVersion.objects.count() == 2


def test_cap_on_a_model_without_a_price_is_a_fault_until_it_has_one():
    credentials.forget()
    with pytest.raises(InvalidDocument, match=r"house-model.*no price"):
        make_workflow(CAPPED, "capped")
    PriceOverride.objects.create(
        model_name="house-model", input_per_million_usd=Decimal(1), output_per_million_usd=Decimal(2)
    )
    credentials.forget()
    assert make_workflow(CAPPED, "capped").current_version.number == 1
    credentials.forget()


@pytest.mark.storage
def test_soul_gets_a_version_only_when_its_identity_changes():
    soul = services.save_soul(Soul(slug="ann", role="Analyst", system_prompt="Analyse."))
    first = soul.version
    soul.avatar_color = "#fff"
    services.save_soul(soul)
    assert soul.version == first
    soul.system_prompt = "Analyse well."
    services.save_soul(soul)
    assert SoulVersion.objects.filter(soul=soul).count() == 2 and soul.version != first


@pytest.mark.storage
def test_saving_is_in_the_audit_log():
    make_workflow(message="why")
    entry = AuditEntry.objects.get(action="workflow.save")
    assert (entry.target, entry.detail["message"]) == ("shout", "why")


def test_import_of_an_export_changes_nothing(tmp_path: Path):
    make_workflow()
    make_workflow(ONE_CODE_BLOCK + "# é\r\n", "second")
    paths = list(export_all(tmp_path))
    assert [path.name for path in paths] == ["second.yaml", "shout.yaml"]
    assert [import_file(path).number for path in paths] == [1, 1]
    assert WorkflowVersion.objects.count() == 2


def test_import_takes_a_folder_whole_whatever_refers_to_what(tmp_path: Path):
    child = "version: '1.0'\nblocks:\n  a: {type: workflow, workflow_ref: z-last}\n"
    (tmp_path / "a-first.yaml").write_text(child)
    (tmp_path / "z-last.yaml").write_text(ONE_CODE_BLOCK)
    call_command("import_workflows", tmp_path)
    assert set(Workflow.objects.values_list("slug", flat=True)) == {"a-first", "z-last"}


def test_import_of_a_folder_with_a_fault_imports_nothing(tmp_path: Path, capsys):
    (tmp_path / "good.yaml").write_text(ONE_CODE_BLOCK)
    (tmp_path / "bad.yaml").write_text(ONE_CODE_BLOCK.replace("contains", "contians"))
    with pytest.raises(CommandError, match="nothing was imported"):
        call_command("import_workflows", tmp_path)
    assert not Workflow.objects.exists()
    assert "bad.yaml: blocks.shout.assertions[0].type (line 9)" in capsys.readouterr().err
