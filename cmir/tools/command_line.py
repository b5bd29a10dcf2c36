"""The command line of `cm-opt` as data: the table of options, the parsed form, and the help made from both.

Passes are flags (`--NAME` or `--NAME=options`) and run in the order given, mixed with `-p` pipelines. `argparse` cannot
say that: a flag with an optional value would swallow the file that follows it.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from textwrap import fill
from typing import NamedTuple

from cmir.errors import CmirError
from cmir.tools.located_parser import suggestion
from cmir.tools.pipeline import describe_options, flag_to_pipeline
from cmir.tools.registry import Registry
from cmir.universe import GROUPS, PASSES


class Option(NamedTuple):
    """One option, known by the last of its flags; without a metavar it is a switch.

    A metavar in brackets, `[=VALUE]`, is a value that may be left out.
    """

    flags: tuple[str, ...]
    metavar: str
    help: str


OPTIONS = {
    "Input and output": (
        Option(("-p", "--passes"), "PIPELINE", "run passes written as 'cse,merge-slots{option=value}'"),
        Option(("-t", "--target"), "TARGET", "what to print: mlir (default), triton, gluon (for Hopper GPUs), .."),
        Option(("-o", "--output-file"), "FILE", "write to FILE, and only if everything succeeded"),
        Option(("--split-input-file",), "", "treat the pieces between '// -----' lines as inputs of their own"),
        Option(("--load",), "FILE.py", "add the passes, dialects and targets that a Python file defines"),
        Option(("--allow-unregistered-dialect",), "", "accept ops of unknown dialects"),
    ),
    "Seeing what happens": (
        Option(("--print-ir-before-all",), "", "print the IR before every pass (to standard error)"),
        Option(("--print-ir-after-all",), "", "print the IR after every pass (to standard error)"),
        Option(("--time-passes",), "", "print the time that every pass took (to standard error)"),
        Option(("--prove",), "[=strict]", "prove of every pass that it kept what is visible; strict: or fail"),
        Option(("--print-op-generic",), "", "print the result in the generic syntax"),
        Option(("--print-debuginfo",), "", "print the source location of every op"),
        Option(("--verify-diagnostics",), "", "succeed if what is reported is what comments announce (see below)"),
    ),
    "Help": (
        Option(("--explain",), "NAME", "print what a pass or target does, and its options; or, of a spec, .."),
        Option(("--explain",), "I,J", ".. why row I sees column J or does not: Region, clauses, slots, numbers"),
        Option(("--rows",), "N", "with --explain=I,J: the number of rows (drawn if left out)"),
        Option(("--cols",), "N", "with --explain=I,J: the number of columns (as many as rows if left out)"),
        Option(("--meta",), "NAME=VALUE", "with --explain=I,J: an int, 1,2,3, JSON or @FILE.json; may be repeated"),
        Option(("--seed",), "N", "with --explain=I,J: draw metadata that are left out from this seed (0)"),
        Option(("--explain-slots",), "", "print of every pair of intervals of a spec why it is one slot or two"),
        Option(("--version",), "", "print the versions of cmir and xDSL"),
        Option(("-h", "--help"), "", "print this"),
        Option(("--help-all",), "", "print this, and the names of all installed passes"),
    ),
}

_BY_FLAG = {flag: option for group in OPTIONS.values() for option in group for flag in option.flags}

_EXAMPLES = """
Examples:
  cm-opt spec.mlir                                check a spec and print it
  cm-opt --lower-intervals spec.mlir              the interval table of every Region
  cm-opt --dnf-normalize --cse spec.mlir          passes run in the order given
  cm-opt --lower-intervals --print-ir-after-all spec.mlir
  cm-opt --lower-intervals --transpose --choose-axis --lower-descriptor --lower-attention spec.mlir
  cm-opt --load my_pass.py --my-pass spec.mlir    a pass of your own
  cm-opt --explain merge-slots                    what one pass does
  cm-opt --explain=12,5 --rows 14 --meta history=7 spec.mlir    why row 12 sees column 5, or does not
"""

_EXPECTATIONS = """
Comments for --verify-diagnostics, on the line that a message is for or pointing at it by @+1, @-1, @above, @below:
  // expected-error@+1 {{part of the message}}                   also expected-warning, expected-remark, expected-note
  // expected-error-re@below {{at most {{[0-9]+}} clauses}}      inner braces hold a regular expression
"""


@dataclass
class CommandLine:
    """A parsed command line; options are looked up by their long flag."""

    input: str = "-"
    pipeline: list[str] = field(default_factory=list[str])
    options: dict[str, str] = field(default_factory=dict[str, str])
    metadata: list[str] = field(default_factory=list[str])

    def __contains__(self, flag: str) -> bool:
        return flag in self.options or (flag == "--meta" and bool(self.metadata))

    @property
    def cell(self) -> tuple[int, int] | None:
        """The row and the column that `--explain=I,J` asks about."""
        found = re.fullmatch(r"\s*(-?\d+)\s*,\s*(-?\d+)\s*", self.options.get("--explain", ""))
        return None if found is None else (int(found[1]), int(found[2]))

    def number(self, flag: str) -> int | None:
        """The value of an option that takes an int of at least 0; None where it is not given.

        Raises:
            CmirError: it is none.
        """
        value = self.options.get(flag)
        if value is not None and not re.fullmatch(r"\d+", value):
            raise CmirError(f"option '{flag}' needs an int of at least 0, got '{value}'")
        return None if value is None else int(value)


def parse_arguments(argv: Sequence[str], registry: Registry) -> CommandLine:
    """Parse the arguments that follow the program's name; `--load` files are run into `registry` first.

    Raises:
        CmirError: an unknown option, a missing value, two input files, or a file that does not load.
    """
    given = list(_options(argv))
    for flag, value in given:
        if flag == "--load":
            registry.load_file(value)
    line = CommandLine()
    inputs: list[str] = []
    for flag, value in given:
        name = flag.lstrip("-")
        if not flag:
            inputs.append(value)
        elif flag == "--passes":
            line.pipeline.append(value)
        elif flag == "--meta":
            line.metadata.append(value)
        elif flag in _BY_FLAG:
            line.options[flag] = value
        elif name in registry.passes:
            line.pipeline.append(flag_to_pipeline(name, value, registry.passes))
        else:
            known = [*(known_flag.lstrip("-") for known_flag in _BY_FLAG), *registry.passes]
            raise CmirError(f"unknown option '{flag}'{suggestion(name, known, '--') or ' (--help lists them)'}")
    if len(inputs) > 1:
        raise CmirError(f"more than one input file: {', '.join(inputs)}")
    line.input = inputs[0] if inputs else "-"
    return line


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(long flag, value) for every argument; the flag of an input file is empty."""
    arguments = iter(argv)
    for argument in arguments:
        if argument == "-" or not argument.startswith("-"):
            yield "", argument
            continue
        flag, equals, value = argument.partition("=")
        option = _BY_FLAG.get(flag)
        if option is None:  # a pass, perhaps
            yield flag, value
            continue
        optional = option.metavar.startswith("[")
        if option.metavar and not optional and not equals and (value := next(arguments, "")) == "":
            raise CmirError(f"option '{flag}' needs a value: {flag} {option.metavar}")
        if equals and not option.metavar:
            raise CmirError(f"option '{flag}' takes no value")
        yield option.flags[-1], value


def help_text(registry: Registry, everything: bool = False) -> str:
    """What `--help` prints, and with `everything` `--help-all`; imports no pass."""
    lines = [
        "usage: cm-opt [PASS or OPTION]... [FILE]",
        "",
        "Lower attention masks, one pass at a time: read MLIR from FILE (or standard input), run the passes in the",
        "order given, print the result. Any PASS takes options as --PASS=option=value,option=value.",
        "",
        "Passes, in the order of the pipeline",
    ]
    for entry in PASSES:
        if entry.name in GROUPS:
            lines.append(f" {GROUPS[entry.name]}:")
        lines += _columns([(f"--{entry.name}", entry.help)])
    if registry.loaded:
        about = ((f"--{name}", _doc(registry.passes[name]()).partition("\n")[0]) for name in registry.loaded)
        lines += ["", "Passes from --load:", *_columns(about)]
    for package, names in sorted(registry.passes_of_packages().items(), key=lambda pair: pair[0] == "xdsl"):
        if package != "xdsl":
            lines += ["", f"Passes of {package}:", _wrapped(names)]
        elif everything:
            lines += ["", "Passes of xDSL, of which --cse, --canonicalize and --dce are useful here:", _wrapped(names)]
        else:
            count = len(names)
            lines += ["", f"Passes of xDSL: --cse, --canonicalize, --dce and {count - 3} more, see --help-all"]
    for title, group in OPTIONS.items():
        rows = ((_left(option), option.help) for option in group)
        lines += ["", f"{title}:", *_columns(rows)]
    return "\n".join(lines) + "\n" + _EXPECTATIONS + _EXAMPLES


def _wrapped(names: Sequence[str]) -> str:
    return fill(", ".join(names), 110, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _left(option: Option) -> str:
    """An option as it is written."""
    gap = "" if option.metavar.startswith("[") else " "
    return ", ".join(option.flags) + f"{gap}{option.metavar}".rstrip()


def explain(name: str, registry: Registry) -> str:
    """The documentation of one pass or target.

    Raises:
        CmirError: nothing has that name; a row without its column, or two numbers with something else between.
    """
    for kind, table in (("pass", registry.passes), ("target", registry.targets)):
        if name in table:
            cls = table[name]()
            options = describe_options(cls)
            # A pass is documented in its class and, with the equation and IR before and after, in its file.
            parts = [f"{kind} {name}", _doc(cls), cleandoc(sys.modules[cls.__module__].__doc__ or "")]
            if options:
                parts.append("\n".join(["Options:", *(f"  {option}" for option in options)]))
            return "\n\n".join(part for part in parts if part) + "\n"
    known = [*registry.passes, *registry.targets]
    if re.match(r"\s*-?\d", name):
        raise CmirError(f"--explain={name}: a row and a column are two numbers, as in --explain=12,5")
    raise CmirError(f"no pass or target is called '{name}'{suggestion(name, known)}")


def _doc(cls: type) -> str:
    doc = cls.__doc__ or ""
    return "" if doc.startswith(f"{cls.__name__}(") else cleandoc(doc)  # dataclasses invent one: the signature


def _columns(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for left, right in rows:
        # A long left side gets a line of its own.
        yield f"  {left:28}{right}" if len(left) < 28 else f"  {left}\n{'':30}{right}"
