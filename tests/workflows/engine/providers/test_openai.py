"""The openai provider against a real server that answers well, slowly, badly, or not at all."""

import asyncio
import datetime
import email.utils
import ssl
import time
import tracemalloc

import pytest

from tests.timing import PROMPTLY
from tests.workflows.engine.providers.openai_server import (
    Behaviour,
    OpenAIServer,
    chat,
    completion,
    endless,
    failure,
    half_closed,
    hang_up,
    respond,
    slow,
    trickle,
)
from workflows_app.engine.providers import (
    ChatRequest,
    ChatResponse,
    ProviderAccess,
    ProviderError,
    make_provider,
)
from workflows_app.engine.providers.openai import OpenAIProvider, RetryPolicy

KEY = "sk-test-abcDEF1234567890"
REQUEST = ChatRequest("test-model", "Be brief.", "Say hello", 0.2, 50)
QUICK = RetryPolicy(attempts=3, first_seconds=0.01)


async def ask(server: OpenAIServer, request: ChatRequest = REQUEST, **options: object) -> ChatResponse:
    provider = OpenAIProvider(
        **{"base_url": server.url, "api_key": KEY, "timeout_seconds": 10, "retry": QUICK, **options}
    )
    try:
        return await provider.complete(request)
    finally:
        await provider.aclose()


async def fail(*behaviours: Behaviour, **options: object) -> tuple[ProviderError, OpenAIServer]:
    with OpenAIServer(*behaviours) as server, pytest.raises(ProviderError) as caught:
        await ask(server, **options)
    assert KEY not in str(caught.value)
    return caught.value, server


async def test_a_good_answer_gives_text_tokens_and_model() -> None:
    with OpenAIServer(chat("Hello!")) as server:
        response = await ask(server)
    assert response == ChatResponse("Hello!", 11, 7, 3, "test-model")
    (seen,) = server.requests
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "test-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello"}],
        "temperature": 0.2,
        "max_tokens": 50,
    }


async def test_what_is_not_set_is_not_sent() -> None:
    with OpenAIServer() as server:
        await ask(server, ChatRequest("test-model", "", "Hi"), api_key="")
    assert server.requests[0].body == {"model": "test-model", "messages": [{"role": "user", "content": "Hi"}]}
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "max_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("openai/gpt-5.1", "max_completion_tokens"),
    ],
)
async def test_the_limit_on_tokens_has_the_name_the_model_wants(model: str, name: str) -> None:
    with OpenAIServer() as server:
        await ask(server, ChatRequest(model, "", "Hi", max_tokens=5))
    assert [key for key in server.requests[0].body if key.startswith("max")] == [name]


async def test_a_server_that_wants_the_other_name_gets_it_and_is_remembered() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with OpenAIServer(failure(400, said, code="unsupported_parameter"), chat()) as server:
        provider = OpenAIProvider(base_url=server.url, retry=QUICK)
        assert (await provider.complete(REQUEST)).text == "Hello!"
        assert (await provider.complete(REQUEST)).text == "Hello!"
        await provider.aclose()
    names = [next(key for key in seen.body if key.startswith("max")) for seen in server.requests]
    assert names == ["max_tokens", "max_completion_tokens", "max_completion_tokens"]


async def test_rate_limits_wait_as_long_as_the_server_says() -> None:
    with OpenAIServer(failure(429, retry_after="1"), chat()) as server:
        assert (await ask(server)).text == "Hello!"
    first, second = server.requests
    assert 1.0 <= second.at - first.at < 2.5


async def test_a_date_to_retry_after_is_understood() -> None:
    until = email.utils.format_datetime(
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2), usegmt=True
    )
    with OpenAIServer(failure(503, retry_after=until), chat()) as server:
        assert (await ask(server)).text == "Hello!"
    first, second = server.requests
    assert 0.8 <= second.at - first.at < 3.5


async def test_the_delay_is_capped_and_nonsense_is_ignored() -> None:
    policy = RetryPolicy(attempts=4, first_seconds=0.01, longest_seconds=0.2)
    behaviours = [
        failure(429, retry_after="86400"),
        failure(429, retry_after="-1e999"),
        failure(429, retry_after="soon"),
        chat(),
    ]
    with OpenAIServer(*behaviours) as server:
        started = time.monotonic()
        assert (await ask(server, retry=policy)).text == "Hello!"
    assert 0.2 <= time.monotonic() - started < PROMPTLY


async def test_a_delay_beyond_the_time_limit_is_not_waited_for() -> None:
    started = time.monotonic()
    error, server = await fail(failure(429, "slow down", retry_after="20"), timeout_seconds=10)
    assert (error.kind, error.retryable) == ("rate_limited", True)
    assert "slow down" in error.message
    assert time.monotonic() - started < PROMPTLY
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "bad",
    [failure(500), failure(502), failure(503), hang_up, half_closed],
    ids=["500", "502", "503", "hang_up", "half_closed"],
)
async def test_passing_trouble_is_retried(bad: Behaviour) -> None:
    with OpenAIServer(bad, bad, chat()) as server:
        assert (await ask(server)).text == "Hello!"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("bad", "kind", "tries"),
    [
        (failure(429, "too many"), "rate_limited", 3),
        (failure(500, "boom"), "server_error", 3),
        (hang_up, "unreachable", 3),
        (half_closed, "unreachable", 3),
    ],
    ids=["429", "500", "hang_up", "half_closed"],
)
async def test_lasting_trouble_ends_after_a_bounded_number_of_tries(
    bad: Behaviour, kind: str, tries: int
) -> None:
    error, server = await fail(bad)
    assert (error.kind, error.retryable) == (kind, True)
    assert f"Tried {tries} times" in error.message
    assert len(server.requests) == tries


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "auth"),
        (failure(403), "auth"),
        (failure(404, "The model 'x' does not exist"), "not_found"),
        (failure(400, "bad temperature"), "refused"),
        (failure(429, "You exceeded your quota", code="insufficient_quota"), "quota"),
        (respond(302, headers={"Location": "http://169.254.169.254/"}), "bad_answer"),
        (respond(418, b"<html>short and stout"), "refused"),
        (respond(200, completion(None, refusal="I cannot help with that")), "refused"),
        (
            respond(200, {"choices": [{"finish_reason": "content_filter", "message": {"content": "x"}}]}),
            "refused",
        ),
        (respond(200, b"{}", headers={"Content-Encoding": "gzip"}), "bad_answer"),
    ],
)
async def test_what_will_not_get_better_is_not_retried(behaviour: Behaviour, kind: str) -> None:
    error, server = await fail(behaviour)
    assert (error.kind, error.retryable) == (kind, False)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b'{"choices": [',
        b"[" * 100_000,
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"text"',
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": [5]}}]}',
        b'{"error": {"message": "odd"}}',
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_a_wrong_answer_is_named_and_not_taken_for_text(body: bytes) -> None:
    error, server = await fail(respond(200, body))
    assert (error.kind, error.retryable) == ("bad_answer", True)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "usage",
    [
        None,
        5,
        {},
        {"prompt_tokens": "11"},
        {"prompt_tokens": -1},
        {"prompt_tokens": True},
        {"prompt_tokens_details": 5},
    ],
)
async def test_tokens_that_are_not_reported_are_none(usage: object) -> None:
    with OpenAIServer(respond(200, {**completion("Hi"), "usage": usage})) as server:
        response = await ask(server)
    assert (response.text, response.prompt_tokens, response.completion_tokens, response.cached_tokens) == (
        "Hi",
        None,
        None,
        None,
    )


async def test_parts_are_joined_and_what_no_database_stores_is_replaced() -> None:
    parts = [{"type": "text", "text": "a\u0000"}, {"type": "image"}, {"type": "text", "text": "b\ud800"}]
    with OpenAIServer(respond(200, completion(parts))) as server:
        text = (await ask(server)).text
    assert "\0" not in text
    assert text.startswith("a\ufffdb")
    assert text.encode()


async def test_a_huge_answer_is_cut_off_in_bounded_memory() -> None:
    tracemalloc.start()
    try:
        error, server = await fail(endless, max_answer_bytes=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (error.kind, error.retryable) == ("too_large", False)
    assert peak < 60_000_000
    assert len(server.requests) == 1


@pytest.mark.parametrize("behaviour", [slow(30), trickle(30)], ids=["slow", "trickle"])
async def test_the_time_limit_is_for_the_whole_call(behaviour: Behaviour) -> None:
    started = time.monotonic()
    error, _ = await fail(behaviour, timeout_seconds=0.4)
    assert (error.kind, error.retryable) == ("timeout", True)
    assert time.monotonic() - started < PROMPTLY


@pytest.mark.parametrize(
    "behaviour", [slow(30), trickle(30), failure(429, retry_after="20")], ids=["slow", "trickle", "waiting"]
)
async def test_cancelling_aborts_the_call_at_once(behaviour: Behaviour) -> None:
    with OpenAIServer(behaviour) as server:
        provider = OpenAIProvider(base_url=server.url, timeout_seconds=60)
        task = asyncio.create_task(provider.complete(REQUEST))
        while not server.requests:
            await asyncio.sleep(0.01)
        done, _ = await asyncio.wait({task}, timeout=0.1)
        assert not done
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < PROMPTLY
        if "respond" not in behaviour.__qualname__:  # one that waits to retry has no call open
            assert await asyncio.to_thread(server.left_early.wait, 2)
        await provider.aclose()
    assert len(server.requests) == 1


async def test_a_server_that_is_not_there() -> None:
    with OpenAIServer() as server:
        url = server.url
    provider = OpenAIProvider(base_url=url, retry=QUICK, timeout_seconds=5)
    with pytest.raises(ProviderError, match=r"No connection to 127\.0\.0\.1.*Tried 3 times") as caught:
        await provider.complete(REQUEST)
    assert (caught.value.kind, caught.value.retryable) == ("unreachable", True)
    await provider.aclose()


async def test_many_calls_at_once() -> None:
    with OpenAIServer(slow(0.2)) as server:
        provider = OpenAIProvider(base_url=server.url)
        started = time.monotonic()
        await asyncio.gather(*(provider.complete(REQUEST) for _ in range(30)))
        assert time.monotonic() - started < PROMPTLY  # one after the other they take six
        await provider.aclose()


def test_one_provider_serves_several_event_loops() -> None:
    with OpenAIServer() as server:
        provider = OpenAIProvider(base_url=server.url)

        async def once() -> str:
            try:
                return (await provider.complete(REQUEST)).text
            finally:
                await provider.aclose()

        assert [asyncio.run(once()) for _ in range(3)] == ["Hello!"] * 3


async def test_check_lists_models_and_says_what_is_wrong() -> None:
    for behaviour, said in [
        (respond(200, {"data": [{"id": "a"}, {"id": "b"}]}), "lists 2 models"),
        (failure(404), "lists no models"),
    ]:
        with OpenAIServer(behaviour) as server:
            provider = make_provider("openai", ProviderAccess("openai", server.url, KEY), timeout_seconds=5)
            assert provider.base_url == server.url  # by which prices are looked up
            assert said in await provider.check()
            await provider.aclose()
        assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/models")
    with OpenAIServer(failure(401, "who?")) as server:
        provider = make_provider("openai", ProviderAccess("openai", server.url))
        with pytest.raises(ProviderError, match="who"):
            await provider.check()
        await provider.aclose()


def test_settings_do_not_show_the_key() -> None:
    assert KEY not in repr(ProviderAccess("openai", key=KEY))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A certificate for models.test, with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "models.test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("models.test")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "models.pem"
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pem + made.public_bytes(serialization.Encoding.PEM))
    return str(path)


@pytest.mark.parametrize(("name", "works"), [("models.test", True), ("other.test", False)])
async def test_tls_checks_the_name_although_the_address_is_connected_to(
    certificate: str, name: str, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.workflows.engine.providers.test_addresses import answer_names

    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate)
    names: list[str | None] = []
    server_side.sni_callback = lambda connection, sni, context: names.append(sni)
    with OpenAIServer(ssl_context=server_side) as server:
        answer_names(monkeypatch, ["127.0.0.1"])
        trusting = ssl.create_default_context(cafile=certificate)
        provider = OpenAIProvider(
            base_url=f"https://{name}:{server.port}/v1",
            ssl_context=trusting,
            retry=RetryPolicy(1),
            timeout_seconds=5,
        )
        if works:
            assert (await provider.complete(REQUEST)).text == "Hello!"
        else:
            with pytest.raises(ProviderError, match="certificate verify failed"):
                await provider.complete(REQUEST)
        await provider.aclose()
    assert names == [name]
