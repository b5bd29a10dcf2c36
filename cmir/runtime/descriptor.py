"""The Execution Descriptor: what attention kernels read of a mask, and the launch that builds it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from cmir.errors import MetadataError
from cmir.runtime.launch import on_device, require_backend
from cmir.runtime.metadata import pack
from cmir.signature import Signature

TILES = (16, 32, 64, 128)
"""Tile sizes that the preprocess kernels are made for."""

_ALIGNMENT = 32
"""Of each tensor in the allocation, in int32: pointers are aligned whatever the lengths, so kernels never recompile."""


@dataclass(frozen=True, eq=False, repr=False)
class Descriptor:
    """A mask for given metadata: Z masks (the product of `batch`) of `rows` x `cols`, in tiles of `tile`.

    With TM, TN the number of row and column tiles, for rows (for columns swap M and N):

    - `row_table` int32 [Z, K, 2, M]: the visible columns of a row are the K intervals [lo, hi); None if unbounded.
    - `row_count` int32 [Z, TM, 2]: number of partial and of full tiles in each row of tiles.
    - `row_index` int32 [Z, TM, TN]: partial tile ids from the front, full ones at the back, the rest undefined.
    - `row_live` int32 [Z, TM, TN]: first live slot | end << 16 of each partial tile (one entry if not asked for).
    - `row_order` int32 [Z, TM]: tile rows by listed tiles, most first.
    - `row_state` int32 [Z, TM, ceil(TN / 16)]: two bits a tile: 0 empty, 1 partial, 2 full.

    `area` int64 [Z] is the number of visible pairs; `status` int64 [Z] is 0, or (number of the broken fact) << 32 |
    where; `check()` reads it.
    """

    row_table: torch.Tensor | None
    row_state: torch.Tensor
    row_count: torch.Tensor
    row_index: torch.Tensor
    row_live: torch.Tensor
    row_order: torch.Tensor
    col_table: torch.Tensor | None
    col_state: torch.Tensor
    col_count: torch.Tensor
    col_index: torch.Tensor
    col_live: torch.Tensor
    col_order: torch.Tensor
    area: torch.Tensor
    status: torch.Tensor
    rows: int
    cols: int
    tile: tuple[int, int]
    batch: tuple[int, ...]
    """(): one mask for all; (B,): one per sequence; (B, H): one per sequence and head."""
    signature: Signature
    module: Any
    """The generated module, whose attention kernels fit this descriptor."""

    @property
    def masks(self) -> int:
        return math.prod(self.batch)

    @property
    def device(self) -> torch.device:
        return self.area.device

    @property
    def mask_strides(self) -> tuple[int, int]:
        """(zb, zh): sequence b and head h read mask b * zb + h * zh; 0 where a mask is shared."""
        sequences, heads = (*self.batch, 1, 1)[:2]
        return (heads if sequences > 1 else 0, 1 if heads > 1 else 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the one allocation that all tensors of the descriptor are views of."""
        return self.area.untyped_storage().nbytes()

    def check(self) -> Descriptor:
        """Raises MetadataError if the metadata break a declared fact of the mask: which, and where first.

        Waits for the preprocess kernel, the only thing here that does. Returns the descriptor.
        """
        status = self.status.cpu()
        for mask in status.nonzero()[:1]:
            word = int(status[mask])
            fact = self.signature.facts[(word >> 32) - 1]
            where = {"scalar": "", "row": " at row {}", "col": " at column {}", "entry": " at entry {}"}[fact.over]
            which = f" of mask {int(mask)}" if self.batch else ""
            raise MetadataError(
                f"mask {self.signature.name!r}: the metadata{which} break the declared fact "
                f"`{fact.text}`{where.format(word & 0xFFFFFFFF)}"
            )
        return self

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
) -> Descriptor:
    """Launches the preprocess kernel of the generated `module`; no host synchronisation, CUDA-graph capturable.

    `cols` None means as many as `rows`. `live` says for which schedules (rows, columns) the live slots of partial tiles
    are stored. They are those of the schedule's own table, or of the other table where its own axis is unbounded.
    Raises MetadataError for metadata that do not fit `signature`, CmirError for a device that cannot run the kernel.
    """
    cols = rows if cols is None else cols
    if tile[0] not in TILES or tile[1] not in TILES:
        raise MetadataError(f"mask {signature.name!r}: expected a tile of two of {TILES}; got {tile}")
    packed = pack(signature, rows, cols, metadata, device)
    require_backend(packed.device)
    row_slots, col_slots = signature.row_slots or 0, signature.col_slots or 0
    if 2 * row_slots * rows >= 2**31 or 2 * col_slots * cols >= 2**31:
        raise MetadataError(
            f"mask {signature.name!r}: an interval table of {max(row_slots * rows, col_slots * cols)} intervals a mask "
            f"is too large; expected rows and cols such that it has less than {2**30}"
        )
    transposed = {(0, col_slots): "row", (row_slots, 0): "col"}.get((row_slots, col_slots))
    if transposed and any(live):
        live = (True, True)  # the derived schedule copies its slots from the other one
    layout = _layout(packed.masks, rows, cols, tile, row_slots, col_slots, live)
    with on_device(packed.device):
        buffer = torch.empty(layout.size, dtype=torch.int32, device=packed.device)
        buffer[: layout.zeroed].zero_()
        wide = buffer.view(torch.int64)
        tensors = {
            name: (wide if is_wide else buffer).as_strided(shape, strides, offset)
            for name, shape, strides, offset, is_wide in layout.tensors
        }
        module.preprocess[(layout.programs, packed.masks)](
            *(tensors[name] for name in _ARGUMENTS),
            rows,
            cols,
            packed.entries,
            *packed.arguments,
            ROW_SLOTS=row_slots,
            COL_SLOTS=col_slots,
            TILE_M=tile[0],
            TILE_N=tile[1],
            ROW_LIVE=live[0],
            COL_LIVE=live[1],
        )
        if transposed:
            _transpose(module, tensors, transposed, live=any(live))
    tables = {"row_table": row_slots, "col_table": col_slots}
    fields: dict[str, Any] = {name: tensors[name] if tables.get(name, 1) else None for name in _OUTPUTS}
    return Descriptor(**fields, rows=rows, cols=cols, tile=tile, batch=packed.batch, signature=signature, module=module)


def _transpose(module: Any, tensors: Mapping[str, torch.Tensor], to: str, live: bool) -> None:
    """Launches the kernel that derives the schedule of axis `to` from that of the other axis."""
    source = "col" if to == "row" else "row"
    masks, tiles = tensors[f"{to}_order"].shape
    if tiles:
        module.transpose_schedule[(tiles, masks)](
            *(tensors[f"{source}_{field}"] for field in ("state", "count", "index", "live")),
            *(tensors[f"{to}_{field}"] for field in ("state", "count", "index", "live", "order", "bins")),
            tensors["transpose_arrived"],
            tiles,
            tensors[f"{source}_order"].shape[1],
            LIVE=live,
        )


_OUTPUTS = (
    *("row_table", "row_state", "row_count", "row_index", "row_live", "row_order"),
    *("col_table", "col_state", "col_count", "col_index", "col_live", "col_order"),
    *("area", "status"),
)
_ARGUMENTS = (*_OUTPUTS, "row_bins", "col_bins", "parts", "arrived")
_ZEROED = ("arrived", "transpose_arrived", "row_bins", "col_bins")
_INT64 = ("area", "status", "parts")


@dataclass(frozen=True)
class _Layout:
    """How one int32 allocation of `size` is cut: for each tensor its name, shape, strides, offset, and if int64."""

    size: int
    zeroed: int
    """How much of it, from the start, is zero before the launch."""
    tensors: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int, bool], ...]
    programs: int


@functools.lru_cache(maxsize=256)
def _layout(
    masks: int,
    rows: int,
    cols: int,
    tile: tuple[int, int],
    row_slots: int,
    col_slots: int,
    live: tuple[bool, bool],
) -> _Layout:
    m, n = -(-rows // tile[0]), -(-cols // tile[1])
    programs = max(1, m + n)
    shapes: dict[str, tuple[int, ...]] = {
        "arrived": (masks, 3),
        "transpose_arrived": (masks,),
        "row_bins": (masks, n + 1),
        "col_bins": (masks, m + 1),
        "area": (masks,),
        "status": (masks,),
        "parts": (masks, 2, programs),
        "row_table": (masks, row_slots, 2, rows),
        "col_table": (masks, col_slots, 2, cols),
    }
    for axis, tiles, others, has_live in (("row", m, n, live[0]), ("col", n, m, live[1])):
        shapes[f"{axis}_state"] = (masks, tiles, -(-others // 16))
        shapes[f"{axis}_count"] = (masks, tiles, 2)
        shapes[f"{axis}_index"] = (masks, tiles, others)
        shapes[f"{axis}_live"] = (masks, tiles, others) if has_live else (1,)
        shapes[f"{axis}_order"] = (masks, tiles)
    size = zeroed = 0
    tensors: list[tuple[str, tuple[int, ...], tuple[int, ...], int, bool]] = []
    for name, shape in shapes.items():
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        width = 2 if name in _INT64 else 1
        tensors.append((name, shape, strides, size // width, width == 2))
        # An empty tensor gets memory too: its pointer is an argument like any other.
        size += -(-max(1, width * math.prod(shape)) // _ALIGNMENT) * _ALIGNMENT
        zeroed = size if name in _ZEROED else zeroed
    return _Layout(size, zeroed, tuple(tensors), programs)
