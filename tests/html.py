"""A page as a test compares it: without the white space that only its template's layout brings."""

import re

from django.http import HttpResponse

_TAG = re.compile(r"<[^<>]*>")
_EXACT = re.compile(r"(<(pre|textarea|ins|del)\b.*?</\2>)", re.S)  # elements whose white space is shown


def squeezed(response: HttpResponse) -> str:
    """The response's text; in HTML, each run of white space is one space, and none is left just inside a tag."""
    text = response.content.decode()
    if not response.headers.get("Content-Type", "").startswith("text/html"):
        return text
    text = _TAG.sub(lambda tag: re.sub(r"\s+", " ", tag[0]).replace(" >", ">"), text)
    return "".join(
        part if index % 3 == 1 else _squeeze(part)
        for index, part in enumerate(_EXACT.split(text))
        if index % 3 != 2
    )


def _squeeze(html: str) -> str:
    html = re.sub(r"\s+", " ", html)
    return re.sub(r"(<[a-z][^<>]*>) ", r"\1", html).replace(" </", "</")
