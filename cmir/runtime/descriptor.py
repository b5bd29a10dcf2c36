"""The Execution Descriptor: what attention kernels read of a mask, and the launch that builds it."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import torch

from cmir.errors import CmirError, MetadataError
from cmir.runtime.launch import (
    Ready,
    current_stream,
    form,
    launch,
    on_device,
    require_backend,
    zeros_to_return,
)
from cmir.runtime.metadata import PackedMetadata, form_of, pack
from cmir.signature import Signature

if TYPE_CHECKING:
    from cmir.runtime.layout import Tokens

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from cmir.runtime.fa4 import Fa4Mask

TILES = (16, 32, 64, 128)
"""Tile sizes that the preprocess kernels are made for."""

MAX_SLOTS = 4095
"""Most slots of a table: a live word has 12 bits for one."""

MAX_BITS = 2**32
"""Most bytes of packed bits in one descriptor: 4 GiB, a mask of about 185,000 rows and columns."""

BITS_WARPS = 4
"""Warps of a program that asks a mask pair by pair."""

_ALIGNMENT = 32
"""Of each tensor in the allocation, in int32: pointers are aligned whatever the lengths, so kernels never recompile."""


Reach = tuple[int | None, int | None]
"""Most column tiles that a row tile touches and most row tiles that a column tile touches, where that is known."""

OVERFLOW = 0x7FFFFFFE
"""In place of a fact's number in a status word: a list of tiles was too short."""


class _View:
    """A tensor of a descriptor: a view of its memory, made when it is first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, descriptor: Descriptor, owner: type) -> torch.Tensor:
        return descriptor.view(self.name)


class Descriptor:
    """A mask for given metadata: Z masks (the product of `batch`) of `rows` x `cols`, in tiles of `tile`.

    With TM, TN the number of row and column tiles, for rows (for columns swap M and N):

    - `row_table` int32 [Z, K, 2, M]: the visible columns of a row are the K intervals [lo, hi); None if unbounded or
      not tested. Of a symmetric mask the column table is the row table, the same memory.
    - `row_count` int32 [Z, TM, 2]: number of partial and of full tiles in each row of tiles.
    - `row_index` int32 [Z, TM, W]: partial tile ids from the front, full ones at the back, the rest undefined. W is
      `widths[0]`: TN, or fewer where a tile row is known to touch fewer.
    - `row_live` int32 [Z, TM, W]: first live slot | end << 12 | most a line meets << 24 of each
      partial tile, of the table that the schedule's kernels test (one entry if not asked for).
    - `row_order` int32 [Z, TM]: tile rows by listed tiles, most first.
    - `row_state` int32 [Z, TM, ceil(TN / 16)]: two bits a tile: 0 empty, 1 partial, 2 full.

    A mask that is tested by bits has no table but `bits`, int32 [Z, rows in tiles, ceil(columns in tiles / 32)]: bit
    j % 32 of word (i, j // 32) says whether row i sees column j. Only words of partial tiles mean something.

    `area` int64 [Z] is the number of visible pairs; `status` int64 [Z] is 0, or (number of the broken fact) << 32 |
    where; `check()` reads it. All are views of `memory`. Made by `build`; not to be changed.
    """

    row_state = _View()
    row_count = _View()
    row_index = _View()
    row_live = _View()
    row_order = _View()
    col_state = _View()
    col_count = _View()
    col_index = _View()
    col_live = _View()
    col_order = _View()
    area = _View()
    status = _View()

    def __init__(
        self,
        memory: torch.Tensor,
        layout: Layout,
        rows: int,
        cols: int,
        tile: tuple[int, int],
        batch: tuple[int, ...],
        signature: Signature,
        module: Any,
        header: torch.Tensor | None = None,
    ) -> None:
        self.memory = memory
        self.header = header
        """int64, on the CPU: what `from_header` makes a descriptor of, given the memory. None: not made by a plan."""
        self.rows, self.cols, self.tile = rows, cols, tile
        self.batch = batch
        """(): one mask for all; (B,): one per sequence; (B, H): one per sequence and head."""
        self.signature = signature
        self.module = module
        """The generated module, whose attention kernels fit this descriptor."""
        self.layout = layout
        self._views: dict[str, torch.Tensor] = {}
        self.explain: Callable[[Descriptor, int, int, int], str] | None = None
        """What is said of a broken fact (its number, the place, the mask) beside its text; None: not made by a mask."""
        self.tokens: Tokens | None = None
        """Of a mask with a layout, the token at every place of its rows and columns."""

    def view(self, name: str) -> torch.Tensor:
        """The tensor of that name in the memory."""
        found = self._views.get(name)
        if found is None:
            place = self.layout.places[name]
            base = self.memory.view(torch.int64) if place.wide else self.memory
            found = self._views[name] = base.as_strided(place.shape, place.strides, place.offset)
        return found

    @property
    def row_table(self) -> torch.Tensor | None:
        return self.view("row_table") if self.signature.row_slots else None

    @property
    def col_table(self) -> torch.Tensor | None:
        return self.view("col_table") if self.signature.col_slots else None

    @property
    def bits(self) -> torch.Tensor | None:
        return self.view("bits") if self.signature.bits else None

    @property
    def masks(self) -> int:
        return math.prod(self.batch)

    @property
    def device(self) -> torch.device:
        return self.memory.device

    @property
    def widths(self) -> tuple[int, int]:
        """Room in the list of a tile row, and in that of a tile column."""
        return self.layout.widths

    @property
    def mask_strides(self) -> tuple[int, int]:
        """(zb, zh): sequence b and head h read mask b * zb + h * zh; 0 where a mask is shared."""
        sequences, heads = (*self.batch, 1, 1)[:2]
        return (heads if sequences > 1 else 0, 1 if heads > 1 else 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the one allocation that all tensors of the descriptor are views of."""
        return self.memory.nbytes

    def check(self) -> Descriptor:
        """Raises MetadataError if the metadata break a declared fact of the mask, or a free table lacks an entry that
        the rule reads: which, where first, what was found there, and where the fact was declared.

        Waits for the preprocess kernel, the only thing here that does. Returns the descriptor.
        """
        if self.tokens is not None:
            self.tokens.check(self.signature.name)
        status = self.status.cpu()
        for mask in status.nonzero()[:1]:
            word = int(status[mask])
            if word >> 32 == OVERFLOW:
                raise MetadataError(
                    f"mask {self.signature.name!r}: tile {word & 0xFFFFFFFF} of the rows or columns touches more tiles "
                    f"than its list has room for, {self.widths}: a sequence is longer than max_seqlen"
                )
            number, index = word >> 32, word & 0xFFFFFFFF
            fact = self.signature.facts[number - 1]
            where = {"scalar": "", "row": " at row {}", "col": " at column {}", "entry": " at entry {}"}[fact.over]
            which = f" of mask {int(mask)}" if self.batch else ""
            if len(self.batch) == 2:
                which += " (sequence {}, head {})".format(*divmod(int(mask), self.batch[1]))
            values = "" if self.explain is None else self.explain(self, number, index, int(mask))
            raise MetadataError(
                f"mask {self.signature.name!r}: the metadata{which} break the {'declared ' * fact.declared}fact "
                f"`{fact.text}`{where.format(index)}{values}"
            )
        return self

    @property
    def permutation(self) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The token at every place of rows and columns, int32 [rows] and [cols]; None for an axis in its own order."""
        return (None, None) if self.tokens is None else (self.tokens.rows, self.tokens.cols)

    def permute(self, x: torch.Tensor, axis: Literal["rows", "cols"] = "rows", dim: int = -2) -> torch.Tensor:
        """`x` with the tokens along `dim` put into the mask's layout; differentiable.

        A model that does this to its input once and `unpermute`s its output keeps all its layers in the layout. Along a
        shard `x` has all tokens, and the result those of the shard.
        """
        return x if self.tokens is None else self.tokens.permute(x, axis, dim)

    def unpermute(self, x: torch.Tensor, axis: Literal["rows", "cols"] = "rows", dim: int = -2) -> torch.Tensor:
        """The inverse of `permute`: back into the order of the tokens; differentiable. Not of a shard."""
        return x if self.tokens is None else self.tokens.unpermute(x, axis, dim)

    def to_dense(self) -> torch.Tensor:
        """The mask as scaled_dot_product_attention takes it: bool [B or 1, H or 1, rows, cols], True where visible.

        Read from the table or the bits, not from the rule. For looking at and for other engines: it takes rows * cols
        bytes a mask. Rows that see nothing are NaN in PyTorch's attention.
        """
        from cmir.runtime.engines import to_dense

        return to_dense(self)

    to_sdpa = to_dense

    def to_block_mask(self) -> BlockMask:
        """The mask as FlexAttention takes it: blocks from the tile lists, a mask_mod that reads the table or the bits.

        No predicate is evaluated over pairs to build it. Blocks are the descriptor's tiles; FlexAttention's compiled
        kernels take those of 128 x 128.
        """
        from cmir.runtime.engines import to_block_mask

        return to_block_mask(self)

    def to_fa4(self) -> Fa4Mask:
        """The mask as FlashAttention 4's `flash_attn.cute.flash_attn_func` takes it: `**desc.to_fa4().arguments()`.

        Block lists of both passes from the tile lists, and a mask_mod in CuTe that reads the table or the bits. Blocks
        are the descriptor's tiles: 128 x 128 for its kernels on Hopper. Only `arguments` and `mask_mod` import it.
        """
        from cmir.runtime.fa4 import to_fa4

        return to_fa4(self)

    def __repr__(self) -> str:
        return (
            f"Descriptor({self.signature.name!r}, rows={self.rows}, cols={self.cols}, tile={self.tile}, "
            f"batch={self.batch}, device={str(self.device)!r}, nbytes={self.nbytes})"
        )


def build(
    module: Any,
    signature: Signature,
    rows: int,
    cols: int | None,
    metadata: Mapping[str, Any],
    tile: tuple[int, int] = (128, 128),
    device: torch.device | str | None = None,
    live: tuple[bool, bool] = (False, False),
    reach: Reach = (None, None),
) -> Descriptor:
    """Launches the preprocess kernel of the generated `module`; no host synchronisation, CUDA-graph capturable.

    `cols` None means as many as `rows`. `live` says for which schedules (rows, columns) the live slots of partial tiles
    are stored. They are those of the schedule's own table, or of the other table where its own axis is unbounded.
    `reach` is how many tiles a tile row (a tile column) touches at most, None if that is not known: lists have room
    for as many, and the status word says if it was not enough. A schedule that is derived from the other has room for
    all.
    Raises MetadataError for metadata that do not fit `signature`, CmirError for a device that cannot run the kernel.
    """
    cols = rows if cols is None else cols
    packed = pack(signature, rows, cols, metadata, device)
    return make_plan(module, signature, rows, cols, packed, tile, live, reach).build(packed.arguments)


def make_plan(
    module: Any,
    signature: Signature,
    rows: int,
    cols: int,
    packed: PackedMetadata,
    tile: tuple[int, int],
    live: tuple[bool, bool],
    reach: Reach = (None, None),
) -> Plan:
    """What `build` works out and checks once its metadata are packed. Raises what `build` raises."""
    if any(type(size) is not int or size not in TILES for size in tile):
        raise MetadataError(f"mask {signature.name!r}: expected a tile of two of {TILES}; got {tile}")
    require_backend(packed.device)
    row_slots, col_slots = signature.row_slots or 0, signature.col_slots or 0
    if max(row_slots, col_slots) > MAX_SLOTS:
        most = max(row_slots, col_slots)
        raise CmirError(f"mask {signature.name!r} has {most} slots; kernels take at most {MAX_SLOTS}")
    if 2 * row_slots * rows >= 2**31 or 2 * col_slots * cols >= 2**31:
        raise MetadataError(
            f"mask {signature.name!r}: an interval table of {max(row_slots * rows, col_slots * cols)} intervals a mask "
            f"is too large; expected rows and cols such that it has less than {2**30}"
        )
    bits = signature.bits
    transposed = "col" if bits else {(0, col_slots): "row", (row_slots, 0): "col"}.get((row_slots, col_slots))
    if transposed and any(live):
        live = (True, True)  # the derived schedule copies its slots from the other one
    tiles = -(-rows // tile[0]), -(-cols // tile[1])
    widths = (
        tiles[1] if reach[0] is None or transposed == "row" else max(1, min(tiles[1], reach[0])),
        tiles[0] if reach[1] is None or transposed == "col" else max(1, min(tiles[0], reach[1])),
    )
    layout = _layout(packed.masks, rows, cols, tile, signature, live, widths)
    if bits and (size := 4 * math.prod(layout.places["bits"].shape)) > MAX_BITS:
        raise MetadataError(
            f"mask {signature.name!r} is tested by bits, one a pair: {packed.masks} of {rows} x {cols} take "
            f"{size / 2**30:.1f} GiB; expected at most {MAX_BITS / 2**30:.0f} GiB a descriptor"
        )
    return Plan(
        module=module,
        signature=signature,
        rows=rows,
        cols=cols,
        tile=tile,
        batch=packed.batch,
        device=packed.device,
        entries=packed.entries,
        places=packed.places,
        between=tuple(None if place in packed.places else value for place, value in enumerate(packed.arguments)),
        layout=layout,
        constants={
            "ROW_SLOTS": row_slots,
            "COL_SLOTS": col_slots,
            "TILE_M": tile[0],
            "TILE_N": tile[1],
            "ROW_LIVE": live[0],
            "COL_LIVE": live[1],
            "BITS": bits,
            "SHARED": layout.shared,
        },
        options={"num_warps": BITS_WARPS if bits else 4},
        transposed=transposed,
    )


def form_of_call(
    rows: object,
    cols: object,
    device: torch.device | str | None,
    tile: Sequence[int] | None,
    metadata: Mapping[str, Any],
) -> tuple[object, ...] | None:
    """Of the arguments of `describe`, all that its launch depends on but values of metadata; None if they need a look.

    Where no tensor says it, the current device is part of it.
    """
    form = form_of(metadata)
    plain = type(rows) is int and (cols is None or type(cols) is int)
    # 16.0 is another key than 16 only if it is none at all.
    plain = plain and (tile is None or (isinstance(tile, tuple) and set(map(type, tile)) == {int}))
    if form is None or not plain or not (device is None or type(device) in (str, torch.device)):
        return None
    current = torch.cuda.current_device() if torch.cuda.is_initialized() else None
    return (rows, cols, device, cast("object", tile), current, *form)


@dataclass(frozen=True, eq=False)
class Plan:
    """All about a launch of the preprocess kernel that does not depend on the values of the metadata."""

    module: Any
    signature: Signature
    rows: int
    cols: int
    tile: tuple[int, int]
    batch: tuple[int, ...]
    device: torch.device
    entries: int
    places: tuple[int, ...]
    between: tuple[torch.Tensor | int | bool | None, ...]
    """The packed arguments, None at the `places` of the metadata themselves."""
    layout: Layout
    constants: Mapping[str, int]
    options: Mapping[str, int]
    """Of the launch: warps."""
    transposed: str | None
    """The axis whose schedule is derived from the other's."""
    _ready: dict[tuple[object, ...], Ready] = field(default_factory=dict["tuple[object, ...]", Ready])
    """What has been launched, by the forms of the metadata; of the kernel that derives an axis, by its name."""

    @functools.cached_property
    def header(self) -> torch.Tensor:
        """What descriptors of this plan say about their memory, as a tensor: compiled graphs take nothing else."""
        live = (self.constants["ROW_LIVE"], self.constants["COL_LIVE"])
        numbers = (
            _number_of(self.module, self.signature),
            self.rows,
            self.cols,
            *self.tile,
            *self.layout.widths,
            *live,
            *self.batch,
        )
        return torch.tensor(numbers, dtype=torch.int64)

    def build(self, arguments: Sequence[torch.Tensor | int | bool]) -> Descriptor:
        """Launches the kernel with packed metadata."""
        layout, device = self.layout, self.device
        with on_device(device):
            count = layout.places["counters"].shape[0]
            counters = zeros_to_return(count, device)
            if counters is None:
                memory = counters = torch.empty(layout.size, dtype=torch.int32, device=device)
                memory[:count].zero_()
            else:
                memory = torch.empty(layout.size, dtype=torch.int32, device=device)
            lengths = (self.rows, self.cols, *layout.widths, self.entries)
            # Only values of metadata differ between the calls of a plan, and where its tensors lie.
            addresses = [x.data_ptr() if isinstance(x, torch.Tensor) else x for x in arguments]
            key = tuple(
                addresses[place] % 16 if isinstance(arguments[place], torch.Tensor) else form(arguments[place])
                for place in self.places
            )
            if (ready := self._ready.get(key)) is not None:
                every = (memory.data_ptr(), *lengths, counters.data_ptr(), *addresses)
                ready(layout.grid, current_stream(device), every)
            else:
                every = (memory, *lengths, counters, *arguments)
                launched = launch(self.module.preprocess, layout.grid, every, self.constants, self.options, device)
                if launched is not None:
                    self._ready[key] = launched
            descriptor = Descriptor(
                memory, layout, self.rows, self.cols, self.tile, self.batch, self.signature, self.module, self.header
            )
            if self.transposed:
                self._transpose(descriptor, counters, self.transposed)
        return descriptor

    def _transpose(self, descriptor: Descriptor, counters: torch.Tensor, to: str) -> None:
        """Launches the kernel that derives the schedule of axis `to` from that of the other axis."""
        source = "col" if to == "row" else "row"
        places = self.layout.places
        (masks, tiles), source_tiles = places[f"{to}_order"].shape, places[f"{source}_order"].shape[1]
        if not tiles:
            return
        # As the preprocess kernel cuts them: 3 arrivals a mask, 1 of this, bins of rows, then of columns.
        cuts = (4 * masks + (0 if to == "row" else masks * (tiles + 1)), 3 * masks)
        names = [f"{source}_{field}" for field in ("state", "count", "index", "live")]
        names += [f"{to}_{field}" for field in ("state", "count", "index", "live", "order")]
        numbers = (tiles, source_tiles, self.layout.widths[0 if source == "row" else 1])
        grid = (tiles, masks, 1)
        if (ready := self._ready.get((to,))) is not None:
            memory, zeros = descriptor.memory.data_ptr(), counters.data_ptr()
            addresses = [memory + 4 * places[name].offset for name in names] + [zeros + 4 * cut for cut in cuts]
            ready(grid, current_stream(self.device), (*addresses, *numbers))
            return
        tensors = [*map(descriptor.view, names), *(counters[cut:] for cut in cuts)]
        constants = {"LIVE": bool(self.constants["ROW_LIVE"])}
        launched = launch(descriptor.module.transpose_schedule, grid, (*tensors, *numbers), constants, {}, self.device)
        if launched is not None:
            self._ready[to,] = launched

    def build_from(self, metadata: Mapping[str, Any]) -> Descriptor:
        """`build` for metadata of the very form that the plan was made for."""
        arguments: list[Any] = list(self.between)
        for parameter, place in zip(self.signature.parameters, self.places, strict=True):
            arguments[place] = metadata[parameter.name]
        return self.build(arguments)


_kernels: dict[int, tuple[Any, Signature]] = {}
"""Modules and signatures by the numbers that headers have for them; masks live as long as the process."""


@functools.cache
def _number_of(module: Any, signature: Signature) -> int:
    """A number for the module, whose name says its text, and the signature, which is another's in no other process:
    torch.export keeps headers."""
    digest = hashlib.sha256(f"{getattr(module, '__name__', '')}\0{signature!r}".encode()).digest()
    number = int.from_bytes(digest[:7], "big")
    while _kernels.setdefault(number, (module, signature)) != (module, signature):  # a module that has no such name
        number += 1
    return number


def from_header(memory: torch.Tensor, header: torch.Tensor) -> Descriptor:
    """The descriptor that has this memory and header.

    Raises:
        CmirError: it is of a mask that no descriptor was made for in this process.
    """
    numbers: list[int] = header.numpy().tolist()
    kernels, rows, cols, m, n, row_width, col_width, row_live, col_live, *batch = numbers
    if kernels not in _kernels:
        raise CmirError(
            "desc: this process has no kernels for the descriptor; an exported program has a descriptor's memory, but "
            "not its kernels: describe that mask here first, with the same cmir, triton and Python, and run it then"
        )
    module, signature = _kernels[kernels]
    live, widths = (bool(row_live), bool(col_live)), (row_width, col_width)
    layout = _layout(math.prod(batch), rows, cols, (m, n), signature, live, widths)
    return Descriptor(memory, layout, rows, cols, (m, n), tuple(batch), signature, module, header)


_INT64 = ("area", "status", "parts")


class Place(NamedTuple):
    """Where a tensor lies: `offset` and `strides` in its own elements, `wide` if they are int64."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    wide: bool


@dataclass(frozen=True, eq=False)
class Layout:
    """How one int32 allocation of `size` is cut, for a launch of `grid`. The `counters`, at its head, must be zero."""

    size: int
    places: Mapping[str, Place]
    grid: tuple[int, int, int]
    widths: tuple[int, int]
    shared: bool
    """Whether the tables of both axes are one."""


@functools.lru_cache(maxsize=256)
def _layout(
    masks: int,
    rows: int,
    cols: int,
    tile: tuple[int, int],
    signature: Signature,
    live: tuple[bool, bool],
    widths: tuple[int, int],
) -> Layout:
    """The cut that the preprocess kernel makes too: the same tensors, in this order."""
    row_slots, col_slots, bits = signature.row_slots or 0, signature.col_slots or 0, signature.bits
    shared = signature.symmetric and rows == cols
    m, n = -(-rows // tile[0]), -(-cols // tile[1])
    programs = max(1, m + n)
    shapes: dict[str, tuple[int, ...]] = {
        "counters": (masks * (4 + (n + 1) + (m + 1)),),
        "area": (masks,),
        "status": (masks,),
        "parts": (masks, 2, programs),
        "row_table": (masks, row_slots, 2, rows),
        "col_table": (1,) if shared else (masks, col_slots, 2, cols),
        "bits": (masks, m * tile[0], -(-n * tile[1] // 32)) if bits else (1,),
    }
    sides = (("row", m, n, widths[0], live[0]), ("col", n, m, widths[1], live[1]))
    for axis, tiles, others, width, has_live in sides:
        shapes[f"{axis}_state"] = (masks, tiles, -(-others // 16))
        shapes[f"{axis}_count"] = (masks, tiles, 2)
        shapes[f"{axis}_index"] = (masks, tiles, width)
        shapes[f"{axis}_live"] = (masks, tiles, width) if has_live else (1,)
        shapes[f"{axis}_order"] = (masks, tiles)
    size = 0
    places: dict[str, Place] = {}
    for name, shape in shapes.items():
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        words = 2 if name in _INT64 else 1
        places[name] = Place(shape, strides, size // words, words == 2)
        # An empty tensor gets memory too: its pointer is an argument like any other.
        size += -(-max(1, words * math.prod(shape)) // _ALIGNMENT) * _ALIGNMENT
    if shared:
        places["col_table"] = places["row_table"]
    return Layout(size, places, (programs, masks, 1), widths, shared)
