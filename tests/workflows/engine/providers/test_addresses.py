"""Provider calls cannot be pointed at link-local or metadata addresses, however these are written."""

import asyncio
import ipaddress
import socket

import pytest

from tests.workflows.engine.providers.openai_server import OpenAIServer
from workflows_app.engine.providers import ChatRequest, ProviderError
from workflows_app.engine.providers.addresses import (
    ServerAddress,
    checked_addresses,
    parse_base_url,
    why_forbidden,
)
from workflows_app.engine.providers.openai import OpenAIProvider

FORBIDDEN = [
    "169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "0.0.0.0", "0.1.2.3", "::",
    "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254",
    "fd20:ce::254",
]  # fmt: skip
ALLOWED = [
    "127.0.0.1",
    "::1",
    "10.1.2.3",
    "192.168.0.10",
    "172.16.5.5",
    "8.8.8.8",
    "fd12:3456::1",
    "2606:4700::1111",
    "::ffff:127.0.0.1",
    "100.64.0.1",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_forbidden_addresses_are_known(address: str) -> None:
    assert why_forbidden(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ALLOWED)
def test_local_private_and_public_addresses_are_allowed(address: str) -> None:
    assert why_forbidden(ipaddress.ip_address(address)) is None


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/v1", "http://2852039166/v1", "http://0xa9fea9fe/v1", "http://0251.0376.0251.0376/v1", "http://169.254.43518/v1",
     "http://[::ffff:a9fe:a9fe]/v1", "http://[fe80::1%25lo]/v1", "http://0/v1"],
)  # fmt: skip
async def test_no_spelling_of_a_forbidden_address_is_called(url: str) -> None:
    provider = OpenAIProvider(base_url=url, timeout_seconds=5)
    with pytest.raises(ProviderError) as caught:
        await provider.complete(ChatRequest("m", "", "hi"))
    assert caught.value.kind in {"blocked_address", "unreachable"}
    if caught.value.kind == "unreachable":  # a spelling this system's resolver does not know
        assert "could not be resolved" in caught.value.message


async def test_an_administrator_may_allow_it() -> None:
    target = parse_base_url("http://169.254.169.254/v1")
    with pytest.raises(ProviderError, match="is a link-local address") as caught:
        await checked_addresses(target)
    assert not caught.value.retryable
    assert await checked_addresses(target, allow_private=True) == ["169.254.169.254"]


def answer_names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Make this loop's resolver give these answers in turn, the last for ever; return the names it is asked for."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: object) -> list:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


async def test_one_forbidden_address_among_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, ["127.0.0.1", "169.254.169.254"])
    with pytest.raises(ProviderError, match=r"169\.254\.169\.254 is a link-local"):
        await checked_addresses(ServerAddress("http", "models.test", 80, ""))


async def test_the_address_checked_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        asked = answer_names(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
        provider = OpenAIProvider(base_url=f"http://models.test:{server.port}/v1", timeout_seconds=5)
        response = await provider.complete(ChatRequest("m", "", "hi"))
        await provider.aclose()
    assert response.text == "Hello!"
    assert asked == ["models.test"]
    assert server.requests[0].headers["host"] == f"models.test:{server.port}"


async def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        answer_names(monkeypatch, ["127.0.0.2", "127.0.0.1"])
        provider = OpenAIProvider(base_url=f"http://models.test:{server.port}/v1", timeout_seconds=5)
        assert (await provider.complete(ChatRequest("m", "", "hi"))).text == "Hello!"
        await provider.aclose()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x/v1", "no http or https URL"),
        ("x.example/v1", "no http or https URL"),
        ("http:///v1", "no http or https URL"),
        ("http://[::1/v1", "no URL"),
        ("http://x:99999/v1", "no URL"),
        ("http://user:pass@x/v1", "user name or password"),
        ("http://x/v1?key=1", "without query"),
        ("http://x/v1#a", "without query"),
        ("http://x/v 1\r\nHost: y", "no http or https URL"),
    ],
)
def test_a_bad_base_url_says_what_is_wrong(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        parse_base_url(url)
    assert "pass" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    ("url", "header", "at"),
    [
        ("https://api.openai.com/v1/", "api.openai.com", "https://1.2.3.4:443/v1/models"),
        ("http://localhost:8000", "localhost:8000", "http://1.2.3.4:8000/models"),
        ("http://[::1]:11434/v1", "[::1]:11434", "http://1.2.3.4:11434/v1/models"),
        ("https://bücher.example/v1", "xn--bcher-kva.example", "https://1.2.3.4:443/v1/models"),
    ],
)
def test_host_header_and_url_follow_the_base_url(url: str, header: str, at: str) -> None:
    target = parse_base_url(url)
    assert target.host_header == header
    assert target.url_at("1.2.3.4", "/models") == at
