"""What can be said about a block's code without running it; imports are a lint, not a boundary."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class CodeFault:
    """One thing wrong with the code, at a line counted from the code's own first."""

    line: int
    message: str


def check_code(code: str, allowed_imports: Iterable[str] | None = None) -> list[CodeFault]:
    """Find every fault: syntax, a missing or wrong `main`, imports not listed; in the order of lines."""
    tree = _parse(code)
    if isinstance(tree, CodeFault):
        return [tree]
    faults = _main_faults(tree)
    if allowed_imports is not None:
        faults += _import_faults(tree, allowed_imports)
    return sorted(faults, key=lambda fault: fault.line)


def _parse(code: str) -> ast.Module | CodeFault:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is the author's business, not the server log's
            return ast.parse(code)
    except SyntaxError as error:
        return CodeFault(error.lineno or 1, f"not valid Python: {error.msg}")
    except ValueError as error:
        return CodeFault(1, f"not valid Python: {error}")
    except (RecursionError, MemoryError):
        return CodeFault(1, "nested too deeply to be read as Python")


def _main_faults(tree: ast.Module) -> list[CodeFault]:
    mains = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "main"
    ]
    if not mains:
        return [CodeFault(1, "no function main at the top level; write `def main(data):`")]
    main = mains[-1]
    if isinstance(main, ast.AsyncFunctionDef):
        return [CodeFault(main.lineno, "main must be a plain function: `def main(data):`, not `async def`")]
    given = main.args
    count = len(given.posonlyargs) + len(given.args)
    is_odd = given.vararg or given.kwarg or given.kwonlyargs
    if count != 1 or is_odd:
        return [
            CodeFault(
                main.lineno,
                f"main takes {ast.unparse(given) or 'nothing'}; it must take exactly one parameter: `def main(data):`",
            )
        ]
    return []


def _import_faults(tree: ast.Module, allowed: Iterable[str]) -> list[CodeFault]:
    names = set(allowed)
    faults = []
    listed = ", ".join(sorted(names)) or "none"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for module in _modules(node):
            if not _is_allowed(module, names):
                message = f"import of {module!r} is not in allowed_imports ({listed})"
                faults.append(CodeFault(node.lineno, message))
    return sorted(faults, key=lambda fault: fault.line)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level:
        return ["." * node.level + (node.module or "")]
    # `from a import b` may import the submodule a.b, which may be allowed where a is not.
    return [f"{node.module}.{alias.name}" for alias in node.names]


def _is_allowed(module: str, allowed: set[str]) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:count]) in allowed for count in range(1, len(parts) + 1))
