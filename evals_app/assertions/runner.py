"""Reading, compiling, running and validating a block's assertions."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from time import perf_counter
from typing import Any

from evals_app.assertions.base import Assertion, BadOption, Option, PassingRange, Verdict, registry
from evals_app.assertions.context import AssertionContext, CheckedOutput
from evals_app.assertions.limits import BLOCK_SECONDS, CannotCheck, PatternBudget
from evals_app.assertions.matching.json_paths import JsonPath, Transform
from evals_app.assertions.matching.patterns import quote
from evals_app.assertions.options import MetricName, Number, describe
from evals_app.assertions.results import AssertionsResult, GradingResult

# Outputs longer than this are checked in a thread when an event loop waits.
_LONG_OUTPUT = 50_000
_NEGATION = "not-"

_COMMON = [
    Option(
        "weight",
        Number(minimum=0),
        "How much it counts in the score; 0 counts for passing only.",
        default=1.0,
    ),
    Option("metric", MetricName(), "A name under which the score is reported too."),
    Option("transform", Transform(), "What to take out of the output first: `json_path:<expression>`."),
]


def options_for(cls: type[Assertion]) -> list[Option]:
    """List the options of a type, its own first and then those that all take."""
    own = [
        Option(
            entry.name,
            required=entry.default is MISSING,
            default=None if entry.default is MISSING else entry.default,
            **entry.metadata,
        )
        for entry in fields(cls)
    ]
    return [*own, *_COMMON]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a list of assertions: where, and what would be right."""

    path: str
    message: str


class _NamedType:
    """An assertion type by the name a config gives it, which may begin with `not-`."""

    def __init__(self, name: str) -> None:
        self.cls = registry[name.removeprefix(_NEGATION)]
        self.is_negated = name.startswith(_NEGATION)
        options = options_for(self.cls)
        self.parsers = {option.name: option.kind.parse for option in options}
        self.required = [option.name for option in options if option.required]
        self.nullable = frozenset(option.name for option in options if option.takes_null)

    def read(self, config: dict[Any, Any]) -> tuple[dict[str, Any], list[Problem]]:
        """Return the options in a config, and what is wrong with them."""
        values: dict[str, Any] = {}
        problems: list[Problem] = []
        for key, raw in config.items():
            if key == "type":
                continue
            parse = self.parsers.get(key)
            if parse is None:
                # Null is nothing, also where none is taken; and any type may have a threshold, if only some use it.
                if key not in _ALL_KEYS or (raw is not None and key != "threshold"):
                    problems.append(Problem(f".{key}", self._unknown_key(key)))
            elif raw is not None or key in self.nullable:
                try:
                    values[key] = parse(raw)
                except BadOption as error:
                    message = f"{error.message}." if error.path else f"{key} {error.message}."
                    problems.append(Problem(f".{key}{error.path}", message))
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - a panic of a library, too, is shown to the user
                    problems.append(Problem(f".{key}", f"{key} could not be read: {_describe(error)}."))
        for key in self.required:
            if key not in values and not any(one.path.startswith(f".{key}") for one in problems):
                problems.append(Problem(f".{key}", f"{key} is missing; {self.cls.type} needs one."))
        return values, problems

    def _unknown_key(self, key: object) -> str:
        known = ["type", *self.parsers]
        if key in _ALL_KEYS:
            return f"{self.cls.type} takes no {key}; it takes {', '.join(known)}."
        hint = _closest(str(key), known)
        tail = f"Did you mean {hint!r}?" if hint else f"Known keys are {', '.join(known)}."
        return f"unknown key {quote(str(key))}. {tail}"


_ALL_KEYS = frozenset({"value", "threshold", "weight", "metric", "transform"})
named_type = lru_cache(maxsize=256)(_NamedType)


def _read(config: Any) -> tuple[_NamedType | None, dict[str, Any], list[Problem]]:
    """Read one entry of the list, whatever it is."""
    if not isinstance(config, dict):
        return None, {}, [Problem("", f"an assertion is a map with a type, not {describe(config)}.")]
    name = config.get("type")
    if not isinstance(name, str) or not name:
        wrong = "type is missing" if name is None else f"type must be text, not {describe(name)}"
        return None, {}, [Problem(".type", f"{wrong}; give one of the assertion types, such as 'contains'.")]
    try:
        named = named_type(name)
    except KeyError:
        return None, {}, [Problem(".type", _unknown_type(name))]
    return named, *named.read(config)


def _unknown_type(name: str) -> str:
    plain = name.strip().lower().replace("_", "-")
    negation = _NEGATION if plain.startswith(_NEGATION) else ""
    hint = _closest(plain.removeprefix(_NEGATION), list(registry))
    known = ", ".join(sorted(registry))
    tail = f"Did you mean {negation + hint!r}?" if hint else f"Known types are {known}."
    return f"unknown assertion type {quote(name)}. {tail}"


def _closest(word: str, known: list[str]) -> str | None:
    import difflib  # only for those who misspell

    # Long nonsense is close to nothing, and comparing it takes long.
    return next(iter(difflib.get_close_matches(word[:80], known, 1, 0.6)), None)


class _Step:
    """One assertion of a plan: the only place that handles `not-`, weight, metric, transform and crashes."""

    def __init__(self, config: Any) -> None:
        named, values, problems = _read(config)
        self._type = _shown_type(config)
        self._weight = values.pop("weight", 1.0)
        self._metric: str | None = values.pop("metric", None)
        self._transform: JsonPath | None = values.pop("transform", None)
        self._negated = named is not None and named.is_negated
        self._assertion: Assertion | None = None
        self._problem = " ".join(map(_sentence, problems))
        if named is not None and not problems:
            try:
                self._assertion = named.cls(**values)
                self._assertion.prepare()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - shown to the user as this assertion's result
                self._assertion = None
                self._problem = f"The assertion could not be prepared: {_describe(error)}."
        self.may_be_slow = self._assertion is not None and self._assertion.may_be_slow

    def passing(self) -> PassingRange | None:
        """The measured numbers that pass, or None where no number decides."""
        assertion = self._assertion
        if assertion is None or not assertion.measures:
            return None
        return PassingRange(*assertion.passing(), assertion.measures, self._negated)

    def grade(self, output: CheckedOutput) -> GradingResult:
        """Check one output and answer, whatever happens."""
        assertion = self._assertion
        if assertion is None:
            return self._error(f"Configuration error: {self._problem}")
        if perf_counter() > output.budget.ends_at:
            return self._error(f"Not checked: the assertions before it took longer than {BLOCK_SECONDS:g} s.")
        try:
            if self._transform is not None:
                output = self._transform.apply(output)
            return self._result(assertion.check(output))
        except CannotCheck as reason:
            return self._error(str(reason))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - shown to the user as this assertion's result
            return self._error(f"The check broke: {_describe(error)}.")

    def _result(self, verdict: Verdict) -> GradingResult:
        passed, reason, score = verdict.passed, verdict.reason, verdict.score
        if score is None:
            score = 1.0 if passed else 0.0
        if self._negated:
            passed, score = not passed, 1.0 - score
            if not passed:
                reason = f"{reason} {self._type} wants the opposite."
        return GradingResult(
            passed, score, reason, self._type, self._weight, self._metric, False, verdict.measured
        )

    def _error(self, reason: str) -> GradingResult:
        return GradingResult(False, 0.0, reason, self._type, self._weight, self._metric, True)


def _sentence(problem: Problem) -> str:
    """Make a problem readable on its own; one inside a value says where in it."""
    path, message = problem.path, problem.message
    is_inside = any(path.startswith((f".{key}.", f".{key}[")) for key in _ALL_KEYS)
    return f"{path[1:]}: {message}" if is_inside else f"{message[:1].upper()}{message[1:]}"


def _shown_type(config: Any) -> str:
    """Return the type as written, as far as it can be shown and stored."""
    type_ = config.get("type") if isinstance(config, dict) else None
    if not isinstance(type_, str):
        return ""
    return type_[:80] if type_.isprintable() else type_[:80].encode("unicode_escape").decode()


def _describe(error: BaseException) -> str:
    text = " ".join(str(error)[:200].split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class AssertionPlan:
    """A block's assertions, prepared once and run for every node."""

    def __init__(self, configs: Any) -> None:
        # Anything that is not a list becomes one entry, which then says what is wrong.
        entries = [] if configs is None else configs if isinstance(configs, list | tuple) else [configs]
        self._steps = tuple(map(_Step, entries))

    def __len__(self) -> int:
        return len(self._steps)

    def passing_ranges(self) -> list[PassingRange | None]:
        """For each assertion, in order, the measured numbers that pass, or None where no number decides."""
        return [step.passing() for step in self._steps]

    def run(self, context: AssertionContext) -> AssertionsResult:
        """Grade one output here and now."""
        output = CheckedOutput(context, PatternBudget())
        return AssertionsResult([step.grade(output) for step in self._steps])

    async def run_async(self, context: AssertionContext) -> AssertionsResult:
        """Grade one output without holding up the event loop: what may take long runs in threads."""
        import asyncio  # 50 ms, and a caller that awaits has it loaded

        output = CheckedOutput(context, PatternBudget())
        is_long = not isinstance(context.output, str) or len(context.output) > _LONG_OUTPUT

        async def grade(step: _Step) -> GradingResult:
            if step.may_be_slow or is_long:
                return await asyncio.to_thread(step.grade, output)
            return step.grade(output)

        results = await asyncio.gather(*map(grade, self._steps))
        return AssertionsResult(list(results))


def compile_assertions(configs: Any) -> AssertionPlan:
    """Prepare a block's assertions once; a bad one answers with an error and never stops another."""
    return AssertionPlan(configs)


def run_assertion(config: Any, context: AssertionContext) -> GradingResult:
    """Grade one output by one assertion."""
    return _Step(config).grade(CheckedOutput(context, PatternBudget()))


async def run_assertions(configs: Any, context: AssertionContext) -> AssertionsResult:
    """Grade one output by every assertion, gathered on the running event loop."""
    return await AssertionPlan(configs).run_async(context)


def run_assertions_sync(configs: Any, context: AssertionContext) -> AssertionsResult:
    """Grade one output by every assertion, without an event loop."""
    return AssertionPlan(configs).run(context)


def validate_assertions(configs: Any) -> list[Problem]:
    """Find everything wrong with a list of assertions that can be found before running them."""
    if configs is None:
        return []
    if not isinstance(configs, list | tuple):
        return [Problem("", f"assertions must be a list, not {describe(configs)}.")]
    return [
        Problem(f"[{index}]{problem.path}", problem.message)
        for index, config in enumerate(configs)
        for problem in _read(config)[2]
    ]
