"""A mask written to a file, as what the file's name ends in: an HTML page, or a picture."""

from __future__ import annotations

from pathlib import Path

from cmir.errors import CmirError
from cmir.tools.files import write_output
from cmir.view.load import Lowered
from cmir.view.pack import Pack
from cmir.view.scene import Scene

FORMATS = ("html", "png", "svg")
SMALL, LARGE = 16, 1024
"""Masks up to the first are a tile of their own; past the second, tiles are those of a GPU."""


def format_of(path: str) -> str:
    """One of FORMATS, by the name of a file.

    Raises:
        CmirError: it is none of them.
    """
    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise CmirError(f"cannot tell the format of '{path}': its name ends in one of .{', .'.join(FORMATS)}")
    return kind


def write(scene: Scene, lowered: Lowered, path: str, tile: tuple[int, int] | None = None) -> None:
    """Write the page or the picture of a scene.

    Args:
        scene: the mask and its metadata.
        lowered: what it was made of, with the stages to kernels for a page.
        path: the file; its name says the format.
        tile: rows and columns of a tile; by default what suits the size.

    Raises:
        CmirError: an unknown format, a mask too large for it, a page of a whole pack, matplotlib missing, or a file
            that cannot be written.
    """
    longest = max(scene.rows, scene.cols)
    suited = (128, 128) if longest > LARGE else (SMALL, SMALL)
    if format_of(path) == "html":
        from cmir.view.page import page

        if isinstance(scene, Pack):
            last = len(scene.parts) - 1
            raise CmirError(
                f"a page shows one sequence: choose one of the pack, sequence 0 to {last}, or make a picture (.png)"
            )

        write_output(path, page(scene, lowered, tile or suited))
    else:
        from cmir.view.picture import save

        save(scene, path, tile or (suited if longest > SMALL else None))
