"""Writes what `tests/posenet_figures.rs` compares with: a picture of the network's size, the heads
computed in float64 from the weights as the file holds them, and a bound for float32 arithmetic.

    python golden.py --checkpoint checkpoint.pt --out ../../../tests/data

A sum of n products in float32, in any order, is off by at most `n u / (1 - n u) * sum |w x|` with
`u = 2^-24` (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1), and an error
`e` of its inputs adds at most `sum |w| e`; ReLU6 makes no error larger. Carried through all layers that
is a bound for each output, and a very safe one: errors rarely all have one sign. If the roundings are
taken as independent (Higham and Mary, 2019), the squares add instead of the values. The test allows
`LAMBDA` times the square root of that sum. Both are printed.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import network
import train
from bodies import Random
from render import Renderer
from scenes import scenes
from torch.nn.functional import conv2d

U = 2.0**-24
LAMBDA = 6
EVERY = 3  # rows and columns of the heads that are kept


def bounds(rows, x):
    """For each head: its values, the bound of errors of one sign, and the deviation of independent ones."""
    worst, square = torch.zeros_like(x), torch.zeros_like(x)
    heads = []
    for name, w, b, stride, dilation, groups, relu6 in rows:
        pad = dilation * (w.shape[-1] // 2)
        conv = lambda v, weights: conv2d(v, weights, None, stride, pad, dilation, groups)
        n = w[0].numel() + 1
        magnitude = conv(x.abs(), w.abs()) + b.abs()[None, :, None, None]
        new_worst = conv(worst, w.abs()) + n * U / (1 - n * U) * magnitude[:]
        # Each of the n partial sums is at most the magnitude, and rounded once, as is each product.
        new_square = conv(square, w * w) + 2 * n * (U * magnitude) ** 2
        y = conv2d(x, w, b, stride, pad, dilation, groups)
        if relu6:
            x, worst, square = y.clamp(0, 6), new_worst, new_square
        else:
            heads.append((name, y, new_worst, new_square.sqrt()))
    return heads


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=14)
    options = parser.parse_args()
    stored = torch.load(options.checkpoint, map_location="cpu")
    model = network.PoseNet(stored["width"]).eval()
    model.load_state_dict(stored["model"])
    rows = train.halved(network.folded(model), torch.float64, "cpu")
    size = stored["size"]
    picture = scenes(Random(options.seed, "cpu"), Renderer(False), 1, 1, size, size, calm=True)
    pixels = (picture.image[0] * 255).round().byte().permute(1, 2, 0).numpy()
    options.out.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(options.out / "posenet_figures.png", optimize=True)
    x = (torch.from_numpy(pixels).double().permute(2, 0, 1)[None] - 127.5) / 127.5
    kept = []
    for name, y, worst, deviation in bounds(rows, x):
        kept.append(y[:, :, ::EVERY, ::EVERY].permute(0, 2, 3, 1).flatten().float().numpy())
        print(f"{name}: values to {y.abs().max():.3g}, bound {worst.max():.2e}, {LAMBDA} deviations {LAMBDA * deviation.max():.2e}")
    np.save(options.out / "posenet_figures.npy", np.concatenate(kept))
    at = ", ".join(f"[{x:.1f}, {y:.1f}]" for x, y in picture.points[0, 0].tolist())
    print(f"height {picture.height[0, 0]:.1f}, parts {at}")
    print("seen", picture.seen[0, 0].tolist())


if __name__ == "__main__":
    main()
