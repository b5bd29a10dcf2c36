"""Draws the pictures of README.md and of these pages: masks of the zoo, by `cm-view`'s own drawing.

    python docs/make_images.py

Tests compare every picture with its scene.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cmir import zoo
from cmir.view.load import lower
from cmir.view.picture import save
from cmir.view.scene import Scene

FOLDER = Path(__file__).parent / "images"


@dataclass(frozen=True)
class Picture:
    """A mask of the zoo under some metadata, and the tiles to draw."""

    mask: str
    rows: int
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    statics: Mapping[str, int] = field(default_factory=dict[str, int])
    tile: tuple[int, int] = (4, 4)

    def scene(self) -> Scene:
        lowered = lower(zoo.path(self.mask).read_text(), f"{self.mask}.mlir", self.statics)
        return lowered.scene(lowered.metadata(self.rows, None, self.metadata))

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.mask}.svg"


PICTURES = (
    Picture("hstu", 14, {"history": 7, "start": [*[0] * 7, 7, 7, 9, 9, 9, 12, 12]}),
    Picture(
        "shared_prompt",
        16,
        {
            "pack": [0] * 10 + [10] * 6,
            "prompt": [4] * 10 + [12] * 6,
            "segment": [0] * 4 + [4] * 3 + [7] * 3 + [10] * 2 + [12] * 2 + [14] * 2,
        },
    ),
    Picture("clear", 208, statics={"radius": 4, "height": 12, "width": 16, "text": 16}, tile=(16, 16)),
)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        save(picture.scene(), str(picture.file), picture.tile)
