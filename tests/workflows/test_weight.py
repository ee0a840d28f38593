"""Texts by what they weigh on a page."""

import pytest
from django.utils.html import escape

from workflows_app.weight import beginning, html_bytes


@pytest.mark.parametrize("text", ["plain", "<b>&'\"", "日本語", "", "🙂" * 50, "a'" * 500])
@pytest.mark.parametrize("most", [0, 1, 5, 20, 600, 5000])
def test_a_beginning_is_as_long_as_fits(text, most):
    found = beginning(text, most)
    assert text.startswith(found) and html_bytes(found) <= most
    if found != text:
        assert html_bytes(text[: len(found) + 1]) > most


def test_a_text_weighs_what_a_template_writes():
    assert html_bytes("it's <日>") == len(escape("it's <日>").encode()) == 21
