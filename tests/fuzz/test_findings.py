"""What fuzzing has found, kept: each of these once was a fault of the server's."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.factories import make_workflow
from tests.fuzz.doors import answer_of, taken_back
from workflows_app.models import Run

pytestmark = pytest.mark.django_db
NOBODY = "0" * 32
ADDRESSES = [
    ("/runs/?until=9999-12-31", 200),
    ("/runs/export.csv?until=9999-12-31", 200),
    (f"/runs/?after=0001-01-01T00:00:00%2B14:00~{NOBODY}", 200),
    (f"/runs/?before=9999-12-31T23:59:59-14:00~{NOBODY}", 200),
    ("/assertions/?workflow=%00", 200),
    ("/assertions/?workflow=invoices&block=%00", 200),
    ("/assertions/blocks/?workflow=%00", 404),
]
CALLS = [
    ("/api/workflows/?cursor=cD0lMDA=", 400),  # p=%00
    ("/api/souls/?cursor=cD0lMDA=", 400),
]


@pytest.mark.storage
@pytest.mark.parametrize(("path", "status"), ADDRESSES)
def test_page_answers(path: str, status: int, site: dict[str, Any]) -> None:
    assert answer_of(site["pages"], "GET", path).status_code == status


@pytest.mark.storage
@pytest.mark.parametrize(("path", "status"), CALLS)
def test_call_answers(path: str, status: int, site: dict[str, Any]) -> None:
    assert answer_of(site["api"], "GET", path).status_code == status


INPUTS = [
    ('{"a": 1e999}', None),
    ('{"a": ' + "[" * 900 + "]" * 900 + "}", None),
    ('{"a": "\\ud800"}', {"a": "\ufffd"}),
    ('{"a\\u0000": "\\u0000"}', {"a\ufffd": "\ufffd"}),
]


@pytest.mark.storage
@pytest.mark.parametrize(("typed", "kept"), INPUTS)
def test_inputs_are_kept_whole_or_refused(typed: str, kept: Any, site: dict[str, Any]) -> None:
    with taken_back():
        count = Run.objects.count()
        response = post(site, "/workflows/invoices/run/", inputs=typed)
        if kept is None:
            assert Run.objects.count() == count
            assert "is not JSON" in response.content.decode()
        else:
            assert Run.objects.order_by("-created_at")[0].inputs == kept
            assert answer_of(site["pages"], "GET", response["Location"]).status_code == 200


@pytest.mark.storage
def test_typed_text_is_stored_everywhere(site: dict[str, Any]) -> None:
    with taken_back():
        post(site, "/workflows/shout/run/", **{"input-text": "a\0b"})
        assert Run.objects.order_by("-created_at")[0].inputs == {"text": "a\ufffdb"}


def post(site: dict[str, Any], path: str, **form: str) -> Any:
    return answer_of(
        site["pages"], "POST", path, data=urlencode(form), content_type="application/x-www-form-urlencoded"
    )


@pytest.mark.storage
def test_lab_takes_any_limit(site: dict[str, Any]) -> None:
    assert post(site, "/assertions/", limit="9" * 5000, workflow="\0").status_code == 200


@pytest.mark.storage
def test_copying_no_workflow_in_the_admin_begins_an_empty_one(admin_client: Any) -> None:
    assert admin_client.get("/admin/workflows_app/workflow/add/?copy=%00").status_code == 200


@pytest.mark.storage
def test_pinning_a_version_beyond_all_numbers_is_refused(site: dict[str, Any]) -> None:
    assert post(site, "/workflows/invoices/baseline/", version="9" * 5000).status_code == 302


@pytest.mark.parametrize("path", ["", "add/", "1/change/", "1/delete/"])
def test_empty_reference_in_the_admin(admin_client: Client, path: str) -> None:
    address = f"/admin/auth/group/{path}"
    assert admin_client.get(address, {"_to_field": ""}).status_code == 400
    assert admin_client.post(address, {"_to_field": ""}).status_code == 400
    assert admin_client.get(address, {"_to_field": "id"}).status_code in (200, 302, 403)


JSON_OUTPUTS = """\
version: "1.0"
souls:
  a: {role: A, system_prompt: x, provider: demo, model_name: demo-small}
blocks:
  extract:
    type: llm
    soul_ref: a
    prompt: x
    assertions:
      - {type: equals, value: b, transform: "json_path:$.a"}
      - {type: is-json, value: {properties: {a: {type: boolean}}}}
  write: {type: llm, soul_ref: a, prompt: x, depends: extract}
interface:
  outputs:
    - {name: whole, source: extract.json}
"""
OUTPUTS = [
    '{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}', '{"a": "\\u0000"}', '{"\\ud800": "\\u0000", "a": 1}',
    '"\\ud800"', "[1e400]", '{"a": ' + "9" * 5000 + "}", *('{"a":' * depth + "1" + "}" * depth for depth in (150, 400, 3000)),
]  # fmt: skip


@pytest.mark.storage
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda text: text[:20])
def test_any_json_that_a_model_writes_is_kept_and_shown(output: str, site: dict[str, Any]) -> None:
    make_workflow(JSON_OUTPUTS, "reader")
    ids = []
    for name, text in (("j1", output), ("j2", output.replace("1", "2"))):
        nodes = [{"node_id": block, "output": text} for block in ("extract", "write")]
        report = {"workflow": "reader", "external_id": name, "status": "completed", "nodes": nodes}
        response = site["api"].post("/api/runs/ingest/", report)
        assert response.status_code == 201, response.content
        ids.append(response.json()["id"])
    run = Run.objects.get(pk=ids[0])
    shown = ["", "case.yaml", f"compare/{ids[1]}/", *(f"nodes/{node.pk}/case/" for node in run.nodes.all())]
    for path in shown:
        assert answer_of(site["pages"], "GET", f"/runs/{run.pk}/{path}").status_code == 200
