"""Outputs as people read them: nothing a model writes runs, loads or breaks the page."""

import json

import pytest

from evals_app.pages.json_html import draw_json, locate
from evals_app.pages.outputs import MOST_CHARACTERS, indented, read_output, read_values

DOCUMENT = {"a": {"b": [1, 2, {"c": "x"}]}, "d.e": True, "n": None, "empty": {}}

PATHS = [
    ("$.a.b[0]", ("a", "b", 0)),
    ("$.a.b[-1]", ("a", "b", 2)),
    ("$.a.b[2].c", ("a", "b", 2, "c")),
    ("$['d.e']", ("d.e",)),
    ("$..c", ("a", "b", 2, "c")),
    ("$.a.b[?(@.c == 'x')].c", ("a", "b", 2, "c")),
    ("a.b[1]", ("a", "b", 1)),
    ("$", ()),
    ("$.missing", None),
    ("$.a.b[7]", None),
    ("$[", None),
    ("$.a =~ 'x'", None),
]


@pytest.mark.parametrize(("path", "place"), PATHS)
def test_a_path_is_located_in_the_document(path, place):
    assert locate(path, DOCUMENT) == place


def test_json_is_laid_out_with_the_extracted_value_marked():
    output = read_output(json.dumps(DOCUMENT), ["$.a.b[1]"])
    assert output.kind == "json"
    assert '<span class="k">"a"</span>' in output.rendered
    assert '<mark id="looked-at"><span class="n">2</span></mark>' in output.rendered
    assert output.rendered.count("<mark") == 1


def test_json_with_markup_in_it_stays_text():
    output = read_output(json.dumps({"<script>": "</pre><img src=x onerror=alert(1)>"}))
    assert "<script>" not in output.rendered and "<img" not in output.rendered


HOSTILE = [
    "# Title\n<script>alert(1)</script>",
    "**bold** <img src=x onerror=alert(1)>",
    "- [click](javascript:alert(1))",
    "- ![pixel](https://tracker.example/pixel.png)",
    "- [x](data:text/html;base64,PHNjcmlwdD4=)",
    '- [x](https://a.example/"onmouseover="alert(1))',
    "```\n</code></pre><script>x</script>\n```",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_runs_and_loads_nothing(text):
    output = read_output(text)
    assert output.kind == "markdown"
    for forbidden in ("<script", "<img", 'href="javascript', 'href="data', 'onmouseover="'):
        assert forbidden not in output.rendered.lower()


def test_markdown_is_rendered_below_the_pages_own_headings():
    rendered = read_output("# One\n\n###### Six\n\n- a\n\n[b](https://b.example)").rendered
    assert "<h4>One</h4>" in rendered and "<h6>Six</h6>" in rendered and "<li>a</li>" in rendered
    assert 'rel="noopener noreferrer nofollow"' in rendered


@pytest.mark.parametrize("text", ["plain words", "a < b & c", "{not json", "2 * 3 * 4", "NaN"])
def test_other_texts_are_shown_as_they_are(text):
    output = read_output(text)
    assert (output.kind, output.text, output.rendered) == ("text", text, None)


def test_nothing_is_nothing():
    assert read_output("").kind == "empty"


def test_a_long_text_is_cut_for_the_page():
    output = read_output("x" * 1_000_000)
    assert output.is_cut and len(output.text) == MOST_CHARACTERS and output.length == 1_000_000


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, '{"a":' * 400 + "1" + "}" * 400])
def test_deep_nesting_is_shown_somehow(text):
    assert read_output(text).kind in ("text", "json")


def test_json_is_compared_line_by_line():
    assert indented('{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert indented("words") == "words"


def test_short_json_that_is_laid_out_long_folds():
    assert read_output(json.dumps(list(range(60)))).is_long
    assert not read_output(json.dumps(list(range(6)))).is_long


def test_large_json_is_shortened_and_keeps_what_an_assertion_looked_at():
    text = json.dumps({"rows": [{"id": n, "text": "<b>" * 400} for n in range(500)], "end": "'" * 5000})
    output = read_output(text, ["$.rows[321].id"])
    assert output.kind == "json" and output.is_shortened and len(output.rendered) < len(text) / 4
    assert (
        '<mark id="looked-at"><span class="n">321</span></mark>' in output.rendered
        and "<b>" not in output.rendered
    )
    assert "… 271 more" in output.rendered and "5,000 characters" in output.rendered
    assert not read_output(json.dumps({"a": [1, 2]})).is_shortened


def test_a_shortened_drawing_keeps_its_shape_and_the_marks():
    document = {
        "日本語 & <b>": [[{"n": n * 1.5} for n in range(60)] for _ in range(60)],
        "k" * 900: "v",
        "deep": [[[[[[1]]]]]],
    }
    steps = ("deep", 0, 0, 0, 0, 0, 0)
    html, has_gaps = draw_json(document, {steps}, is_shortened=True)
    assert has_gaps and html.count('class="n"') < 2_000
    assert "… 10 more" in html and "<mark " in html
    assert not draw_json(document, {steps})[1]


def test_long_markdown_ends_with_a_paragraph():
    text = "# Head\n\n" + "A **paragraph** of some length.\n\n" * 2_000
    output = read_output(text)
    assert output.kind == "markdown" and output.is_shortened and output.is_cut
    assert output.rendered.rstrip().endswith("of some length.</p>")


def test_values_are_read_by_name():
    values = {"letter": "Dear Ada,\nhello", "facts": {"n": 1}, "long": "x" * 50_000, "nothing": None}
    found = dict(read_values(values))
    assert found["letter"].text == "Dear Ada,\nhello" and found["facts"].kind == "json"
    assert found["long"].is_cut and found["nothing"].kind == "empty"
    assert read_values({}) == []
