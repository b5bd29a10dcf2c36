"""What the zoo must have: the slots of every mask, and statics that make it small."""

import re

from cmir import zoo

# The table of masks that people use: slots by row and by column, None where a runtime length decides.
COUNTS: dict[str, tuple[int | None, int | None]] = {
    "full": (1, 1),
    "key_padding": (1, 1),
    "kv_cache": (1, 1),
    "causal": (1, 1),
    "causal_bottom_right": (1, 1),
    "prefix_lm": (1, 1),
    "window_hf": (1, 1),
    "window_attention_gym": (1, 1),
    "window_flash": (1, 1),
    "window_two_sided": (1, 1),
    "sinks_window": (2, 1),
    "global_window": (2, 2),
    "global_window_causal": (2, 1),
    "dilated_window": (9, 9),  # 2 * (half floordiv dilation) + 1, half 8, dilation 2
    "document": (1, 1),
    "causal_document": (1, 1),
    "packed_cross": (1, 1),
    "shared_prompt": (2, 1),
    "causal_blockwise": (1, 2),
    "qk_sparse": (1, 1),
    "hstu": (2, 1),
    "hstu_meta": (2, 3),
    "block_causal": (1, 1),
    "chunked": (1, 1),
    "block_diffusion": (2, 2),
    "frame_causal": (1, 1),
    "gemma3": (1, 1),
    "flamingo": (1, 1),
    "flamingo_any_order": (None, 1),
    "clear": (32, 32),  # min(2 * radius - 1, height) + 1, radius 16, height 64
    "natten_2d": (7, 10),  # 2 * half + 1 and 3 * half + 1, half 3
    "sliding_tile_2d": (3, 4),
    "tree_dfs": (5, 1),
    "tree_any_order": (5, None),
    "topk_blocks": (4, None),  # 3 blocks and the window
    "bigbird": (6, None),  # the first, the last, the band, 3 random blocks
    "vertical_slash": (8, 4),  # verticals + slashes; at most as many: a vertical's rows hold the slashes'
    "random_eviction": (None, 1),
    "key_holes": (None, 1),
    "strided": (None, None),
}

# Statics that make lengths small and every static matter; grids fix their lengths.
STATICS: dict[str, list[dict[str, int]]] = {
    "window_hf": [{"window": 1}, {"window": 5}],
    "window_attention_gym": [{"window": 0}, {"window": 5}],
    "window_flash": [{"left": 3, "right": 0}, {"left": 4, "right": 2}],
    "window_two_sided": [{"half": 0}, {"half": 3}],
    "sinks_window": [{"window": 5, "sinks": 2}, {"window": 1, "sinks": 0}],
    "global_window": [{"left": 3, "right": 2, "globals": 4}],
    "global_window_causal": [{"left": 3, "globals": 4}],
    "dilated_window": [{"half": 4, "dilation": 2}, {"half": 7, "dilation": 3}],
    "hstu_meta": [
        {"context": 3, "window": 7, "full": 4},
        {"context": 0, "window": 5, "full": 0},
        {"context": 2, "window": 0, "full": 3},
    ],
    "block_causal": [{"block": 5}],
    "chunked": [{"chunk": 6}],
    "block_diffusion": [{"block": 4}],
    "frame_causal": [{"frame": 7}],
    "gemma3": [{"window": 4}],
    "flamingo": [{"image": 5}],
    "flamingo_any_order": [{"image": 5}],
    "clear": [
        {"radius": 3, "height": 5, "width": 7, "text": 4},
        {"radius": 5, "height": 3, "width": 8, "text": 0},
    ],
    "natten_2d": [{"half": 1, "height": 6, "width": 5}, {"half": 2, "height": 5, "width": 7}],
    "sliding_tile_2d": [{"tokens": 2, "tiles_y": 5, "tiles_x": 3}],
    "topk_blocks": [{"block": 4, "window": 3}],
    "bigbird": [{"block": 3}],
    "strided": [{"stride": 5}],
    "vertical_slash": [{"verticals": 2, "slashes": 2}, {"verticals": 1, "slashes": 3}],
}
SMALL = [(name, statics) for name in zoo.NAMES for statics in STATICS.get(name, [{}])]
IDS = [name + "".join(f"-{v}" for v in statics.values()) for name, statics in SMALL]


def text(name: str, statics: dict[str, int]) -> str:
    """The text of a mask with other values for its statics."""
    out = zoo.path(name).read_text()
    for static, value in statics.items():
        out, count = re.subn(rf"%{static}: index = \d+", f"%{static}: index = {value}", out)
        assert count == 1
    return out
