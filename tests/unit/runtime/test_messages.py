# pyright: basic, reportArgumentType=false
"""What the Python face says of wrong arguments, word for word: the argument, what was expected, what was given."""

import os
import subprocess
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import pytest
import torch

import cmir
from cmir import layouts, zoo
from cmir.errors import CmirError, MetadataError, ShapeError, SpecError, missing_torch
from cmir.runtime import launch
from cmir.runtime.layout import Tokens

CAUSAL = zoo.path("causal")
CLEAR = zoo.path("clear")
STARTS = torch.tensor([0, 1, 2, 3, 3, 3], dtype=torch.int32)
HSTU = {"rows": 6, "history": 3, "start": STARTS}
PACK = {
    "rows": 8,
    "cu_seqlens": torch.tensor([0, 3, 8]),
    "history": torch.tensor([1, 2]),
    "start": torch.tensor([0, 1, 2, 0, 0, 2, 3, 3]),
}
LAYOUTS = "Patch, ZigZag, Striped, Residue, Table"
DOCUMENTS = """
maskspec.spec @docs(%keys: index, %limit: !maskspec.table<free>) {
  maskspec.assume 0 <= keys
  maskspec.assume for e in [0, keys) : 0 <= limit[e] and limit[e] <= rows
  maskspec.region @all rows [0, rows) {
    maskspec.clause limit[0] <= i and j < keys
  }
}
"""


def at(x: torch.Tensor) -> str:
    return f"{str(x.dtype).removeprefix('torch.')} tensor {list(x.shape)} on {x.device}"


def computed_constants():
    spec = cmir.MaskSpec("m")
    spec.static("radius", 1)
    spec.constants("half", [1, 2])
    spec.region("all", 0, spec.rows, visible=spec.j <= spec.i)
    return spec


def shard(path: Path = CAUSAL):
    return cmir.compile(path, layout={"rows": layouts.Striped(of=2, rank=0)})


def of_text(text: str, tmp_path: Path):
    path = tmp_path / "spec.mlir"
    path.write_text(text)
    return cmir.compile(path)


SPEC_ERRORS = {
    "no spec": (lambda: cmir.compile(3), "expected the path of a .mlir file or a cmir.MaskSpec, got int"),
    "a function": (
        lambda: cmir.compile(max),
        "expected the path of a .mlir file or a cmir.MaskSpec, got builtin_function_or_method; a mask_mod is imported "
        "first: cmir.compile(cmir.from_mask_mod(mask_mod))",
    ),
    "a text": (
        lambda: cmir.compile("maskspec.spec @m() {}"),
        "expected the path of a .mlir file, got the text of a spec; write it to a file",
    ),
    "no file": (
        lambda: cmir.compile("no.mlir"),
        "cannot read the spec 'no.mlir': [Errno 2] No such file or directory: 'no.mlir'",
    ),
    "a name of the zoo": (
        lambda: cmir.compile("hstv"),
        "cannot read the spec 'hstv': [Errno 2] No such file or directory: 'hstv'; the mask of the zoo is "
        "cmir.zoo.load('hstu')",
    ),
    "no mapping": (
        lambda: cmir.compile(CLEAR, statics=[1]),
        "statics= takes a mapping of names of statics to ints, got [1]",
    ),
    "a misspelt static": (
        lambda: cmir.compile(CLEAR, statics={"radus": 1}),
        "@clear has no static 'radus'; did you mean 'radius'?",
    ),
    "no static": (lambda: cmir.compile(CAUSAL, statics={"x": 1}), "@causal has no static 'x'; it has none"),
    "no number": (lambda: cmir.compile(CLEAR, statics={"radius": 1.5}), "static 'radius' must be an int, got 1.5"),
    "computed constants": (
        lambda: cmir.compile(computed_constants(), statics={"radius": 2}),
        "statics= cannot be given: constant table 'half' was computed in Python; build the spec with the other values "
        "instead",
    ),
    "a long table": (
        lambda: cmir.compile(CLEAR, statics={"radius": 2**20}),
        "constant table @half has 2097151 entries; at most 65536",
    ),
    "test": (lambda: cmir.compile(CAUSAL, test="row"), "test= is auto, rows, cols, bits; got 'row'"),
    "prove": (lambda: cmir.compile(CAUSAL, prove="all"), "prove= is True, False or 'strict'; got 'all'"),
    "no layout": (
        lambda: cmir.compile(CAUSAL, layout="patch"),
        f"layout= takes one of cmir.layouts ({LAYOUTS}), or a dict of them by axis; got 'patch'",
    ),
    "an axis": (
        lambda: cmir.compile(CAUSAL, layout={"row": layouts.Residue(4)}),
        "layout= of an axis is given by 'rows' or 'cols'; got 'row'",
    ),
    "a shard of both": (
        lambda: cmir.compile(CAUSAL, layout=layouts.Striped(of=2, rank=0)),
        "a shard is of one axis: write layout={'rows': Striped(of=2, rank=0)}, or give both axes theirs",
    ),
    "a number of a layout": (
        lambda: cmir.compile(CAUSAL, layout=layouts.Residue(of=2.5)),
        "a number of a layout is an int or the name of a static; got 2.5 in Residue(of=2.5)",
    ),
    "no patch": (
        lambda: cmir.compile(CAUSAL, layout=layouts.Patch(grid=(4, 4), size=(2, 2), after=-1)),
        "a grid and its patches are at least 1 x 1, `after` at least 0, all below 2^30; got patch(grid = [4, 4], "
        "size = [2, 2], after = -1)",
    ),
}


@pytest.mark.parametrize("name", SPEC_ERRORS)
def test_compile(name: str) -> None:
    call, message = SPEC_ERRORS[name]
    with pytest.raises(SpecError) as raised:
        call()
    assert raised.value.message == message


OTHERS = {
    "zoo": (CmirError, lambda: zoo.load(3), "a mask of the zoo is named by a string, got 3"),
    "target": (
        CmirError,
        lambda: zoo.load("causal").source("tritn"),
        "unknown target 'tritn'; the targets are: triton, gluon",
    ),
    "packed twice": (CmirError, lambda: zoo.load("hstu").packed.packed, "mask 'hstu' is packed already"),
    "dense of a packed one": (
        CmirError,
        lambda: zoo.load("causal").packed.dense(rows=3),
        "mask 'causal' is packed: give cu_seqlens to the dense of the mask it was made from",
    ),
    "packed layout": (
        CmirError,
        lambda: cmir.compile(CAUSAL, layout=layouts.Residue(4)).packed,
        "mask 'causal' has a layout, the order of one sequence's tokens; pack the mask without it",
    ),
    # describe
    "rows": (
        MetadataError,
        lambda: zoo.load("causal").describe(rows="8"),
        "mask 'causal', argument 'rows': expected an int from 0 to 1073741824; got '8' of type str",
    ),
    "tile": (
        MetadataError,
        lambda: zoo.load("causal").describe(rows=8, tile=16),
        "mask 'causal', argument 'tile': expected two ints, (rows, columns); got 16",
    ),
    "tile of others": (
        MetadataError,
        lambda: zoo.load("causal").describe(rows=8, tile=(16.0, 16)),
        "mask 'causal': expected a tile of two of (16, 32, 64, 128); got (16.0, 16)",
    ),
    "device": (
        MetadataError,
        lambda: zoo.load("causal").describe(rows=8, device="gpu"),
        "mask 'causal', argument 'device': expected a torch.device or the name of one, 'cuda' or 'cpu'; got 'gpu' of "
        "type str",
    ),
    "batch": (
        MetadataError,
        lambda: zoo.load("hstu").describe(**{**HSTU, "history": torch.ones(1, dtype=torch.int32).expand(70000)}),
        "mask 'hstu': at most 65535 masks fit one descriptor; got a batch of (70000,)",
    ),
    "a misspelt name": (
        MetadataError,
        lambda: zoo.load("hstu").describe(**HSTU, histroy=3),
        "mask 'hstu' has no metadatum 'histroy', did you mean 'history'? It takes history, start",
    ),
    # packs
    "cu_seqlens_k alone": (
        MetadataError,
        lambda: zoo.load("causal").describe(rows=8, cu_seqlens_k=torch.tensor([0, 8])),
        "mask 'causal': cu_seqlens_k and max_seqlen go with cu_seqlens; it was not given",
    ),
    "cu_seqlens_k without cols": (
        MetadataError,
        lambda: zoo.load("hstu").describe(**PACK, cu_seqlens_k=torch.tensor([0, 3, 8])),
        "mask 'hstu': cu_seqlens_k needs cols, the length of k with its padding",
    ),
    "max_seqlen": (
        MetadataError,
        lambda: zoo.load("hstu").describe(**PACK, max_seqlen=-1),
        "mask 'hstu', argument 'max_seqlen': expected an int of at least 0; got -1",
    ),
    "as many": (
        MetadataError,
        lambda: zoo.load("hstu").describe(**PACK, cu_seqlens_k=torch.tensor([0, 8]), cols=8),
        "mask 'hstu', argument 'cu_seqlens_k': expected as many entries as cu_seqlens has, 3; got 2",
    ),
    "a scalar of each": (
        MetadataError,
        lambda: zoo.load("hstu").describe(**{**PACK, "history": 1.5}),
        "mask 'hstu', argument 'history': expected an int, or an int32 or int64 tensor [S] (or [B, S] or [B, H, S]), "
        "one entry for each of the 2 sequences; got 1.5 of type float",
    ),
    "an oracle's pack": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**PACK, "cu_seqlens": []}),
        "cu_seqlens of mask 'hstu': expected at least one entry, 0",
    ),
    "an oracle's cut": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**PACK, "cu_seqlens": [0, 4, 3]}),
        "cu_seqlens of mask 'hstu': expected ints that start at 0, never fall, and end at most at rows, 8; got "
        "[0, 4, 3]",
    ),
    "an oracle's scalars": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**PACK, "history": [1, 2, 3]}),
        "metadatum 'history' of mask 'hstu': expected an int for all sequences, or one for each (2 of them); got "
        "int64 of shape [3]",
    ),
    # the oracle
    "a ragged table": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**HSTU, "start": [[1], [2, 3]]}),
        "metadatum 'start' of mask 'hstu': expected a 1-D sequence of 6 ints, one per row, got object of shape (2,)",
    ),
    "an array beyond int64": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**HSTU, "start": np.array([2**63 + 5] * 6, dtype=np.uint64)}),
        "metadatum 'start' of mask 'hstu': expected ints of 64 bits, got 9223372036854775813",
    ),
    "a list beyond int64": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**HSTU, "start": [0, 1, 2, 0, 0, 2**63 + 5]}),
        "metadatum 'start' of mask 'hstu': expected ints of 64 bits, got 9223372036854775813",
    ),
    "a scalar beyond int64": (
        MetadataError,
        lambda: zoo.load("hstu").dense(**{**HSTU, "history": 2**63}),
        "metadatum 'history' of mask 'hstu': expected an int of 64 bits, got 9223372036854775808",
    ),
    "an axis": (
        CmirError,
        lambda: zoo.load("hstu").intervals("row", **HSTU),
        "axis: expected 'rows' or 'cols', got 'row'",
    ),
    "explain of a packed one": (
        CmirError,
        lambda: zoo.load("causal").packed.explain(3, 3, rows=8),
        "mask 'causal' is packed: give cu_seqlens to the explain of the mask it was made from",
    ),
    "view of a pack": (
        CmirError,
        lambda: zoo.load("hstu").view("mask.html", **PACK),
        "a page shows one sequence: choose one of the pack, sequence 0 to 1, or make a picture (.png)",
    ),
    # other engines
    "FlashMask of repetitions": (
        CmirError,
        lambda: zoo.load("strided").to_flashmask(rows=8),
        "mask 'strided': FlashMask takes the hidden rows of every column as intervals, and no number of them says this "
        "mask by columns: '(i - j) mod 128' repeats along i; to_sdpa, to_fa4 and to_block_mask take any mask",
    ),
    "FlashAttention 4": (
        CmirError,
        lambda: zoo.load("causal").describe(rows=20, device="cpu").to_fa4().mask_mod(),
        "to_fa4: its mask_mod needs flash-attn-4 (flash_attn.cute): No module named 'cutlass'",
    ),
    # layouts
    "a length": (
        MetadataError,
        lambda: cmir.compile(CAUSAL, layout=layouts.Residue(4)).describe(rows=-3),
        "mask 'causal', argument 'rows': expected an int from 0 to 1073741824; got -3",
    ),
    "a length of a layout": (
        MetadataError,
        lambda: shard_of_zigzag().describe(rows=7),
        "mask 'causal', rows: expected a length that is a multiple of 2, for the layout zigzag(of = 2, rank = 0); "
        "got 7",
    ),
    "entries of a layout": (
        MetadataError,
        lambda: cmir.compile(zoo.path("hstu"), layout={"rows": layouts.Striped(of=2, rank=0)}).describe(
            **HSTU, cols=12
        ),
        "mask 'hstu', argument 'start': expected 12 entries, one for each token, for the layout striped(of = 2, "
        "rank = 0); got 6",
    ),
    "tokens of others": (
        CmirError,
        lambda: shard().describe(rows=4, cols=8, tile=(16, 16)).unpermute(torch.zeros(1, 1, 4, 2), "rows", dim=2),
        "the rows are a shard of the tokens: the others are needed to put them back in order",
    ),
    "a shard of attention": (
        CmirError,
        lambda: attend(shard().describe(rows=4, cols=8, tile=(16, 16)), 4, 8, permute=True),
        "permute=True: the rows of this mask are a shard of the tokens; give the shard itself, see Descriptor.permute",
    ),
    "a dimension": (
        ShapeError,
        lambda: Tokens(torch.arange(3), None).permute(torch.zeros(3), "rows", 5),
        "expected a tensor with tokens along a dimension of it, got (3,) and dim=5",
    ),
    "places": (
        ShapeError,
        lambda: Tokens(torch.arange(3), None).unpermute(torch.zeros(4), "rows", 0),
        "expected 3 places along dim 0, got 4 in (4,)",
    ),
    "no permutation": (
        MetadataError,
        lambda: Tokens(torch.tensor([0, 0]), None, tables=(("rows", "order"),)).check("m"),
        "mask 'm': 'order' is no permutation: as the order of the rows it names every token once",
    ),
    "an order of heads": (
        MetadataError,
        lambda: cmir.compile(CAUSAL, layout=layouts.Table("order")).describe(
            rows=4, tile=(16, 16), order=torch.arange(4).expand(1, 2, 4)
        ),
        "mask 'causal', argument 'order': expected an order [length] or [B, length], heads have none of their own; got "
        "[1, 2, 4]",
    ),
}


def shard_of_zigzag():
    return cmir.compile(CAUSAL, layout={"rows": layouts.ZigZag(of=2, rank=0)})


def attend(desc, rows: int, cols: int, **options):
    q, k = torch.zeros(1, 2, rows, 16), torch.zeros(1, 2, cols, 16)
    return cmir.attention(q, k, k, desc, **options)


@pytest.mark.parametrize("name", OTHERS)
def test_message(name: str) -> None:
    kind, call, message = OTHERS[name]
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == message


Q = torch.zeros(1, 2, 8, 16)
ATTENTION = {
    "a list": ({"q": [1]}, "q: expected a tensor [batch, heads, length, head dim], got list"),
    "None": ({"k": None}, "k: expected a tensor [batch, heads, length, head dim], got NoneType"),
    "NumPy": ({"v": Q.numpy()}, "v: expected a tensor [batch, heads, length, head dim], got ndarray"),
    "no descriptor": (
        {"desc": zoo.load("causal")},
        "desc: expected the Descriptor that mask.describe returns, got a CompiledMask; call its describe(...)",
    ),
    "rows": (
        {"q": Q[:, :, :7]},
        "q: expected 8 rows, as the descriptor was built for, got 7 in (1, 2, 7, 16)",
    ),
    "lengths before heads": (
        {name: Q.transpose(1, 2) for name in "qkv"},
        "q: expected 8 rows, as the descriptor was built for, got 2 in (1, 8, 2, 16); where tensors are "
        "[batch, length, heads, head dim], give transpose(1, 2) of each",
    ),
    "columns": (
        {"k": Q[:, :, :7], "v": Q[:, :, :7]},
        "k: expected 8 columns, as the descriptor was built for, got 7 in (1, 2, 7, 16)",
    ),
    "heads": ({"q": Q[:, :1]}, "q: expected a multiple of k's 2 heads, got 1 heads in (1, 1, 8, 16)"),
    "scale": ({"scale": "a"}, "scale: expected a number, got 'a'"),
    "scale beyond floats": ({"scale": -(10**400)}, "scale: expected a finite number, got inf"),
    "scale beyond float32": (
        {"scale": 1e39},
        "scale: expected 2e+38 at most either way, which float32 holds, got 1e+39",
    ),
    "scale nan": ({"scale": float("nan")}, "scale: expected a finite number, got nan"),
    "Hopper": (
        {"backend": "gluon"},
        "backend 'gluon': its kernels need a Hopper GPU, got cpu; leave the backend out, or ask for 'triton'",
    ),
    "backend": ({"backend": "cuda"}, "backend: expected triton or gluon, got 'cuda'"),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    changes, message = ATTENTION[name]
    desc = zoo.load("causal").describe(rows=8, tile=(16, 16))
    with pytest.raises(CmirError) as raised:
        cmir.attention(**({"q": Q, "k": Q, "v": Q, "desc": desc} | changes))
    assert str(raised.value) == message


def test_attention_of_another_batch() -> None:
    history = torch.tensor([3, 2], dtype=torch.int32)
    desc = zoo.load("prefix_lm").describe(rows=8, prefix=history, tile=(16, 16))
    q = torch.zeros(3, 2, 8, 16)
    with pytest.raises(ShapeError) as raised:
        cmir.attention(q, q, q, desc)
    message = "q: expected batch 2, as the descriptor was built for, got 3 in (3, 2, 8, 16)"
    assert str(raised.value) == message


def test_free_tables_of_packs(tmp_path: Path) -> None:
    mask = of_text(DOCUMENTS, tmp_path)
    cu, limit = torch.tensor([0, 4, 8]), torch.tensor([0, 1])
    for table, message in (
        (
            limit,
            "mask 'docs', argument 'limit': the fact '0 <= limit[e] for e in [0, keys)' relates its entries to one "
            "sequence, so no two sequences may share it; give a pair, the entries of all sequences one after another "
            "and where those of each begin [S + 1]",
        ),
        (
            (limit, torch.tensor([0, 2])),
            "mask 'docs', argument 'limit': expected a pair of int32 or int64 tensors, the entries of all sequences "
            "one after another and [3] of where those of each begin; got (int64 of shape [2], int64 of shape [2])",
        ),
    ):
        with pytest.raises(MetadataError) as raised:
            mask.describe(rows=8, cu_seqlens=cu, keys=1, limit=table)
        assert str(raised.value) == message


def test_flashmask_of_circles() -> None:
    mask = zoo.load("clear", radius=3, height=6, width=7, text=3)
    message = (
        r"^mask 'clear': FlashMask takes at most two hidden intervals of rows per column; the columns of Region @all "
        r"see \[.*\), so that up to \d+ are hidden; to_sdpa, to_fa4 and to_block_mask take any mask$"
    )
    with pytest.raises(CmirError, match=message):
        mask.to_flashmask(rows=45)


def test_a_cached_module_that_the_passes_do_not_make(monkeypatch: pytest.MonkeyPatch) -> None:
    from cmir.runtime import compiling

    monkeypatch.setattr(compiling.driver, "run_pipeline", lambda *_, **__: None)
    with pytest.raises(SpecError) as raised:
        cmir.compile(CAUSAL, prove=True)
    assert raised.value.message == "the cached module of this mask is not what its passes make; remove the cache"


def test_a_spec_that_is_too_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cmir.runtime import compiling

    def deep(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(compiling, "_compiled", deep)
    with pytest.raises(SpecError) as raised:
        cmir.compile(CAUSAL)
    assert raised.value.message == (
        "the spec is nested too deeply, or has too many Regions, for the compiler; make it flatter"
    )


@pytest.mark.parametrize(
    ("late", "message"),
    [
        (
            True,
            "CPU tensors need Triton's interpreter: TRITON_INTERPRET=1 was set after triton was imported; set it "
            "before",
        ),
        (
            False,
            "CPU tensors need Triton's interpreter: set TRITON_INTERPRET=1 before triton is imported, or give CUDA "
            "tensors",
        ),
    ],
)
def test_a_cpu_without_the_interpreter(late: bool, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "interpreting", lambda: False)
    monkeypatch.setenv("TRITON_INTERPRET", "1" if late else "0")
    with pytest.raises(CmirError) as raised:
        launch.require_backend(torch.device("cpu"))
    assert str(raised.value) == message


def test_overflow_says_what_overflowed() -> None:
    desc = zoo.load("causal").describe(rows=8, tile=(16, 16))
    desc.status[0] = (desc_overflow() << 32) | 5
    with pytest.raises(MetadataError) as raised:
        desc.check()
    assert str(raised.value) == (
        f"mask 'causal': tile 5 of the rows or columns touches more tiles than its list has room for, {desc.widths}: a "
        "sequence is longer than max_seqlen"
    )


def desc_overflow() -> int:
    from cmir.runtime.descriptor import OVERFLOW

    return OVERFLOW


def test_what_is_too_large_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    from cmir.runtime import descriptor

    with pytest.raises(MetadataError) as raised:
        zoo.load("causal").describe(rows=2**30)
    assert str(raised.value) == (
        "mask 'causal': an interval table of 1073741824 intervals a mask is too large; expected rows and cols such "
        "that it has less than 1073741824"
    )
    monkeypatch.setattr(descriptor, "MAX_SLOTS", 0)
    with pytest.raises(CmirError) as raised:
        zoo.load("causal").describe(rows=9)
    assert str(raised.value) == "mask 'causal' has 1 slots; kernels take at most 0"


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Missing())
import cmir

mask = cmir.zoo.load("causal")
assert mask.dense(rows=4).sum() == 10
for use in (
    lambda: mask.describe(rows=4),
    lambda: cmir.attention,
    lambda: cmir.Descriptor,
    lambda: cmir.from_mask_mod(lambda b, h, q, k: q >= k),
):
    try:
        use()
    except cmir.CmirError as error:
        print(error)
"""


def test_without_torch_what_needs_it_says_how_to_install_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{what} needs torch and triton: pip install 'cmir[torch]' (No module named 'torch')"
        for what in ("describe", "cmir.attention", "cmir.Descriptor", "from_mask_mod")
    ]


def test_another_package_that_is_missing_is_told_as_it_is() -> None:
    error = ModuleNotFoundError("No module named 'other'", name="other")
    assert missing_torch(error, "describe") is error
