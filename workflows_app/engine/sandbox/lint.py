"""What can be said about a block's code without running it; imports are a lint, not a boundary."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class CodeError:
    """One thing wrong with the code, at a line counted from the code's own first."""

    line: int
    message: str


def check_code(code: str, allowed_imports: Iterable[str] | None = None) -> list[CodeError]:
    """Find every error: syntax, a missing or wrong `main`, imports not listed; in the order of lines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is the author's business, not the server log's
            tree = ast.parse(code)
    except SyntaxError as error:
        return [CodeError(error.lineno or 1, f"not valid Python: {error.msg}")]
    except ValueError as error:
        return [CodeError(1, f"not valid Python: {error}")]
    except (RecursionError, MemoryError):
        return [CodeError(1, "nested too deeply to be read as Python")]
    errors = _main_errors(tree)
    if allowed_imports is not None:
        errors += _import_errors(tree, allowed_imports)
    return sorted(errors, key=lambda error: error.line)


def _main_errors(tree: ast.Module) -> list[CodeError]:
    mains = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "main"
    ]
    if not mains:
        return [CodeError(1, "no function main at the top level; write `def main(data):`")]
    main = mains[-1]
    if isinstance(main, ast.AsyncFunctionDef):
        return [CodeError(main.lineno, "main must be a plain function: `def main(data):`, not `async def`")]
    arguments = main.args
    count = len(arguments.posonlyargs) + len(arguments.args)
    is_odd = arguments.vararg or arguments.kwarg or arguments.kwonlyargs
    if count != 1 or is_odd:
        taken = ast.unparse(arguments) or "nothing"
        message = f"main takes {taken}; it must take exactly one parameter: `def main(data):`"
        return [CodeError(main.lineno, message)]
    return []


def _import_errors(tree: ast.Module, allowed: Iterable[str]) -> list[CodeError]:
    names = set(allowed)
    listed = ", ".join(sorted(names)) or "none"
    return [
        CodeError(node.lineno, f"import of {module!r} is not in allowed_imports ({listed})")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in _modules(node)
        if not any(f"{module}.".startswith(f"{name}.") for name in names)
    ]


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level:
        return ["." * node.level + (node.module or "")]
    # `from a import b` may import the submodule a.b, which may be allowed where a is not.
    return [f"{node.module}.{alias.name}" for alias in node.names]
