"""Reading, compiling, running and validating a block's assertions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Assertion, BadOption, Option, PassingRange, Verdict, options_of, registry
from .limits import CannotCheck, PatternBudget
from .options import Metric, Number, describe
from .patterns import shorten
from .results import AssertionsResult, GradingResult
from .subject import AssertionContext, Subject
from .transforms import JsonPath, Transform

# Outputs longer than this are judged in a thread when an event loop waits.
_LONG_OUTPUT = 50_000
_NEGATION = "not-"

_COMMON = [
    Option(
        "weight", Number(minimum=0), "How much it counts in the score; 0 counts for passing only.", False, 1.0
    ),
    Option("metric", Metric(), "A name under which the score is reported too.", False, None),
    Option(
        "transform",
        Transform(),
        "What to take out of the output first: `json_path:<expression>`.",
        False,
        None,
    ),
]


def options_for(cls: type[Assertion]) -> list[Option]:
    """List the options of a type, its own first and then those that all take."""
    return [*options_of(cls), *_COMMON]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a list of assertions: where, and what would do."""

    path: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """Give the problem as JSON-able values."""
        return {"path": self.path, "message": self.message}


class _Reader:
    """Reads the options of one assertion type from a config."""

    __slots__ = ("cls", "nullable", "parsers", "required")

    def __init__(self, cls: type[Assertion]) -> None:
        self.cls = cls
        options = options_for(cls)
        self.parsers = {option.name: option.kind.parse for option in options}
        self.required = [option.name for option in options if option.required]
        self.nullable = frozenset(option.name for option in options if option.takes_null)

    def read(self, config: dict[Any, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return the options given, and what is wrong with them as (path, message) pairs."""
        values: dict[str, Any] = {}
        faults: list[tuple[str, str]] = []
        parsers = self.parsers
        for key, raw in config.items():
            if key == "type":
                continue
            parse = parsers.get(key)
            if parse is None:
                # A threshold of null, say, is no threshold, also where none is taken.
                if raw is not None or key not in _ALL_KEYS:
                    faults.append((f".{key}", self._unknown_key(key)))
            elif raw is not None or key in self.nullable:
                try:
                    values[key] = parse(raw)
                except BadOption as fault:
                    faults.append(
                        (
                            f".{key}{fault.path}",
                            f"{key} {fault.message}." if not fault.path else f"{fault.message}.",
                        )
                    )
        for key in self.required:
            if key not in values and not any(path.startswith(f".{key}") for path, _ in faults):
                faults.append((f".{key}", f"{key} is missing; {self.cls.type} needs one."))
        return values, faults

    def _unknown_key(self, key: object) -> str:
        known = ["type", *self.parsers]
        if key in _ALL_KEYS:
            return f"{self.cls.type} takes no {key}; it takes {', '.join(known)}."
        hint = _closest(str(key), known)
        tail = f"Did you mean {hint!r}?" if hint else f"Known keys are {', '.join(known)}."
        return f"unknown key {shorten(str(key))}. {tail}"


_ALL_KEYS = frozenset({"value", "threshold", "weight", "metric", "transform"})
_readers: dict[str, tuple[_Reader, bool]] = {}


def _reader_for(type_: str) -> tuple[_Reader, bool] | None:
    """Return the reader of a type and whether it is negated, or None for an unknown type."""
    try:
        return _readers[type_]
    except KeyError:
        negated = type_.startswith(_NEGATION)
        cls = registry.get(type_[len(_NEGATION) :] if negated else type_)
        if cls is None:
            return None
        found = _readers[type_] = (_Reader(cls), negated)
        return found


def _read(config: Any) -> tuple[tuple[_Reader, bool] | None, dict[str, Any], list[tuple[str, str]]]:
    """Read one entry of the list, whatever it is."""
    if not isinstance(config, dict):
        return None, {}, [("", f"an assertion is a map with a type, not {describe(config)}.")]
    type_ = config.get("type")
    if not isinstance(type_, str) or not type_:
        given = "type is missing" if type_ is None else f"type must be text, not {describe(type_)}"
        return None, {}, [(".type", f"{given}; give one of the assertion types, such as 'contains'.")]
    reader = _reader_for(type_)
    if reader is None:
        return None, {}, [(".type", _unknown_type(type_))]
    values, faults = reader[0].read(config)
    return reader, values, faults


def _unknown_type(type_: str) -> str:
    spelled = type_.strip().lower().replace("_", "-")
    negation = _NEGATION if spelled.startswith(_NEGATION) else ""
    hint = _closest(spelled.removeprefix(_NEGATION), list(registry))
    known = ", ".join(sorted(registry))
    tail = f"Did you mean {negation + hint!r}?" if hint else f"Known types are {known}."
    return f"unknown assertion type {shorten(type_)}. {tail}"


def _closest(word: str, known: list[str]) -> str | None:
    import difflib  # only for those who misspell

    # Long nonsense is close to nothing, and comparing it takes long.
    return next(iter(difflib.get_close_matches(word[:80], known, 1, 0.6)), None)


class _Step:
    """One assertion of a plan: the only place that handles `not-`, weight, metric, transform and crashes."""

    __slots__ = (
        "_assertion",
        "_fault",
        "_metric",
        "_negated",
        "_transform",
        "_type",
        "_weight",
        "may_be_slow",
    )

    def __init__(self, config: Any) -> None:
        reader, values, faults = _read(config)
        self._type = _shown_type(config)
        self._weight = values.pop("weight", 1.0)
        self._metric: str | None = values.pop("metric", None)
        self._transform: JsonPath | None = values.pop("transform", None)
        self._negated = reader is not None and reader[1]
        self._assertion: Assertion | None = None
        self._fault = " ".join(_sentence(path, message) for path, message in faults)
        if reader is not None and not faults:
            try:
                self._assertion = reader[0].cls(**values)
                self._assertion.prepare()
            except Exception as error:  # noqa: BLE001 - shown to the user as this assertion's result
                self._assertion = None
                self._fault = f"The assertion could not be prepared: {_named(error)}."
        self.may_be_slow = self._assertion is not None and self._assertion.may_be_slow

    def passing(self) -> PassingRange | None:
        """The measured numbers that pass, or None where no number decides."""
        assertion = self._assertion
        if assertion is None or not assertion.measures:
            return None
        return PassingRange(*assertion.passing(), assertion.measures, self._negated)

    def grade(self, subject: Subject) -> GradingResult:
        """Answer for one subject, whatever happens."""
        assertion = self._assertion
        if assertion is None:
            return self._error(f"Configuration error: {self._fault}")
        try:
            if self._transform is not None:
                subject = self._transform.apply(subject)
            return self._result(assertion.check(subject))
        except CannotCheck as fault:
            return self._error(str(fault))
        except Exception as error:  # noqa: BLE001 - shown to the user as this assertion's result
            return self._error(f"The check broke: {_named(error)}.")

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


def _sentence(path: str, message: str) -> str:
    """Make a fault readable on its own; one inside a value says where in it."""
    is_inside = any(path.startswith((f".{key}.", f".{key}[")) for key in _ALL_KEYS)
    return f"{path[1:]}: {message}" if is_inside else f"{message[:1].upper()}{message[1:]}"


def _shown_type(config: Any) -> str:
    """Return the type as written, as far as it can be shown and stored."""
    type_ = config.get("type") if isinstance(config, dict) else None
    if not isinstance(type_, str):
        return ""
    return (
        type_
        if type_ in _readers
        else type_[:80].encode("unicode_escape").decode()
        if not type_.isprintable()
        else type_[:80]
    )


def _named(error: Exception) -> str:
    text = " ".join(str(error)[:200].split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class AssertionPlan:
    """A block's assertions, prepared once and run for every node."""

    __slots__ = ("_steps",)

    def __init__(self, configs: Any) -> None:
        self._steps = tuple(map(_Step, _entries(configs)))

    def __len__(self) -> int:
        return len(self._steps)

    def passing_ranges(self) -> list[PassingRange | None]:
        """For each assertion, in order, the measured numbers that pass, or None where no number decides."""
        return [step.passing() for step in self._steps]

    def run(self, context: AssertionContext) -> AssertionsResult:
        """Grade one output here and now."""
        subject = Subject(context, PatternBudget())
        return AssertionsResult([step.grade(subject) for step in self._steps])

    async def run_async(self, context: AssertionContext) -> AssertionsResult:
        """Grade one output without holding up the event loop: what may take long runs in threads."""
        import asyncio  # 50 ms, and whoever awaits has it loaded

        subject = Subject(context, PatternBudget())
        is_long = not isinstance(context.output, str) or len(context.output) > _LONG_OUTPUT

        async def grade(step: _Step) -> GradingResult:
            if step.may_be_slow or is_long:
                return await asyncio.to_thread(step.grade, subject)
            return step.grade(subject)

        results = await asyncio.gather(*map(grade, self._steps))
        return AssertionsResult(list(results))


def _entries(configs: Any) -> list[Any]:
    if configs is None:
        return []
    # Anything else that is no list becomes one entry, which then says what is wrong.
    return list(configs) if isinstance(configs, list | tuple) else [configs]


def compile_assertions(configs: Any) -> AssertionPlan:
    """Prepare a block's assertions once; a bad one answers with an error and never stops another."""
    return AssertionPlan(configs)


def run_assertion(config: Any, context: AssertionContext) -> GradingResult:
    """Grade one output by one assertion."""
    return _Step(config).grade(Subject(context, PatternBudget()))


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
    problems: list[Problem] = []
    for index, config in enumerate(configs):
        faults = _read(config)[2]
        if faults:
            problems.extend(Problem(f"[{index}]{path}", message) for path, message in faults)
    return problems
