"""What a text weighs on a page, so that no text makes a page heavy."""

from django.utils.html import escape


def html_bytes(text: str) -> int:
    """The bytes of a text as a page writes it."""
    return len(escape(text).encode())


def beginning(text: str, most_bytes: int) -> str:
    """As much of a text as a page can write with so many bytes."""
    if len(text) <= most_bytes and html_bytes(text) <= most_bytes:
        return text
    low, high = 0, min(len(text), most_bytes)
    while low < high:
        middle = (low + high + 1) // 2
        if html_bytes(text[:middle]) <= most_bytes:
            low = middle
        else:
            high = middle - 1
    return text[:low]
