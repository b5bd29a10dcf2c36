"""From text to pass objects: `-p 'cse,merge-slots{option=3}'`, `--merge-slots=option=3`, `-t 'triton{option=3}'`.

The grammar is xDSL's; the errors are ours. They point into the text, under the file name `<pipeline>`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from types import NoneType
from typing import Any, NoReturn, TypeVar, get_args, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa, type_repr
from xdsl.utils.target import Target

from cmir.errors import CmirError, SourceLocation, SpecError, add_source
from cmir.tools.located_parser import suggestion

FILE = "<pipeline>"

_ClassT = TypeVar("_ClassT", bound=ArgSpecConvertible)


def parse_passes(text: str, passes: Mapping[str, Callable[[], type[ModulePass]]]) -> list[ModulePass]:
    """The passes that `text` names, with their options set.

    Raises:
        SpecError: unknown pass or option, an option of the wrong type, a syntax error.
    """
    return [_build(spec, "pass", passes, text) for spec in _parse(text)]


def parse_target(text: str, targets: Mapping[str, Callable[[], type[Target]]]) -> Target:
    """The target that `text` names, with its options set; errors as `parse_passes`."""
    specs = _parse(text)
    if len(specs) != 1:
        raise SpecError(f"expected one target, got '{text}'")
    return _build(specs[0], "target", targets, text)


def flag_to_pipeline(name: str, options: str, passes: Mapping[str, Callable[[], type[ModulePass]]]) -> str:
    """The pipeline text for `--name=options`, where options are `a=1,b=2` or `{a=1 b=2}`.

    A comma also separates the values of a list option: a piece without `=` that is no option's name goes on the list.
    """
    if not options or options.startswith("{"):
        return name + options
    known = _options(passes[name]())
    pieces: list[str] = []
    for piece in re.findall(r'(?:"(?:\\.|[^"\\])*"|[^,"])+', options):
        if pieces and "=" not in piece and piece.replace("_", "-") not in known:
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece)
    return f"{name}{{{' '.join(pieces)}}}"


def describe_options(cls: type[ArgSpecConvertible]) -> list[str]:
    """One line for each option of a pass or target: name, type, default."""
    hints = get_type_hints(cls)
    required = cls.required_fields()
    return [
        f"{name}: {type_repr(hints[option.name])}" + ("" if option.name in required else f" = {option.default}")
        for name, option in _options(cls).items()
    ]


def _options(cls: type[ArgSpecConvertible]) -> dict[str, Field[Any]]:
    return {option.name.replace("_", "-"): option for option in fields(cls) if option.init and option.name != "name"}


def _parse(text: str) -> list[ArgSpec]:
    try:
        return list(parse_pipeline(text))
    except ArgSpecParseError as error:  # a BaseException, and all it knows is in its text
        column = re.search(r"pass-pipeline:1:(\d+)", str(error))
        message = str(error).rstrip().splitlines()[-1].strip()
        _fail(message[0].lower() + message[1:], text, int(column[1]) - 1 if column else 0)


def _fail(message: str, text: str, at: int | str) -> NoReturn:
    """Raise at an offset of the text, or where a word stands in it."""
    if isinstance(at, str):
        found = re.search(rf"(?<![\w-]){re.escape(at)}(?![\w-])", text)
        at = found.start() if found else 0
    add_source(FILE, text)
    raise SpecError(message, SourceLocation(FILE, 1, at + 1))


def _build(spec: ArgSpec, kind: str, table: Mapping[str, Callable[[], type[_ClassT]]], text: str) -> _ClassT:
    if spec.name not in table:
        known = f"; the targets are {', '.join(sorted(table))}" if kind == "target" else ""
        _fail(f"unknown {kind} '{spec.name}'{suggestion(spec.name, table) or known}", text, spec.name)
    try:
        cls = table[spec.name]()
    except ImportError as error:
        raise CmirError(f"{kind} '{spec.name}' cannot be imported: {error}") from error
    hints = get_type_hints(cls)
    known = _options(cls)
    parameters: dict[str, ParameterListType] = {}
    for given, value in spec.parameters.items():
        name = given.replace("_", "-")
        if name not in known:
            hint = suggestion(name, known) or (f"; it has {', '.join(known)}" if known else "")
            _fail(f"{kind} '{spec.name}' has no option '{given}'{hint}", text, given)
        expected = hints[known[name].name]
        if not value and expected is bool:
            value = (True,)
        if not _fits(value, expected):
            got = ",".join(str(v) for v in value) or "nothing"
            _fail(f"option '{given}' of {kind} '{spec.name}' must be {type_repr(expected)}, got {got}", text, given)
        parameters[name] = value
    try:
        return cls.from_spec(ArgSpec(spec.name, parameters))
    except (ValueError, TypeError) as error:
        _fail(str(error), text, spec.name)


def _fits(value: ParameterListType, expected: Any) -> bool:
    if not value:
        return NoneType in get_args(expected)
    return (len(value) == 1 and isa(value[0], expected)) or isa(value, expected)
