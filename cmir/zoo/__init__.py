"""Ready masks, each a readable .mlir beside this file; `python -m cmir.zoo` lists them.

>>> mask = cmir.zoo.load("hstu")
>>> mask = cmir.zoo.load("clear", radius=8, height=32, width=32)
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from cmir.errors import CmirError

if TYPE_CHECKING:
    from cmir.runtime.mask import CompiledMask

NAMES = (
    *("causal", "causal_bottom_right", "full", "key_padding", "kv_cache", "prefix_lm"),
    *("window_hf", "window_attention_gym", "window_flash", "window_two_sided"),
    *("sinks_window", "global_window", "global_window_causal", "dilated_window"),
    *("document", "causal_document", "packed_cross", "shared_prompt", "causal_blockwise", "qk_sparse"),
    *("hstu", "hstu_meta"),
    *("block_causal", "chunked", "block_diffusion", "frame_causal"),
    *("gemma3", "flamingo", "flamingo_any_order"),
    *("clear", "natten_2d", "sliding_tile_2d"),
    *(
        "tree_dfs",
        "tree_any_order",
        "topk_blocks",
        "bigbird",
        "vertical_slash",
        "random_eviction",
        "key_holes",
        "strided",
    ),
)


def path(name: str) -> Path:
    """The .mlir file of a mask of the zoo."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CmirError(f"a mask of the zoo is named by a string, got {name!r}")
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        meant = f"did you mean {close[0]!r}? " if close else ""
        raise CmirError(f"no mask {name!r} in the zoo; {meant}it has {', '.join(NAMES)}")
    return Path(__file__).with_name(f"{name}.mlir")


def load(name: str, **statics: int) -> CompiledMask:
    """The compiled mask, with other values for its statics where they are given."""
    from cmir.runtime.compiling import compile

    return compile(path(name), statics=statics)


def summary(name: str) -> str:
    """What the mask is and who uses it: the comment at the top of its file, first sentence."""
    lines = [line.removeprefix("//").strip() for line in path(name).read_text().splitlines() if line.startswith("//")]
    return " ".join(lines).partition(". ")[0].rstrip(".")
