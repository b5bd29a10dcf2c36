"""`cm-view`: a picture or a page of what a mask shows, under metadata that are given or drawn.

    cm-view spec.mlir --rows 64 --meta history=24 -o mask.html
    cm-view spec.mlir                                            as text, metadata drawn
    cm-view spec.mlir --cu-seqlens 0,5,12 --meta history=2,3 -o pack.png

Errors look as those of `cm-opt`.
"""

import argparse
import re
import sys
from collections.abc import Sequence

from cmir.errors import CmirError
from cmir.tools.cm_opt import run_tool
from cmir.tools.files import read_input, write_output


def main(argv: Sequence[str] | None = None) -> int:
    """Run `cm-view` with the given arguments (by default the command line's) and return its exit code."""
    return run_tool("cm-view", lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    from cmir.tools.registry import Registry
    from cmir.view.load import lower
    from cmir.view.metadata import parse_metadata
    from cmir.view.output import format_of, write

    kind = "text" if options.output == "-" else format_of(options.output)
    tile = _tile(options.tile)
    registry = Registry.installed()
    name, text = read_input(options.spec, "cm-view")
    lowered = lower(text, name, _statics(options.static), context=registry.context(), kernels=kind == "html")
    given = parse_metadata(options.meta)
    if options.cu_seqlens is not None:
        pack = options.cu_seqlens, options.cu_seqlens_k, given, options.sequence
        scene = lowered.pack(options.rows, options.cols, *pack)
    elif options.cu_seqlens_k is not None or options.sequence is not None:
        raise CmirError("--cu-seqlens-k and --sequence go with --cu-seqlens, which was not given")
    else:
        metadata = lowered.metadata(options.rows, options.cols, given, options.seed)
        if metadata.drawn:
            print(metadata.said(options.seed), file=sys.stderr)
        scene = lowered.scene(metadata)
    if kind == "text":
        from cmir.view.text import drawing

        write_output("-", drawing(scene))
    else:
        write(scene, lowered, options.output, tile)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cm-view",
        description="Show a mask: which pairs are visible, by which Region and slot, its tiles and interval tables.",
        epilog="Metadata that are left out are drawn so that all facts hold, and printed so that they can be given.",
    )
    parser.add_argument("spec", metavar="SPEC.mlir", help="the spec; - is standard input")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="a .html, .png or .svg; text if left out")
    parser.add_argument("--rows", type=_length, metavar="N", help="the number of rows")
    parser.add_argument("--cols", type=_length, metavar="N", help="the number of columns (as many as rows if left out)")
    parser.add_argument(
        "--meta",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a metadatum: an int, 1,2,3, JSON or @FILE.json; @FILE.json alone gives all by name; may be repeated",
    )
    parser.add_argument(
        "--cu-seqlens",
        type=_lengths,
        metavar="0,INT,..",
        help="where the sequences of a pack begin, and where the last ends: scalars are one for each, a table per row "
        "has the entries of one after another, all are given; the picture is of the whole pack",
    )
    parser.add_argument("--cu-seqlens-k", type=_lengths, metavar="0,INT,..", help="the same of columns, if others")
    parser.add_argument("--sequence", type=_length, metavar="N", help="of a pack the sequence to show, alone")
    parser.add_argument("--seed", type=_length, default=0, metavar="N", help="draw what is left out from this seed (0)")
    parser.add_argument(
        "--static", action="append", default=[], metavar="NAME=INT", help="another value for a static; may be repeated"
    )
    parser.add_argument("--tile", metavar="ROWS,COLS", help="the size of a tile (16,16; 128,128 past 1024)")
    return parser


def _length(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise argparse.ArgumentTypeError(f"expected an int of at least 0, got '{text}'")
    return int(text)


def _lengths(text: str) -> list[int]:
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise argparse.ArgumentTypeError(f"expected ints with commas, got '{text}'")
    return [int(part) for part in text.split(",")]


def _tile(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)(?:[,x](\d+))?", text)
    tile = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if min(tile) < 1:
        raise CmirError(f"--tile {text}: expected rows,columns of a tile, at least 1: --tile 16,16")
    return tile


def _statics(texts: Sequence[str]) -> dict[str, int]:
    out: dict[str, int] = {}
    for text in texts:
        found = re.fullmatch(r"([A-Za-z]\w*)=(-?\d+)", text)
        if found is None:
            raise CmirError(f"--static {text}: expected NAME=INT")
        out[found[1]] = int(found[2])
    return out


if __name__ == "__main__":
    sys.exit(main())
