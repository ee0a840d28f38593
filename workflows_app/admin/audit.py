"""The audit log, as rows that nobody edits."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from workflows_app.admin.facts import FactAdmin, column, pretty
from workflows_app.models import AuditEntry

DONE = {
    "acknowledge": "acknowledged", "add": "added", "cancel": "cancelled", "change": "changed", "delete": "deleted",
    "disable": "disabled", "enable": "enabled", "key": "set the key of", "make": "made", "pin": "pinned",
    "rebuild": "rebuilt", "resolve": "resolved", "revoke": "revoked", "save": "saved", "start": "started",
    "unpin": "unpinned",
}  # fmt: skip
NOUNS = {
    "apitoken": "API token",
    "token": "API token",
    "eval": "eval suite",
    "priceoverride": "price override",
}


def in_words(action: str) -> str:
    """What was done, in words: `saved workflow` for `workflow.save`."""
    noun, _, verb = action.partition(".")
    return f"{DONE[verb]} {NOUNS.get(noun, noun)}" if verb in DONE else action


@admin.register(AuditEntry)
class AuditEntryAdmin(FactAdmin):
    """Who did what, newest first."""

    list_display = ("time", "user", "what", "target", "in_short")
    list_select_related = ("user",)
    search_fields = ("target",)
    search_help_text = "A user, what was done (saved, or workflow.save), or part of what it was done to."
    fields = ("time", "user", "what", "target", "shown_detail")

    time = column("at", "time")
    shown_detail = pretty("detail")

    @admin.display(description="action")
    def what(self, row: AuditEntry) -> SafeString:
        words = in_words(row.action)
        return format_html('<span title="{}">{}{}</span>', row.action, words[:1].upper(), words[1:])

    @admin.display(description="detail")
    def in_short(self, row: AuditEntry) -> str:
        facts = (f"{name}: {value}" for name, value in row.detail.items() if value not in ("", None, []))
        return Truncator(", ".join(facts)).chars(120)

    def named(self, word: str) -> Q:
        found = Q(target__icontains=word) | Q(action__istartswith=word) | Q(user__username__iexact=word)
        for verb, done in DONE.items():
            if done == word.lower():
                found |= Q(action__endswith=f".{verb}")
        return found
