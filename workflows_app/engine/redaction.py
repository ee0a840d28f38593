"""Secrets out of texts: known key patterns, and every secret that is stored.

Each pattern begins with a literal and either has a bounded length or cannot begin inside its own run, so that time
stays linear in the text. A pattern is tried only where its literal occurs at all.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

MARK = "[redacted]"
_SHORTEST_SECRET = 8  # shorter ones ("test", "none") occur in ordinary text
_PLACEHOLDERS = frozenset(
    {"lm-studio", "not-needed", "no-key-needed", "anything", "undefined", "placeholder", "dummy-key"}
)

# A key begins where a word does, or after an escaped newline or tab, as in JSON text.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_WITH_DIGIT = r"(?=[A-Za-z_+/=.~-]{0,200}\d)"
_PARAMETERS = (
    r"password|passwd|pwd|token|access_token|auth_token|api_key|apikey|api-key|secret|client_secret|signature"
)
_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = tuple(
    (needles, re.compile(pattern), replacement)
    for needles, pattern, replacement in [
        (("sk-",), _START + r"sk-" + _WITH_DIGIT + r"[A-Za-z0-9_-]{16,400}", MARK),
        (("earer ", "EARER "), r"\b(Bearer|bearer|BEARER)([ \t]{1,4})" + _WITH_DIGIT + r"[A-Za-z0-9._~+/=-]{16,4000}", rf"\1\2{MARK}"),
        (("Basic ", "Token "), r"([Aa]uthorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:Basic|Token)[ ]{1,4})[A-Za-z0-9+/=_.-]{8,2000}", rf"\1{MARK}"),
        (("rs_",), _START + r"rs_[A-Za-z0-9_-]{40,60}(?![A-Za-z0-9_-])", MARK),
        (("AKIA", "ASIA"), _START + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", MARK),
        (("ws_secret_access_key", "WS_SECRET_ACCESS_KEY", "ecretAccessKey"),
         r"((?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|[sS]ecretAccessKey)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)[A-Za-z0-9/+]{40}", rf"\1{MARK}"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _START + r"gh[pousr]_[A-Za-z0-9]{30,255}", MARK),
        (("github_pat_",), _START + r"github_pat_[A-Za-z0-9_]{22,255}", MARK),
        (("glpat-",), _START + r"glpat-[A-Za-z0-9_-]{20,255}", MARK),
        (("xox", "xapp-"), _START + r"(?:xox[abeoprs]|xapp)-" + _WITH_DIGIT + r"[A-Za-z0-9-]{10,255}", MARK),
        (("hooks.slack.com/services/",), r"(hooks\.slack\.com/services/)[A-Za-z0-9/]{20,200}", rf"\1{MARK}"),
        (("AIza",), _START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", MARK),
        (("hf_", "gsk_", "npm_"), _START + r"(?:hf|gsk|npm)_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{30,255}", MARK),
        (("k_live_", "k_test_"), _START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}", MARK),
        (("pypi-",), _START + r"pypi-AgE[A-Za-z0-9_-]{50,400}", MARK),
        (("eyJ",), _START + r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]*+", MARK),
        (("://",), r"(://[^\s:/@?#\"'<>\\]{0,200}:)[^\s@/\"'<>\\]{1,200}(?=@)", rf"\1{MARK}"),
        (("=",), r"([?&](?:" + _PARAMETERS + r")=)[^&\s\"'#<>\\]{1,2000}", rf"\1{MARK}"),
    ]
)  # fmt: skip
_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BEGIN = re.compile(r"-----BEGIN " + _LABEL)
_PEM_END = re.compile(r"-----END " + _LABEL)
_PEM_BODY = re.compile(r"(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{20,}+)*+")  # of a key that was cut off
_PEM_LONGEST = 20_000


class Redactor:
    """Replaces secrets by `[redacted]`; made once for the secrets that are stored, then used for every text."""

    def __init__(self, known_secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in known_secrets:
            plain = secret.strip()
            if len(plain) >= _SHORTEST_SECRET and plain.lower() not in _PLACEHOLDERS and plain not in MARK:
                forms |= {
                    plain,
                    json.dumps(plain)[1:-1],
                    json.dumps(plain, ensure_ascii=False)[1:-1],
                    quote(plain, safe=""),
                }
        self._literals = sorted(
            forms, key=lambda form: (-len(form), form)
        )  # a secret inside another goes second

    def redact(self, text: str) -> str:
        """The text without secrets."""
        for literal in self._literals:
            if literal in text:
                text = text.replace(literal, MARK)
        if "PRIVATE KEY" in text:
            text = _without_private_keys(text)
        for needles, pattern, replacement in _RULES:
            for needle in needles:  # no any(): this is asked about every text, and nearly always in vain
                if needle in text:
                    text = pattern.sub(replacement, text)
                    break
        return text

    def redact_json(self, value: Any) -> Any:
        """A copy of a JSON value in which every text, keys included, is without secrets; any depth."""
        root: list[Any] = [value]
        pending: list[tuple[Any, Any]] = [(root, 0)]
        while pending:
            holder, place = pending.pop()
            item = holder[place]
            if isinstance(item, str):
                holder[place] = self.redact(item)
            elif isinstance(item, dict):
                copy = {
                    self.redact(key) if isinstance(key, str) else key: inner for key, inner in item.items()
                }
                holder[place] = copy
                pending.extend((copy, key) for key in copy)
            elif isinstance(item, list | tuple):
                holder[place] = listed = list(item)
                pending.extend((listed, index) for index in range(len(listed)))
        return root[0]


def _without_private_keys(text: str) -> str:
    """Each PEM private key replaced, up to its end line; of one that was cut off, what looks like its body."""
    ends = [match.end() for match in _PEM_END.finditer(text)]
    parts: list[str] = []
    done = 0
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < done:
            continue
        parts += [text[done : begin.start()], MARK]
        following = bisect_left(ends, begin.end())
        if following < len(ends) and ends[following] - begin.end() <= _PEM_LONGEST:
            done = ends[following]
        else:
            body = _PEM_BODY.match(text, begin.end())
            done = body.end() if body else begin.end()
    return "".join([*parts, text[done:]])


# A log line may be written anywhere, also where no table can be read: it takes the last redactor that was made.
_in_logs = Redactor()


def use_in_logs(redactor: Redactor) -> None:
    """From now on log lines are without these secrets, too."""
    global _in_logs
    _in_logs = redactor


def redact_log_line(line: str) -> str:
    """The line without secrets."""
    return _in_logs.redact(line)
