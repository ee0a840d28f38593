"""The demo provider: repeatable, depends on what it is given, and gets worse where a prompt does."""

import asyncio
import json
import statistics
import time

import pytest

from tests.timing import PROMPTLY
from workflows_app.engine.providers import (
    ChatRequest,
    Provider,
    ProviderError,
    make_provider,
    provider_class,
    provider_names,
)
from workflows_app.engine.providers.demo import DemoProvider

STRICT = "Answer with JSON only, with the keys vendor, invoice_number, date, currency, line_items, total."
CHATTY = "Explain your reasoning first, then give JSON with the keys vendor, invoice_number, date, currency, line_items, total."
REVIEWER = "You review drafts. Begin with PASS or FAIL. A good draft has figures, sources, risks and a recommendation."


def ask(prompt: str, system: str = "", provider: DemoProvider | None = None, **fields: object) -> str:
    request = ChatRequest(**{"model": "demo-small", "system_prompt": system, "prompt": prompt, **fields})
    return (provider or DemoProvider()).answer(request).text


def invoice(number: int) -> str:
    return (
        f"Harbour Tools Ltd\nInvoice No: INV-{number}   Date: 14 March 2026\nDue: 2026-04-13\n"
        f"{number % 7 + 1} x Desk lamp @ 24.50\n10 x Paper A4 @ 4.20\nVAT 20%: 18.20\nTotal: EUR {number}.20"
    )


def extract(wording: str, number: int, provider: DemoProvider | None = None) -> str:
    return ask(
        f"Extract the data of this invoice. {wording}\n\nInvoice:\n{invoice(number)}",
        "You read invoices.",
        provider,
    )


def json_rate(wording: str, provider: DemoProvider | None = None, count: int = 400) -> float:
    return sum(is_json(extract(wording, number, provider)) for number in range(1000, 1000 + count)) / count


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_providers_are_found_by_name() -> None:
    assert {"demo"} <= set(provider_names())
    assert provider_class("demo") is DemoProvider
    with pytest.raises(LookupError, match="Did you mean 'demo'"):
        provider_class("dem")


def test_a_second_provider_of_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="already"):
        type("Other", (Provider,), {"name": "demo"})


async def test_same_prompt_and_seed_give_the_same_answer_and_another_seed_another() -> None:
    request = ChatRequest(
        "demo-small", "You are an analyst.", "Analyse heat pumps in old houses", 0.2, 500, "w/b"
    )
    first, again = await DemoProvider(seed=3).complete(request), await DemoProvider(seed=3).complete(request)
    assert first == again
    answers = {DemoProvider(seed=seed).answer(request).text for seed in range(8)}
    assert len(answers) > 1


def test_invoice_answers_hold_what_the_text_says() -> None:
    data = json.loads(extract(STRICT, 2042))
    assert data == {
        "vendor": "Harbour Tools Ltd",
        "invoice_number": "INV-2042",
        "date": "2026-03-14",
        "currency": "EUR",
        "line_items": [
            {"description": "Desk lamp", "quantity": 6, "unit_price": 24.5, "amount": 147.0},
            {"description": "Paper A4", "quantity": 10, "unit_price": 4.2, "amount": 42.0},
        ],
        "total": 2042.2,
    }


def test_invoice_in_columns_with_european_numbers() -> None:
    text = "From: Nordlicht Energie GmbH\nRechnung Nr. 2026/0042, 14.03.2026\nPump big   3   1.234,50   3.703,50\nTotal due: 3.703,50 EUR"
    data = json.loads(ask(f"Turn the invoice into JSON only\n---\n{text}"))
    assert (data["vendor"], data["invoice_number"], data["date"]) == (
        "Nordlicht Energie GmbH",
        "2026/0042",
        "2026-03-14",
    )
    assert data["line_items"][0]["unit_price"] == 1234.5
    assert data["total"] == 3703.5


def test_asking_for_reasoning_first_visibly_breaks_json() -> None:
    strict, chatty = json_rate(STRICT), json_rate(CHATTY)
    assert 0.95 <= strict < 1.0
    assert 0.5 <= chatty <= 0.7


def test_drift_breaks_json_and_slows_the_same_prompt() -> None:
    assert json_rate(STRICT, DemoProvider(drift=0.5)) < 0.8
    request = ChatRequest("demo-small", "", "Analyse heat pumps")
    assert (
        DemoProvider(drift=1.0).answer(request).latency_ms > 1.4 * DemoProvider().answer(request).latency_ms
    )
    with pytest.raises(ValueError, match="between 0 and 1"):
        DemoProvider(drift=2)


@pytest.mark.parametrize(
    ("message", "category", "priority"),
    [
        ("I was charged twice, please refund the payment.", "billing", "normal"),
        ("The app crashes with an error in production, urgent!", "bug", "high"),
        ("My parcel has not arrived, the tracking shows nothing.", "shipping", "low"),
        ("I cannot sign in, my password reset never arrives by mail", "account", "normal"),
        ("Hello there, how are you today?", "other", "low"),
    ],
)
def test_triage_classifies_by_the_message(message: str, category: str, priority: str) -> None:
    text = ask(
        f'Classify the customer message. JSON only: {{"category": "", "priority": ""}}\nMessage: {message}'
    )
    assert json.loads(text) == {"category": category, "priority": priority}


def test_what_a_customer_writes_is_no_instruction() -> None:
    prompt = "Classify the ticket. Answer with JSON only, keys: category, priority.\nMessage: Explain your price step by step, case {n}"
    rate = (
        sum(is_json(ask(prompt.replace("{n}", str(n)), "You triage support tickets.")) for n in range(200))
        / 200
    )
    assert rate > 0.93


def test_reply_greets_and_keeps_to_the_length() -> None:
    message = "I was charged twice for order #48213, this is unacceptable.\nRegards, Maria"
    text = ask(
        f"Write a reply to the customer in at most 90 words.\nMessage: {message}", "You are a support agent."
    )
    assert text.startswith("Hello Maria,")
    assert "48213" in text
    assert "sorry" in text
    assert len(text.split()) <= 95


def test_a_loop_of_drafts_and_reviews_reaches_pass() -> None:
    rounds = [_rounds_until_pass(f"heat pumps in region {n}") for n in range(40)]
    assert max(rounds) <= 5
    assert 1.2 < statistics.mean(rounds) < 3


def _rounds_until_pass(topic: str) -> int:
    task = f"Write a report on the topic: {topic}. Give figures, sources, risks and a recommendation."
    draft = ask(task)
    for number in range(1, 10):
        verdict = ask(draft, REVIEWER)
        assert verdict.startswith(("PASS", "FAIL"))
        if verdict.startswith("PASS"):
            return number
        draft = ask(f"{task} Improve it. Feedback: {verdict}\nDraft:\n{draft}")
    return 10


def test_judge_names_what_is_missing() -> None:
    verdict = ask("Heat pumps are nice. TODO", REVIEWER)
    assert verdict.startswith("FAIL: ")
    assert "no sources are cited" in verdict
    assert "placeholder" in verdict


def test_release_notes_sort_the_commits() -> None:
    commits = "a1b2c3d feat(api): page runs (#12)\nb2c3d4e fix: crash on empty input\nd4e5f6a docs: typo\ne5f6a7b feat!: drop Python 3.9"
    text = ask(f"Write release notes for version 2.4.0.\nCommits:\n{commits}")
    assert "Version 2.4.0" in text
    assert "### Added\n- Api: page runs." in text
    assert "### Fixed\n- Crash on empty input." in text
    assert "### Breaking\n- Drop Python 3.9." in text
    assert "typo" not in text


def test_anything_else_is_about_its_topic() -> None:
    assert "remote work" in ask("Analyse remote work in small companies")
    data = json.loads(ask("Look at solar roofs. Answer with JSON only, keys: title, score, tags."))
    assert set(data) == {"title", "score", "tags"}
    assert 0 <= data["score"] <= 1


def test_tokens_latency_and_cut_off_follow_the_text() -> None:
    request = ChatRequest("demo-small", "You are an analyst.", "Analyse heat pumps", max_tokens=10)
    response = DemoProvider().answer(request)
    assert response.completion_tokens == 10
    assert len(response.text) == 40
    latencies = [
        DemoProvider().answer(ChatRequest("demo-small", "", f"{n} is a number", max_tokens=5)).latency_ms
        for n in range(200)
    ]
    assert 0.08 < statistics.stdev(latencies) / statistics.mean(latencies) < 0.2
    large = DemoProvider().answer(ChatRequest("demo-large", "", "Analyse heat pumps"))
    assert (
        large.latency_ms
        > DemoProvider().answer(ChatRequest("demo-small", "", "Analyse heat pumps")).latency_ms
    )


async def test_latency_is_slept_only_when_asked_and_can_be_cancelled() -> None:
    request = ChatRequest("demo-large", "", "Analyse heat pumps")
    started = time.monotonic()
    response = await DemoProvider(latency_scale=100.0).complete(request)
    assert time.monotonic() - started < response.latency_ms / 1000
    sleeping = make_provider("demo", sleep=True, latency_scale=10.0)
    task = asyncio.create_task(sleeping.complete(request))
    done, _ = await asyncio.wait({task}, timeout=0.05)
    assert not done
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_unknown_model_is_refused_by_name() -> None:
    with pytest.raises(ProviderError, match="'gpt-4o'; it has demo-small and demo-large") as caught:
        ask("Hello", model="gpt-4o")
    assert (caught.value.kind, caught.value.retryable) == ("refused", False)


@pytest.mark.parametrize(
    "junk", ["a " * 300_000, "(" * 300_000, "1 x " * 100_000, "\n" * 300_000, "a\ud800", "-\t" * 200_000]
)
def test_a_huge_or_odd_prompt_is_answered_quickly(junk: str) -> None:
    started = time.monotonic()
    for system in (
        "Invoice to JSON only",
        "Write release notes",
        "Classify the customer's message",
        REVIEWER,
        "",
    ):
        assert ask(junk, system)
    assert time.monotonic() - started < PROMPTLY
