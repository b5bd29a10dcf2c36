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
    lines = skeleton.splitlines()
    for name, optional, start, stop in reversed(list(_hooks(skeleton))):
        if name in hooks:
            lines[start:stop] = hooks[name].strip("\n").splitlines()
        elif optional:
            del lines[start]
    return _substitute("\n".join(lines) + "\n", meta)


def _hooks(skeleton: str) -> Iterator[tuple[str, bool, int, int]]:
    """(name, whether it is a default one, first line, one past the last line) of each hook: 0-based, the mark and the
    decorators included."""
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
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    places: list[tuple[int, str, list[str]]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.arg == "META":
            text, items = "META", list(meta)
        elif isinstance(node, ast.Name) and node.id == "META":
            text, items = "META", names
        elif isinstance(node, ast.Constant) and node.value == "META":
            # A list of parameters that Triton must not specialize on, which it never does on constexprs.
            text, items = '"META"', [f'"{name}"' for name in names if name in meta]
        else:
            continue
        # ast counts bytes of UTF-8, we count characters.
        column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
        places.append((starts[node.lineno - 1] + column, text, items))
    for offset, text, items in sorted(places, reverse=True):
        before, after = source[:offset], source[offset + len(text) :]
        if items:
            indent = before[before.rfind("\n") + 1 :]
            separator = f",\n{indent}" if not indent.strip() else ", "
            source = before + separator.join(items) + after
        else:
            source = before.rstrip().removesuffix(",") + after
    return source
