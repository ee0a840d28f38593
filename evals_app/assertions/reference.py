"""Writes docs/assertions.md: `python -m evals_app.assertions.reference > docs/assertions.md`."""

from __future__ import annotations

import json
import sys
from typing import Any

from evals_app.assertions import limits
from evals_app.assertions.catalogue import assertion_types

_FAMILIES = {
    "text": "About the text",
    "structure": "About JSON",
    "similarity": "About closeness to a reference",
    "measures": "About cost and time",
}

_OPENING = """# Assertions

An assertion is one check of a block's output, written next to the block:

```yaml
blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: "Analyse {{ inputs.topic }} as JSON"
    assertions:
      - {type: is-json, value: {type: object, required: [summary]}}
      - {type: word-count, value: {min: 20, max: 200}, transform: "json_path:$.summary"}
      - {type: not-icontains, value: "as an ai", weight: 2, metric: tone}
      - {type: cost, threshold: 0.05}
```

Each gives a verdict (`passed`), a `score` from 0 to 1, a `reason` and, where there is one, the number behind it
(`measured`). The tables on this page are generated from the engine by
`python -m evals_app.assertions.reference > docs/assertions.md`.

## Rules for all types

- **`not-`** before any type negates the verdict and turns the score into 1 minus the score. It negates a *verdict*, never an
  *error*: a bad pattern, a failed transform or a missing measurement fails with a score of 0, with or without `not-`.
- **`transform: "json_path:<expression>"`** runs first, on the output parsed as JSON, and takes the first match: a string as
  it is, anything else as JSON text. JSONPath with filters, slices, `..`, `|`, `len`, quoted and non-ASCII names works.
  What computes instead of selecting (arithmetic, `parent`, `sub`, `split`, sorting, `=~`, a `$` inside) is refused: use an
  assertion of the right type. No JSON, no match: that one assertion is an error, and says so.
- **`weight`** is 1 by default. With 0 an assertion still counts for passing, but not for the score. A block's score is the
  weighted mean of its assertions' scores. Without a threshold a block passes when every assertion passes; with one, when its
  score reaches it.
- **`metric`** reports the score under a name as well. Several assertions with one metric give their weighted mean; a metric
  of assertions that all have weight 0 gives their plain mean.
- **Errors.** A check that cannot be made at all (a mistake in the configuration, a time limit, a cost that was not recorded) is
  marked as an error; it fails, scores 0 and counts with its weight. An error in one assertion never stops another.
- **Mistakes are refused when a workflow is saved**: unknown types and keys, a missing or empty value, a pattern, schema or path
  that does not compile, a number out of range. Nothing passes because it was misspelt.
- **Values.** `null` means: left out (for `equals` it means JSON's null). A `threshold` on a type that has none is
  ignored; an empty `metric` is none. A YAML bool or number where text is due means its JSON
  text (`true`, `1.5`); a number in quotes is a number where one is due. Dates must be quoted.
- An output that is not text is checked as its JSON text.
"""

_CLOSING = f"""## Limits

No output and no configuration hangs a run. What reaches a limit ends as an error with a reason.

| what | limit |
|---|---|
| one search of a pattern, also one inside a schema | {limits.PATTERN_SECONDS * 1000:g} ms |
| patterns of a block that has spent {limits.BLOCK_PATTERN_SECONDS:g} s on patterns | {limits.SHORT_PATTERN_SECONDS * 1000:g} ms each |
| all assertions of a block or a request; those not begun by then are errors | {limits.BLOCK_SECONDS:g} s |
| a schema check, a JSON path, a search for JSON in prose, a comparison by BLEU or ROUGE | {limits.CHECK_SECONDS:g} s each |
| objects and arrays that `contains-json` validates, outermost first | {limits.MAX_CANDIDATES:,} |
| levels of nesting in JSON | {limits.MAX_DEPTH:,} |
| digits of an integer in JSON | {sys.int_info.default_max_str_digits:,} |
| length of a pattern or a path | {limits.MAX_PATTERN_LENGTH:,} characters |
| length of a pattern with its repeats written out (`(?:ab){{3}}` is `ababab`) | {limits.MAX_REPEATED_LENGTH:,} characters |
| work for an edit distance, roughly the shorter length times twice the threshold | {limits.MAX_DISTANCE_WORK * 64:,} cells |

## Notes

- **Patterns** follow Python's `re`: what `re` does not compile is refused. The search itself is made by the `regex` module, which
  can be stopped; its Unicode tables are its own, so `\\w` differs on some combining marks and number signs (`²`), `\\d` on
  digits newer than Python's, and `\\s` leaves out the control characters U+001C to U+001F. With `(?i)` the dotless ı matches I but
  not i, and `\\B` is found in an empty text.
- **Schemas** are JSON Schema 2020-12 unless `$schema` names another draft. A `$ref` finds what is in the
  schema itself and the drafts' own schemas; nothing is fetched. Patterns may also use `\\p{{Letter}}`.
  `format` is not checked.
- **JSON** is strict: `NaN` and `Infinity` are not JSON. 1 equals 1.0; `true` does not equal 1.
- **`levenshtein`** reports the exact distance while the texts are short or within the threshold; otherwise only that it is more.
- **`rouge-n`** counts runs of letters and digits; ideographs and hiragana, which are written without spaces, count one by one.
"""


def render() -> str:
    """Return the whole page."""
    types = assertion_types()
    rows = [f"| [`{entry['type']}`](#{entry['type']}) | {entry['description']} |" for entry in types]
    parts = [_OPENING, "## The types", "\n".join(["| type | passes when |", "|---|---|", *rows])]
    for family, title in _FAMILIES.items():
        parts.append(f"## {title}")
        parts.extend(_section(entry) for entry in types if entry["family"] == family)
    return "\n\n".join(part.strip() for part in (*parts, _CLOSING)) + "\n"


def _section(entry: dict[str, Any]) -> str:
    own = [field for field in entry["fields"] if field["name"] not in ("weight", "metric", "transform")]
    rows = [
        f"| `{field['name']}` | {field['kind']} | {_default(field)} | {field['description'].replace('|', '&#124;')} |"
        for field in own
    ]
    table = "\n".join(["| key | kind | default | meaning |", "|---|---|---|---|", *rows])
    return f"### {entry['type']}\n\n{entry['description']}\n\n{table}\n\n```yaml\n{entry['example_yaml']}```"


def _default(field: dict[str, Any]) -> str:
    if field["required"]:
        return "required"
    return "none" if field["default"] is None else f"`{json.dumps(field['default'])}`"


if __name__ == "__main__":
    sys.stdout.write(render())
