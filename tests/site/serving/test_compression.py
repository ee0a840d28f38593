"""Responses are compressed for those who accept it, except where a secret is shown."""

import gzip
import zlib

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from evals_app.pages.runs import listing
from tests.evals.pages.test_runs import make_runs, make_version
from tests.factories import ONE_CODE_BLOCK, make_workflow

pytestmark = pytest.mark.django_db
ACCEPTS = {"Accept-Encoding": "gzip, br"}


@pytest.fixture
def root() -> Client:
    client = Client(headers=ACCEPTS)
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("path", ["/workflows/", "/admin/", "/api/workflows/shout/", "/static/css/base.css"])
def test_pages_answers_and_files_are_compressed(root: Client, path: str) -> None:
    make_workflow()
    compressed = root.get(path)
    assert compressed["Content-Encoding"] == "gzip" and "Accept-Encoding" in compressed["Vary"]
    plain = root.get(path, headers={"Accept-Encoding": "identity"})
    assert not plain.has_header("Content-Encoding")
    assert len(compressed.content) < len(plain.content) and gzip.decompress(compressed.content)


def test_a_part_of_a_file_is_sent_as_it_is(root: Client) -> None:
    part = root.get("/static/css/base.css", headers={"Range": "bytes=0-399"})
    assert part.status_code == 206 and not part.has_header("Content-Encoding") and len(part.content) == 400


def test_a_new_tokens_key_is_never_compressed(root: Client) -> None:
    fields = {"name": "ci", "role": "", "days": "90", "user": User.objects.get().pk}
    page = root.post("/admin/workflows_app/apitoken/add/", fields)
    assert b"rs_" in page.content and not page.has_header("Content-Encoding")


def test_the_etag_of_a_compressed_answer_still_names_the_version_to_change(root: Client) -> None:
    make_workflow()
    path = "/api/workflows/shout/"
    etag = root.get(path)["ETag"]
    assert etag.startswith("W/")
    change = {"data": {"yaml": ONE_CODE_BLOCK + "#\n"}, "content_type": "application/json"}
    assert root.put(path, **change, headers={"If-Match": etag}).status_code == 200
    assert root.put(path, **change, headers={"If-Match": etag}).status_code == 412


@pytest.mark.django_db(transaction=True)
async def test_an_export_is_one_gzip_file_that_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from asgiref.sync import sync_to_async

    def prepare() -> User:
        make_runs(make_version(), 3)
        return User.objects.create_superuser("root")

    monkeypatch.setattr(listing, "CHUNK", 1)
    client = AsyncClient()
    await client.aforce_login(await sync_to_async(prepare)())
    response = await client.get("/runs/export.jsonl", headers=ACCEPTS)
    assert response["Content-Encoding"] == "gzip"
    reader = zlib.decompressobj(wbits=31)  # reads one gzip file, as a browser does
    texts = [reader.decompress(piece) async for piece in response.streaming_content]
    assert [text.count(b"\n") for text in texts] == [1, 1, 1, 0] and reader.eof
