"""Answers that are a text and nothing else."""

from django.http import HttpResponse


def plain(text: str) -> HttpResponse:
    """A text as it is."""
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
