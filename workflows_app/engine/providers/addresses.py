"""Where provider calls may go: a URL is resolved, every address checked, and the checked one is connected to.

Loopback and private networks are allowed, since people run models there. Link-local and cloud metadata addresses,
from which a server's own credentials can be read, are not, unless an administrator allows it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from workflows_app.engine.providers import ProviderError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN = [
    (ipaddress.ip_network(network), what)
    for network, what in [
        ("169.254.0.0/16", "a link-local address"),  # 169.254.169.254 is most clouds' metadata service
        ("fe80::/10", "a link-local address"),
        ("100.100.100.200/32", "a cloud metadata address"),  # Alibaba Cloud
        ("168.63.129.16/32", "a cloud metadata address"),  # Azure
        ("192.0.0.192/32", "a cloud metadata address"),  # Oracle Cloud
        ("fd00:ec2::/32", "a cloud metadata address"),  # AWS
        ("fd20:ce::254/128", "a cloud metadata address"),  # Google Cloud
        ("0.0.0.0/8", "no address of a host"),
        ("::/128", "no address of a host"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("240.0.0.0/4", "a reserved or broadcast address"),
    ]
]
_NAT64 = [ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48")]
_COMPATIBLE = ipaddress.IPv6Network("::/96")


@dataclass(frozen=True)
class ServerAddress:
    """A server's address as it was written: what a request's Host, TLS name and path are made from."""

    scheme: str
    host: str  # as in the URL, without brackets
    port: int
    path: str  # without a slash at the end

    @property
    def host_header(self) -> str:
        """The Host header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"

    def url_at(self, address: str, path: str) -> str:
        """The URL of a path on this server, with the name replaced by an address."""
        host = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{host}:{self.port}{self.path}{path}"


def parse_base_url(text: str) -> ServerAddress:
    """The parts of a base URL such as https://api.openai.com/v1; `ValueError` says what is wrong with it."""
    try:
        parts = urlsplit(text.strip())
        port = parts.port
        name = parts.hostname or ""
        host = name.encode("ascii" if name.isascii() else "idna").decode()
    except (ValueError, UnicodeError):
        raise ValueError(f"{text!r} is no URL; give one like https://api.openai.com/v1.") from None
    is_broken = any(c.isspace() or ord(c) < 32 for c in text.strip())
    if parts.scheme not in ("http", "https") or not host or is_broken:
        raise ValueError(f"{text!r} is no http or https URL; give one like https://api.openai.com/v1.")
    if parts.username is not None or parts.password is not None:
        raise ValueError("The base URL holds a user name or password; give the key in its own field.")
    if parts.query or parts.fragment:
        raise ValueError(
            f"The base URL ends in {parts.query or parts.fragment!r}; give it without query or fragment."
        )
    return ServerAddress(parts.scheme, host, port or _default_port(parts.scheme), parts.path.rstrip("/"))


def why_forbidden(address: IPAddress) -> str | None:
    """What kind of forbidden address this is, if it is one; an IPv4 address inside an IPv6 one counts."""
    candidates = [address, *_embedded(address)]
    for candidate in candidates:
        for network, what in _FORBIDDEN:
            if candidate.version == network.version and candidate in network:
                return what
    return None


async def checked_addresses(target: ServerAddress, *, allow_private: bool = False) -> list[str]:
    """The addresses of the target, each one allowed; connect to these, never to the name."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            target.host, target.port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError):
        raise ProviderError(
            f"The name {target.host!r} could not be resolved.", kind="unreachable", retryable=True
        ) from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not allow_private:
        for address in addresses:
            what = why_forbidden(ipaddress.ip_address(address.partition("%")[0]))
            if what:
                raise ProviderError(
                    f"Calls to {target.host} are not allowed: {address} is {what}. "
                    "An administrator can allow it by a setting.",
                    kind="blocked_address",
                )
    return addresses


def _embedded(address: IPAddress) -> list[IPAddress]:
    """The IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[IPAddress | None] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 0xFFFF):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
