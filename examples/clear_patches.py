"""CLEAR with its image stored patch by patch: the same attention from fewer tiles. Runs on a GPU or on a CPU.

python examples/clear_patches.py
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported: run the kernels on the CPU

import cmir
from cmir import layouts, zoo
from cmir.runtime.reference import reference_attention

HEIGHT, WIDTH, TEXT = 8, 32, 16
STATICS = {"radius": 5, "height": HEIGHT, "width": WIDTH, "text": TEXT}


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    length = TEXT + HEIGHT * WIDTH
    raster = cmir.compile(zoo.path("clear"), statics=STATICS)
    # An image token sees a circle: of a patch as large as a tile, a few patches around it, where of a tile of raster
    # rows it is many.
    patches = cmir.compile(
        zoo.path("clear"), statics=STATICS, layout=layouts.Patch(("height", "width"), (4, 4), after="text")
    )
    tile = (16, 16)  # 128 x 128 and patches of 8 x 16 at the size of a model
    before = raster.describe(rows=length, device=device, tile=tile)
    desc = patches.describe(rows=length, device=device, tile=tile).check()
    tiles = [int(d.row_count.sum()) for d in (before, desc)]
    print(f"{int(desc.area)} visible pairs; tiles visited: {tiles[0]} in raster order, {tiles[1]} in patches")

    q, k, v = (torch.randn(1, 2, length, 16, device=device, requires_grad=True) for _ in range(3))
    # In the order of the tokens, moved to the layout and back:
    out = cmir.attention(q, k, v, desc, permute=True)
    want, _ = reference_attention(q, k, v, torch.from_numpy(raster.dense(rows=length)).to(device))
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-4)
    gradient = torch.randn_like(out)
    for got, expected in zip(
        torch.autograd.grad(out, (q, k, v), gradient), torch.autograd.grad(want, (q, k, v), gradient), strict=True
    ):
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)

    # A model moves its tokens once, and stays in the layout through all its layers:
    x = torch.randn(1, length, 32, device=device)
    y = desc.permute(x)
    for _ in range(2):
        heads = y.view(1, length, 2, 16).transpose(1, 2)
        y = y + cmir.attention(heads, heads, heads, desc).transpose(1, 2).reshape(1, length, 32)
    assert desc.unpermute(y).shape == x.shape
    print("equal to eager attention in raster order, gradients too")


if __name__ == "__main__":
    main()
