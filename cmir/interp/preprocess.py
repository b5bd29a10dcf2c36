"""What kernels mean, in NumPy: slots, schedules and status of a preprocess kernel, the mask of an attention kernel.

`env` gives `rows`, `cols` and every scalar as an integer and every table as a `TableValue`. Nothing here shares code
with the passes or with the kernels: these functions are what both are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter, PythonValues, ReturnedValues, impl, impl_terminator, register_impls
from xdsl.ir import Region

from cmir.dialects.attention import SCHEDULE, KernelOp
from cmir.dialects.descriptor import EndpointsOp, FirstOp, HoldsOp, LengthOp, PreprocessOp
from cmir.interp.domain import NumpyDomain, TableValue, Value
from cmir.interp.masks import paint
from cmir.interp.rule import RuleFunctions

if TYPE_CHECKING:
    import numpy as np

EMPTY, PARTIAL, FULL = 0, 1, 2

NO_INDEX = 0xFFFFFFFF
"""What stands for the index in the status word of a broken fact about scalars."""


@register_impls
class PreprocessFunctions(RuleFunctions):
    """The meaning of the ops of a preprocess kernel: those of rules, and the ones of the `descriptor` dialect."""

    @impl(FirstOp)
    def run_first(self, interpreter: Interpreter, op: FirstOp, args: PythonValues) -> PythonValues:
        """A binary search that halves as the kernel's does: so the answers agree even where broken facts spoil it."""
        import numpy as np

        lo, hi = args
        low, high = np.broadcast_arrays(lo, np.maximum(lo, hi), self.env["here"])[:2]
        for _ in range(int(np.max(high - low, initial=0)).bit_length()):
            middle = (low + high) // 2
            (holds,) = interpreter.run_ssacfg_region(op.body, (middle,), "first")
            searching, found = low < high, (low < high) & holds
            low, high = np.where(searching & ~found, middle + 1, low), np.where(found, middle, high)
        return (np.where(lo < hi, low, hi),)

    @impl(LengthOp)
    def run_length(self, interpreter: Interpreter, op: LengthOp, args: PythonValues) -> PythonValues:
        return (self.domain.const(len(args[0].values)),)

    @impl_terminator(EndpointsOp)
    def run_endpoints(self, interpreter: Interpreter, op: EndpointsOp, args: PythonValues) -> tuple[Any, PythonValues]:
        return ReturnedValues(args), ()

    @impl_terminator(HoldsOp)
    def run_holds(self, interpreter: Interpreter, op: HoldsOp, args: PythonValues) -> tuple[Any, PythonValues]:
        return ReturnedValues(args), ()


def _run(preprocess: PreprocessOp, body: Region, index: Sequence[np.ndarray], env: Mapping[str, Value]) -> PythonValues:
    """What the code of a slots, hull, pair or fact op returns at every index."""
    interpreter = Interpreter(ModuleOp([]))
    here = {"here": index[0]} if index else {}
    interpreter.register_implementations(PreprocessFunctions(NumpyDomain(), {**env, **here}))
    interpreter.set_values(zip(preprocess.body.block.args, (env[n.data] for n in preprocess.names), strict=True))
    return interpreter.run_ssacfg_region(body, tuple(index), preprocess.sym_name.data)


def slot_table(preprocess: PreprocessOp, axis: str, env: Mapping[str, Value]) -> np.ndarray:
    """int32 [slots, 2, n]: lo and hi of every slot at every row (column); the axis is bounded."""
    import numpy as np

    if axis == "cols" and preprocess.symmetric is not None and env["rows"] == env["cols"]:
        axis = "rows"
    slots = preprocess.slots_of(axis)
    assert slots is not None, f"unbounded by {axis}"
    index = np.arange(int(env[axis]), dtype=np.int64)
    ends = _run(preprocess, slots.body, [index], env)
    table = np.zeros((len(ends) // 2, 2, len(index)), dtype=np.int32)
    for k, end in enumerate(ends):
        table[k // 2, k % 2] = end
    return table


def status_word(preprocess: PreprocessOp, env: Mapping[str, Value]) -> int:
    """0 if all facts hold, else the least (number of a broken fact) << 32 | (row, column or entry where it breaks)."""
    import numpy as np

    entries = [len(v.values) for n, kind in preprocess.kinds if kind == "free" and isinstance(v := env[n], TableValue)]
    lengths = {"scalar": 1, "row": int(env["rows"]), "col": int(env["cols"]), "entry": max(entries, default=0)}
    words: list[int] = []
    for fact in preprocess.facts:
        index = np.arange(lengths[fact.over.data], dtype=np.int64)
        (holds,) = _run(preprocess, fact.body, [index] if fact.body.block.args else [], env)
        broken = np.flatnonzero(~np.broadcast_to(holds, index.shape))
        if len(broken):
            words.append(fact.number.data << 32 | (NO_INDEX if fact.over.data == "scalar" else int(broken[0])))
    return min(words, default=0)


def pair_mask(preprocess: PreprocessOp, env: Mapping[str, Value], tile: tuple[int, int] = (128, 128)) -> np.ndarray:
    """bool [rows, cols]: what the preprocess kernel of a mask that is tested by bits finds visible.

    It asks about the columns of tiles that the hull of a row of their tile touches, and takes all others as unseen.
    """
    import numpy as np

    hull, pair = preprocess.hull, preprocess.pair
    assert hull is not None and pair is not None, "tested by bits"
    rows, cols = int(env["rows"]), int(env["cols"])
    i, j = np.arange(rows, dtype=np.int64), np.arange(cols, dtype=np.int64)
    (holds,) = _run(preprocess, pair.body, [i[:, None], j[None, :]], env)
    mask = np.broadcast_to(holds, (rows, cols)).copy()
    lo, hi = (np.broadcast_to(end, rows) for end in _run(preprocess, hull.body, [i], env))
    for first in range(0, rows, tile[0]):
        part = slice(first, first + tile[0])
        some = lo[part] < hi[part]
        lowest, highest = (int(ends[part][some].min()) if some.any() else 0 for ends in (lo, -hi))
        mask[part, : lowest // tile[1] * tile[1]] = False
        mask[part, -(highest // tile[1]) * tile[1] :] = False
    return mask


def bit_words(preprocess: PreprocessOp, env: Mapping[str, Value], tile: tuple[int, int] = (128, 128)) -> np.ndarray:
    """int32 [rows in tiles, ceil(columns in tiles / 32)]: bit j % 32 of word (i, j // 32): row i sees column j."""
    import numpy as np

    mask = pair_mask(preprocess, env, tile)
    rows, cols = (-(-length // size) * size for length, size in zip(mask.shape, tile, strict=True))
    words = -(-cols // 32)
    bits = np.zeros((rows, words * 32), dtype=np.uint32)
    bits[: mask.shape[0], : mask.shape[1]] = mask
    packed = (bits.reshape(rows, words, 32) << np.arange(32, dtype=np.uint32)).sum(axis=2, dtype=np.uint32)
    return packed.view(np.int32)


def tile_states(
    preprocess: PreprocessOp, schedule: str, env: Mapping[str, Value], tile: tuple[int, int] = (128, 128)
) -> np.ndarray:
    """int32 [row tiles, column tiles]: EMPTY, PARTIAL or FULL, as the schedule of an axis lists the tiles.

    They are counted from the slots of that axis, or of the other one where it is unbounded; from the pairs where the
    mask is tested by bits. Full is a tile whose every row below `rows` sees all columns of the tile, which all exist;
    rows past the last do not count.
    """
    import numpy as np

    if preprocess.pair is not None:
        mask = pair_mask(preprocess, env, tile)
        padded = np.zeros([-(-n // size) * size for n, size in zip(mask.shape, tile, strict=True)], dtype=bool)
        padded[: mask.shape[0], : mask.shape[1]] = mask
        m, n = (length // size for length, size in zip(padded.shape, tile, strict=True))
        pairs = padded.reshape(m, tile[0], n, tile[1]).sum(axis=(1, 3))
        return _states(pairs, mask.shape[0], tile)
    axis = schedule if preprocess.slots_of(schedule) is not None else "cols" if schedule == "rows" else "rows"
    lengths = int(env["rows"]), int(env["cols"])
    fixed, moving = (0, 1) if axis == "rows" else (1, 0)
    tiles = [-(-length // size) for length, size in zip(lengths, tile, strict=True)]
    lo, hi = slot_table(preprocess, axis, env).transpose(1, 0, 2)[..., None].astype(np.int64)
    start = np.arange(tiles[moving]) * tile[moving]
    seen = np.maximum(np.minimum(hi, start + tile[moving]) - np.maximum(lo, start), 0).sum(axis=0)
    pairs = np.zeros((tiles[fixed], tiles[moving]), dtype=np.int64)
    np.add.at(pairs, np.arange(lengths[fixed]) // tile[fixed], seen)
    return _states(pairs if axis == "rows" else pairs.T, lengths[0], tile)


def _states(pairs: np.ndarray, rows: int, tile: tuple[int, int]) -> np.ndarray:
    """The state of each tile from the number of its visible pairs, [row tiles, column tiles]."""
    import numpy as np

    valid = np.minimum(rows - np.arange(len(pairs)) * tile[0], tile[0])[:, None]
    return np.where(pairs == 0, EMPTY, np.where(pairs == valid * tile[1], FULL, PARTIAL)).astype(np.int32)


@dataclass(frozen=True)
class TileLists:
    """The schedule of an axis: `<axis>_count`, `<axis>_index` and `<axis>_order` of a descriptor of one mask."""

    count: np.ndarray
    """int64 [lines of tiles, 2]: how many partial and how many full tiles a line has."""
    index: np.ndarray
    """int64 [lines of tiles, tiles]: partial tiles from the front, ascending; full ones at the back, in any order, here
    ascending; -1 between them, where the memory of a descriptor is undefined."""
    order: np.ndarray
    """int64 [lines of tiles]: the lines by the tiles that they list, most first, ties by number."""


def tile_lists(states: np.ndarray) -> TileLists:
    """The schedule of tiles in these states, [lines, tiles]: `tile_states` for rows, its transpose for columns."""
    import numpy as np

    count = np.stack([(states == PARTIAL).sum(axis=1), (states == FULL).sum(axis=1)], axis=1)
    place = np.array([1, 0, 2])  # empty tiles, of which none is listed, between partial and full ones
    index = np.argsort(place[states], axis=1, kind="stable")
    index[np.take_along_axis(states, index, axis=1) == EMPTY] = -1
    return TileLists(count, index, np.argsort(-count.sum(axis=1), kind="stable"))


def kernel_mask(
    kernel: KernelOp, preprocess: PreprocessOp, env: Mapping[str, Value], tile: tuple[int, int] = (128, 128)
) -> np.ndarray:
    """bool [rows, cols]: the pairs that an attention kernel computes with.

    Tiles that its schedule does not list are invisible, full ones visible without a test; in partial tiles a pair is
    visible if the slots that the kernel tests say so: all of them (`unrolled`), or from the first to the last that
    touches the tile (`live`); or if its bit is set (`bits`).
    """
    import numpy as np

    visible = kernel.visible
    axis, count = visible.table or ("rows", 0)
    by_row = axis == "rows"
    words = bit_words(preprocess, env, tile) if visible.table is None else None
    table = slot_table(preprocess, axis, env)[:count] if words is None else None
    states = tile_states(preprocess, SCHEDULE[kernel.role.data], env, tile)  # pyright: ignore[reportArgumentType]
    mask = np.zeros((int(env["rows"]), int(env["cols"])), dtype=bool)
    for m, n in np.ndindex(*states.shape):
        rows, cols = (slice(k * size, (k + 1) * size) for k, size in zip((m, n), tile, strict=True))
        part = mask[rows, cols]
        if states[m, n] == FULL:
            part[:] = True
        elif states[m, n] == PARTIAL and words is not None:
            column = np.arange(part.shape[1], dtype=np.int64) + cols.start
            part[:] = words[rows, column // 32][: part.shape[0]] >> (column % 32) & 1
        elif states[m, n] == PARTIAL and table is not None:
            lines, start = (rows, cols.start) if by_row else (cols, rows.start)
            slots = table[:, :, lines] - start
            seen = _tested(slots, part.shape[1 if by_row else 0], visible.mode.data)
            part[:] = seen if by_row else seen.T
    return mask


def _tested(slots: np.ndarray, width: int, mode: str) -> np.ndarray:
    """bool [lines, width]: what the slots, relative to the tile, say of it."""
    import numpy as np

    if mode == "live":
        live = np.flatnonzero(((slots[:, 0] < slots[:, 1]) & (slots[:, 0] < width) & (slots[:, 1] > 0)).any(axis=1))
        slots = slots[live[0] : live[-1] + 1] if len(live) else slots[:0]
    return paint(slots, width)
