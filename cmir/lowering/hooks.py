"""Fills a kernel skeleton: hook functions are replaced with generated source, META with the mask's metadata.

A skeleton is ordinary Python. A *hook* in it is a top-level function right below the line `# hook: NAME`, which every
mask fills, or `# default hook: NAME`, which stays as it is unless somebody fills it. The name
`META` stands for a mask's metadata parameters wherever it is a parameter, an argument, or the string "META" (a list
of parameter names). This is text in, text out: nothing here knows what the kernels do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

_MARK = re.compile(r"# (default )?hook: (\w+)$")


def hook_names(skeleton: str) -> list[str]:
    """The hooks of a skeleton, in the order of the text."""
    return [name for name, *_ in _hooks(skeleton)]


def fill(skeleton: str, hooks: Mapping[str, str], meta: Sequence[str]) -> str:
    """The skeleton with `hooks` (name -> source of the function that takes its place, decorator included) filled in.

    `meta` lists metadata parameters as they stand in a parameter list (`meta_history_ptr: tl.constexpr`); arguments
    get their bare names, and the string lists those without annotation. Replacements may use META too. A hook that is
    not given keeps its default.
    Raises ValueError for a hook that the skeleton does not have.
    """
    unknown = sorted(set(hooks) - set(hook_names(skeleton)))
    if unknown:
        raise ValueError(f"no hook {', '.join(unknown)} in this skeleton; it has {', '.join(hook_names(skeleton))}")
    lines, done = skeleton.splitlines(), 0
    pieces: list[Sequence[str]] = []
    for name, optional, start, stop in _hooks(skeleton):
        if name in hooks:
            pieces += [lines[done:start], hooks[name].strip("\n").splitlines()]
            done = stop
        elif optional:
            pieces.append(lines[done:start])
            done = start + 1
    pieces.append(lines[done:])
    return "".join(_substitute("".join(f"{line}\n" for line in piece), meta) for piece in pieces)


# A process prints many masks and has few skeletons: what was found in one is kept.
@lru_cache(maxsize=64)
def _hooks(skeleton: str) -> tuple[tuple[str, bool, int, int], ...]:
    """(name, whether it is a default one, first line, one past the last line) of each hook: 0-based, the mark and the
    decorators included."""
    return tuple(_find_hooks(skeleton))


def _find_hooks(skeleton: str) -> Iterator[tuple[str, bool, int, int]]:
    lines = skeleton.splitlines()
    for node in ast.parse(skeleton).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            mark = _MARK.match(lines[first - 1]) if first else None
            if mark and node.end_lineno is not None:
                yield mark[2], bool(mark[1]), first - 1, node.end_lineno


def _substitute(source: str, meta: Sequence[str]) -> str:
    """Replaces every META; where the list is empty, the comma before it goes too."""
    names = [parameter.split(":")[0].strip() for parameter in meta]
    # A list of parameters that Triton must not specialize on, which it never does on constexprs.
    listed = [f'"{name}"' for name in names if name in meta]
    for offset, text, is_parameter in reversed(_places(source)):
        items = listed if text == '"META"' else meta if is_parameter else names
        before, after = source[:offset], source[offset + len(text) :]
        if items:
            indent = before[before.rfind("\n") + 1 :]
            separator = f",\n{indent}" if not indent.strip() else ", "
            source = before + separator.join(items) + after
        else:
            source = before.rstrip().removesuffix(",") + after
    return source


@lru_cache(maxsize=256)
def _places(source: str) -> tuple[tuple[int, str, bool], ...]:
    """(offset, text, whether it is a parameter) of every META of a piece of source, in the order of the text."""
    if "META" not in source:
        return ()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    places: list[tuple[int, str, bool]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.arg == "META":
            text, is_parameter = "META", True
        elif isinstance(node, ast.Name) and node.id == "META":
            text, is_parameter = "META", False
        elif isinstance(node, ast.Constant) and node.value == "META":
            text, is_parameter = '"META"', False
        else:
            continue
        # ast counts bytes of UTF-8, we count characters.
        column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
        places.append((starts[node.lineno - 1] + column, text, is_parameter))
    return tuple(sorted(places))
