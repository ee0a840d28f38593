"""What a page weighs."""

import re
from html import unescape
from pathlib import Path

from django.contrib.staticfiles import finders
from django.test import Client


def weight(client: Client, path: str) -> int:
    """Bytes of a page, of every script, style and image it names and every part it loads by itself, uncompressed."""
    page = _text(client, path)
    loaded = re.findall(r'hx-get="([^"]+)" hx-trigger="load"', page)
    parts = [page, *(_text(client, unescape(part)) for part in loaded)]
    named = {name for part in parts for name in re.findall(r'(?:src|href)="/static/([^"#?]+)', part)}
    files = sum(Path(finders.find(name)).stat().st_size for name in named)
    made = set(re.findall(r'<script src="(/(?!static/)[^"]+)"', page))  # scripts that a view writes
    return files + sum(len(part.encode()) for part in (*parts, *(_text(client, one) for one in made)))


def _text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()
