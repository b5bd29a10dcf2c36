# pyright: basic
"""Parameters as the driver gets them: where PTX says that they lie, or no direct launch at all."""

import ctypes
import struct
import threading
from types import SimpleNamespace

import pytest
import torch

from cmir.runtime import driver, launcher
from cmir.runtime.driver import MOVES, direct_of, packing_of, parameters_of
from cmir.runtime.launcher import Blocks, Form, Launcher

PTX = """
.version 8.7
.visible .entry forward(
	.param .align 64 .b8 forward_param_0[128],
	.param .u32 forward_param_1,
	.param .u32 forward_param_2,
	.param .u64 forward_param_3,
	.param .u64 forward_param_4,
	.param .u64 .ptr .global .align 1 forward_param_5,
	.param .u32 forward_param_6,
	.param .u32 forward_param_7,
	.param .u64 forward_param_8,
	.param .f32 forward_param_9,
	.param .u64 .ptr .global .align 1 forward_param_10,
	.param .u64 .ptr .global .align 1 forward_param_11
)
.reqntid 384
{
	.param .b32 retval0;
}
"""
SIZES = {".b8[128]": 128, ".u32": 4, ".u64": 8, ".f32": 4}
KINDS = ["tensordesc<bf16[64, 128],NVMMASharedLayout(swizzle)>", "*i32", "i32", "i32", "i64", "fp32", "constexpr"]
ARGUMENTS = [MOVES, MOVES, 7, 9, 11, MOVES]
MAP = struct.pack("@128s2i2q", bytes(range(128)), 5, 6, 7, 8)


def packed(block: driver.Packing, moving: list) -> bytes:
    room = bytearray(block.template)
    for group in block.groups:
        group.packing.pack_into(room, group.offset, *moving[group.begin : group.end])
    return bytes(room)


def test_parameters_are_read_off_ptx() -> None:
    b8, u32, u64 = ".b8[128]", ".u32", ".u64"
    assert parameters_of(PTX) == [b8, u32, u32, u64, u64, u64, u32, u32, u64, ".f32", u64, u64]


def test_a_block_has_every_parameter_in_its_place() -> None:
    block = packing_of(PTX, KINDS, ARGUMENTS)
    assert block is not None
    # What C makes of the same parameters.
    expected = MAP + struct.pack("@Q2iqf4xQQ", 2**40, 7, 9, 11, 0.5, 0, 0)
    assert packed(block, [MAP, 2**40, 0.5]) == expected
    assert block.offsets == [0, 128, 132, 136, 144, 152, 160, 164, 168, 176, 184, 192]


def test_what_never_moves_is_packed_once_and_aligned() -> None:
    types = [".u32 a", ".u64 b", ".u32 c", ".align 64 .b8 d[128]", ".u32 e", ".u64 f"]
    ptx = ".entry f(\n" + ",\n".join(f" .param {type_}" for type_ in types) + "\n)"
    kinds = ["i32", "i64", "i32", "tensordesc<fp32[8],PaddedSharedLayout()>"]
    block = packing_of(ptx, kinds, [MOVES, MOVES, 3, MOVES])
    assert block is not None
    map_ = struct.pack("@128siq", bytes(128), 8, 1)
    assert packed(block, [1, 2, map_]) == struct.pack("@i4xqi44x", 1, 2, 3) + map_


@pytest.mark.parametrize(
    ("kinds", "arguments"),
    [
        ([*KINDS[:2], "i64", *KINDS[3:]], ARGUMENTS),  # another width than PTX has
        ([*KINDS[:5], "bf16", *KINDS[6:]], ARGUMENTS),  # a type that is not known
        ([*KINDS[:5], "constexpr", "constexpr"], ARGUMENTS),  # compiled in, and moves
        (KINDS[:5], ARGUMENTS[:5]),  # PTX has more
        ([*KINDS, "i32"], ARGUMENTS),  # an argument without a value
        (KINDS, [*ARGUMENTS, 1, 2]),  # a value without an argument
        (KINDS, [1, *ARGUMENTS[1:]]),  # a descriptor that does not move
    ],
)
def test_where_ptx_says_something_else_triton_launches(kinds: list, arguments: list) -> None:
    assert packing_of(PTX, kinds, arguments) is None


def test_a_number_that_was_compiled_in_is_left_out() -> None:
    block = packing_of(PTX, [KINDS[0], KINDS[1], "constexpr", *KINDS[2:]], [MOVES, MOVES, 1, 7, 9, 11, MOVES])
    assert block is not None
    assert packed(block, [MAP, 2**40, 0.5]) == MAP + struct.pack("@Q2iqf4xQQ", 2**40, 7, 9, 11, 0.5, 0, 0)


def test_more_of_triton_s_own_parameters_than_known_are_refused() -> None:
    more = PTX.replace("forward_param_11\n", "forward_param_11,\n\t.param .u64 forward_param_12\n")
    assert packing_of(more, KINDS, ARGUMENTS) is None


@pytest.mark.parametrize("ptx", ["", ".visible .entry f()\n{\n}", ".visible .entry f(\n\t.reg .b32 r\n)", "// .entry"])
def test_ptx_of_another_shape_has_no_parameters(ptx: str) -> None:
    assert parameters_of(ptx) == []
    assert packing_of(ptx, KINDS, ARGUMENTS) is None
    nothing = packing_of(ptx, ["constexpr"], [])
    assert nothing is not None
    assert nothing.offsets == []


class Driver:
    """Stands for the CUDA driver: keeps what it is given."""

    def __init__(self) -> None:
        self.launches: list[tuple] = []
        self.status = 0
        self.encoded: list[tuple] = []

    def cuLaunchKernel(self, function, x, y, z, threads, _y, _z, shared, stream, params, extra) -> int:
        assert extra is None
        sizes = [SIZES[kind] for kind in parameters_of(PTX)]
        assert len(params) == len(sizes)
        values = [ctypes.string_at(place, size) for place, size in zip(params, sizes, strict=True)]
        self.launches.append((function, (x, y, z), threads, shared, stream, b"".join(values)))
        return self.status

    def cuTensorMapEncodeTiled(self, room, kind, rank, address, sizes, steps, box, ones, *rest) -> int:
        assert room % 64 == 0
        self.encoded.append((kind, address, list(sizes), list(steps), list(box), list(ones), rest))
        ctypes.memmove(room, bytes(range(128)), 128)
        return self.status


ABSENT = object()
USUAL = {
    "num_ctas": 1, "warp_size": 32, "global_scratch_size": 0, "profile_scratch_size": 0,
    "launch_cooperative_grid": False, "launch_pdl": False,
}  # fmt: skip


class Compiled:
    def __init__(self, **metadata) -> None:
        target = SimpleNamespace(backend="cuda")
        self.metadata = SimpleNamespace(**{"target": target, "num_warps": 12, "shared": 1000, **USUAL, **metadata})
        for name in [name for name, value in metadata.items() if value is ABSENT]:
            delattr(self.metadata, name)
        self.asm = {"ptx": PTX}
        self.src = SimpleNamespace(signature=dict(enumerate(KINDS)))
        self.function = 77
        self.by_triton: list[tuple] = []

    def __getitem__(self, grid):
        return lambda *arguments: self.by_triton.append((grid, arguments))


@pytest.fixture
def cuda(monkeypatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(driver, "_cuda", lambda: found)
    return found


def test_a_direct_launch_hands_over_the_block(cuda: Driver) -> None:
    direct = direct_of(Compiled(), ARGUMENTS)
    assert direct is not None
    assert direct((5, 6, 7), 99, [MAP, 2**40, 0.5])
    values = MAP + struct.pack("=Q2iqfQQ", 2**40, 7, 9, 11, 0.5, 0, 0)
    assert cuda.launches == [(77, (5, 6, 7), 384, 1000, 99, values)]


def test_threads_have_places_of_their_own(cuda: Driver) -> None:
    direct = direct_of(Compiled(), ARGUMENTS)
    assert direct is not None
    places: list[int] = []

    def work() -> None:
        direct((1, 1, 1), 0, [MAP, 1, 0.5])
        places.append(ctypes.addressof(direct._places.place[0]))

    work()
    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert places[0] != places[1]


@pytest.mark.parametrize(
    "metadata",
    [
        {"num_ctas": 2}, {"global_scratch_size": 64}, {"profile_scratch_size": 8}, {"launch_pdl": True},
        {"launch_pdl": ABSENT}, {"launch_cooperative_grid": True}, {"target": SimpleNamespace(backend="hip")},
    ],
)  # fmt: skip
def test_where_triton_takes_part_there_is_no_direct_launch(cuda: Driver, metadata: dict) -> None:
    assert direct_of(Compiled(**metadata), ARGUMENTS) is None


def test_without_a_driver_there_is_no_direct_launch(monkeypatch) -> None:
    monkeypatch.setattr(driver, "_cuda", lambda: None)
    assert direct_of(Compiled(), ARGUMENTS) is None


class Hooks:
    """Stands for `triton.knobs.runtime`, whose hooks are lists of calls, or None."""

    launch_enter_hook = SimpleNamespace(calls=[])
    launch_exit_hook = None


def test_a_profiler_sees_every_launch(cuda: Driver, monkeypatch) -> None:
    monkeypatch.setattr(driver, "_runtime", Hooks)
    direct = direct_of(Compiled(), ARGUMENTS)
    assert direct is not None
    monkeypatch.setattr(Hooks, "launch_enter_hook", SimpleNamespace(calls=[print]))
    assert not direct((1, 1, 1), 0, [MAP, 1, 0.5])
    assert cuda.launches == []


TENSOR = Form((5, 128), (256, 1), torch.bfloat16, (64, 128), 128)
META = {"block_size": [64, 64], "swizzle": 3}


@pytest.fixture
def started(cuda: Driver, monkeypatch) -> tuple[Launcher, Compiled, list]:
    """A launcher that has launched once, what Triton compiled for it, and what Triton was given."""
    compiled = Compiled(tensordesc_meta=[META])
    first: list[tuple] = []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *arguments, num_warps: (first.append((grid, arguments, num_warps)), compiled)[1]

    monkeypatch.setattr(Blocks, "_make", lambda self, address: ("descriptor of", address))
    monkeypatch.setattr(launcher, "current_stream", lambda device: 99)
    made = Launcher(
        Kernel(), (4, 1, 1), (Blocks(TENSOR), torch.int32, 7, 9, 11, float), (True,), torch.device("cuda", 0)
    )
    made(2**20, 2**40, 0.5)
    return made, compiled, first


def test_a_launcher_compiles_and_then_launches_directly(started, cuda: Driver) -> None:
    made, compiled, first = started
    ((grid, arguments, warps),) = first
    assert (grid, warps, arguments[0], arguments[2:]) == ((4, 1, 1), 4, ("descriptor of", 2**20), (7, 9, 11, 0.5, True))
    assert (arguments[1].data_ptr(), arguments[1].dtype) == (2**40, torch.int32)
    assert cuda.launches == []
    made(2**20, 2**41, 0.25)
    made(2**20, 2**41, 0.25)
    map_ = struct.pack("@128s2i2q", bytes(range(128)), 5, 128, 256, 1)
    values = map_ + struct.pack("=Q2iqfQQ", 2**41, 7, 9, 11, 0.25, 0, 0)
    assert cuda.launches == [(77, (4, 1, 1), 384, 1000, 99, values)] * 2
    # Encoded once: bfloat16, the inner dimension first, strides in bytes, and what one instruction moves.
    assert cuda.encoded == [(9, 2**20, [128, 5], [512], [64, 64], [1, 1], (0, 3, 2, 0))]
    assert compiled.by_triton == []


def test_what_the_driver_refuses_triton_launches(started, cuda: Driver) -> None:
    made, compiled, _ = started
    cuda.status = 1
    made(2**20, 2**41, 0.25)
    ((grid, arguments),) = compiled.by_triton
    assert (grid, arguments[0], arguments[2:]) == ((4, 1, 1), ("descriptor of", 2**20), (7, 9, 11, 0.25, True))


def test_a_tensor_that_the_driver_refuses_is_asked_for_once(cuda: Driver) -> None:
    blocks = Blocks(TENSOR)
    blocks.meta, cuda.status = META, 1
    assert [blocks.packed(2**20), blocks.packed(2**20)] == [None, None]
    assert len(cuda.encoded) == 1


def test_addresses_are_forgotten_when_there_are_too_many(monkeypatch) -> None:
    monkeypatch.setattr(launcher, "MAX_BLOCKS", 2)
    monkeypatch.setattr(Blocks, "_make", lambda self, address: address)
    blocks = Blocks(TENSOR)
    assert [blocks.at(address) for address in (1, 2, 3, 1)] == [1, 2, 3, 1]
    assert list(blocks._made) == [3, 1]


def test_the_stride_of_a_dimension_of_one_is_one_that_tma_takes() -> None:
    assert Blocks(Form((1, 5, 128), (3, 256, 1), torch.bfloat16, (1, 64, 128), 128)).strides == [16, 256, 1]
