"""Trains the example's decoder on texts, byte by byte, and writes it as ONNX with weights in halves.

    python train.py --out data/decoder.onnx --minutes 3 TEXT...

Needs PyTorch and onnx. One text in ten is held out, in pieces of 2,000 bytes; its loss is printed in bits a byte.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from decoder import Shape, angles, names, random_weights, write

PIECE = 2000


def normal(x, weight):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def turned(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def logits(shape, weights, tables, ids, drop=0.0):
    batch, rows = ids.shape
    cosine, sine = [table[:rows] for table in tables]
    heads = lambda x, count: x.view(batch, rows, count, shape.depth).transpose(1, 2)
    spread = lambda x: x.repeat_interleave(shape.heads // shape.shared, 1)
    x = weights["embedding"][ids]
    for layer in range(shape.layers):
        w = lambda name: weights[f"{layer}.{name}"]
        h = normal(x, w("attention_norm"))
        q = turned(heads(h @ w("query"), shape.heads), cosine, sine)
        k = turned(heads(h @ w("key"), shape.shared), cosine, sine)
        v = heads(h @ w("value"), shape.shared)
        found = functional.scaled_dot_product_attention(q, spread(k), spread(v), is_causal=True)
        found = found.transpose(1, 2).reshape(batch, rows, shape.width) @ w("output")
        x = x + functional.dropout(found, drop)
        h = normal(x, w("hidden_norm"))
        up = functional.silu(h @ w("gate")) * (h @ w("up"))
        x = x + functional.dropout(up @ w("down"), drop)
    return normal(x, weights["norm"]) @ weights["unembedding"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--drop", type=float, default=0.1)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shape = Shape()
    text = b"\n\n".join(path.read_bytes() for path in sorted(options.texts))
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    of = lambda some: torch.tensor(np.frombuffer(b"".join(some), np.uint8).astype(np.int64), device=device)
    held_out = of(pieces[5::10])
    known = of([piece for index, piece in enumerate(pieces) if index % 10 != 5])
    weights = {
        name: torch.tensor(value, device=device, requires_grad=True)
        for name, value in random_weights(shape).items()
    }
    with torch.no_grad():
        weights["embedding"] *= 0.1
    tables = [torch.tensor(table, device=device) for table in angles(shape)]
    print(f"{len(known)} bytes, {sum(w.numel() for w in weights.values())} weights, {device}")

    def loss_of(ids, drop):
        found = logits(shape, weights, tables, ids[:, :-1], drop)
        return functional.cross_entropy(found.reshape(-1, shape.tokens), ids[:, 1:].reshape(-1))

    def taken(source, count):
        at = torch.randint(0, len(source) - options.rows - 1, (count,), device=device)
        return source[at[:, None] + torch.arange(options.rows + 1, device=device)]

    decayed = [w for name, w in weights.items() if w.dim() == 2]
    others = [w for w in weights.values() if w.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.98))
    begin, step, best, kept = time.time(), 0, math.inf, None
    while (share := (time.time() - begin) / (60 * options.minutes)) < 1:
        for group in adam.param_groups:
            group["lr"] = options.rate * min(1.0, step / 200) * (0.5 + 0.5 * math.cos(math.pi * share))
        loss = loss_of(taken(known, options.batch), options.drop)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        adam.step()
        step += 1
        if step % 500 == 0:
            with torch.no_grad():
                own = np.mean([loss_of(taken(held_out, 64), 0.0).item() for _ in range(8)]) / math.log(2)
            print(f"{step}: {loss.item() / math.log(2):.3f}, held out {own:.3f} bits a byte", flush=True)
            if own < best:
                best, kept = own, {name: w.detach().cpu().numpy() for name, w in weights.items()}
    write(options.out, shape, kept or {name: w.detach().cpu().numpy() for name, w in weights.items()}, True)
    print(f"held out {best:.3f} bits a byte")


if __name__ == "__main__":
    main()
