"""Trains the small PoseNet on generated figures, and writes it as a TensorFlow Lite file.

    python train.py --out DIR                                                      # on a large GPU
    python train.py --out DIR --rounds 2 --render 8 --batch 4 --size 65 --held-out 8    # a rehearsal

Everything is drawn from `--seed`; `--minutes` instead of `--rounds` takes as many rounds as fit, and says
how many. `DIR` then holds posenet.tflite, checkpoint.pt, report.json, log.csv and samples.png.
"""

import argparse
import copy
import json
import math
import time
from pathlib import Path

import torch
import torch.nn.functional as nn

import network
import tflite
from bodies import PARTS, Random
from network import PoseNet
from render import Renderer
from scenes import scenes

STRETCH = 0.35
HELD_OUT = 1_000_003  # the seed of the figures that are never trained on
BONES = [(5, 6), (11, 12), (5, 11), (6, 12), (5, 7), (7, 9), (6, 8), (8, 10), (11, 13), (13, 15), (12, 14), (14, 16), (0, 1), (0, 2), (1, 3), (2, 4)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--width", type=float, default=0.35, help="of MobileNetV1")
    parser.add_argument("--size", type=int, default=257, help="of the input: a multiple of 16, plus 1")
    parser.add_argument("--rounds", type=int, default=300, help="of new pictures, each seen twice")
    parser.add_argument("--minutes", type=float, help="as many rounds as fit into this time, instead of --rounds")
    parser.add_argument("--render", type=int, default=4096, help="new pictures in a round: a multiple of 4")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", type=Path, help="a checkpoint.pt to go on from")
    parser.add_argument("--held-out", type=int, default=2048, help="single figures to evaluate on")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def render(random, renderer, count, size):
    """`count` pictures, half with one person, a quarter with two, a quarter with two to four.

    They are made in four long batches of one size: many short operations on few pictures would keep
    the host busy, and each size is compiled anew.
    """
    groups = [scenes(random, renderer, count // 4, slots, size, size, STRETCH) for slots in (1, 1, 2, 4)]

    def join(name):
        fields = [getattr(group, name) for group in groups]
        pads = [torch.cat([f, f.new_zeros(f.shape[0], 4 - f.shape[1], *f.shape[2:])], 1) for f in fields]
        return torch.cat(pads)

    return torch.cat([group.image for group in groups]), join("points"), join("seen"), join("present")


def views(random, pictures, batch):
    """Batches of two views of each picture: as it is, and turned, moved, scaled and mirrored."""
    image, points, seen, present = pictures
    count, _, _, size = image.shape
    for view in range(2):
        order = torch.argsort(random.uniform(0, 1, count))
        for start in range(0, count - batch + 1, batch):
            chosen = order[start:start + batch]
            row = image[chosen], points[chosen], seen[chosen]
            yield (*(row if view == 0 else moved(random, *row, size)), present[chosen])


def moved(random, image, points, seen, size):
    """Another view of pictures (B, 3, S, S) and of their truth."""
    count = image.shape[0]
    angle, zoom = 0.15 * random.normal(count), torch.exp(0.16 * random.normal(count)).clamp(0.7, 1.4)
    mirror = 1 - 2 * random.chance(0.5, count)
    shift = 0.10 * random.normal(count, 2)
    # From the new picture's place, in -1..1, to the old one's: p = M q + shift.
    c, s = torch.cos(angle) / zoom, torch.sin(angle) / zoom
    matrix = torch.stack([c * mirror, -s, s * mirror, c], -1).reshape(count, 2, 2)
    grid = nn.affine_grid(torch.cat([matrix, shift[:, :, None]], -1), image.shape, align_corners=True)
    image = nn.grid_sample(image, grid, padding_mode="reflection", align_corners=True)
    gain = torch.exp(0.15 * random.normal(count, 1, 1, 1) + 0.05 * random.normal(count, 3, 1, 1))
    image = (image * gain + 0.04 * random.normal(count, 1, 1, 1)).clamp(0, 1)
    half = (size - 1) / 2
    old = points / half - 1 - shift[:, None, None]
    points = (torch.linalg.inv(matrix)[:, None, None] @ old[..., None])[..., 0] * half + half
    swap = torch.tensor([0] + [k + 1 if k % 2 else k - 1 for k in range(1, PARTS)], device=image.device)
    flipped = (mirror < 0)[:, None, None]
    points = torch.where(flipped[..., None], points[:, :, swap], points)
    seen = torch.where(flipped, seen[:, :, swap], seen)
    return image, points, seen * ((points >= 0) & (points <= size - 1)).all(-1)


def normalised(image):
    """As the program makes its input: bytes, then (v - 127.5) / 127.5."""
    return ((image * 255).round() - 127.5) / 127.5


def train(options, model, random, renderer):
    device, size = options.device, options.size
    started = time.time()
    # Of four ways tried on an H200, bfloat16 with the channels last is the fastest: 4 times NCHW.
    kind = torch.float32 if device == "cpu" else torch.bfloat16
    model.to(memory_format=torch.channels_last).train()
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-4}, {"params": rest, "weight_decay": 0.0}], options.rate, fused=device != "cpu")
    average = copy.deepcopy(model)
    pairs = [[v for v in net.state_dict().values() if v.is_floating_point()] for net in (average, model)]
    rounds, log, step, lap = options.rounds, [], 0, 0
    each = 2 * (options.render // options.batch)
    while lap < rounds:
        if options.minutes and lap == 3:
            sync(device)
            begun = time.time()
        if options.minutes and lap == 8:
            sync(device)
            took = (time.time() - begun) / 5
            rounds = lap + max(1, int((options.minutes * 60 - (time.time() - started)) / took * 0.985))
            print(f"{took:.2f} s a round, {options.render / took:.0f} new pictures a second: --rounds {rounds}", flush=True)
        pictures = render(random, renderer, options.render, size)
        for images, *data in views(random, pictures, options.batch):
            share = step / (rounds * each) if lap >= 8 or not options.minutes else 0.0
            warm = min(1.0, (step + 1) / min(200, max(1, rounds * each // 10)))
            for group in optimizer.param_groups:
                group["lr"] = options.rate * warm * (0.5 + 0.5 * math.cos(math.pi * share))
            with torch.autocast(device, kind, enabled=kind != torch.float32):
                outputs = model(normalised(images).contiguous(memory_format=torch.channels_last))
            total, parts = network.loss(outputs, *data, size)
            optimizer.zero_grad(set_to_none=True)
            total.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            torch._foreach_lerp_(*pairs, 1 - min(0.998, (step + 1) / (step + 20)))
            step += 1
        if lap % 10 == 0 or lap + 1 == rounds:
            row = [step, round(time.time() - started, 1), total.item(), *(float(part) for part in parts)]
            log.append(row)
            print("step {} {:.0f} s: loss {:.3f} = heatmap {:.3f} + offset {:.3f} + displacements {:.3f}".format(*row), flush=True)
        lap += 1
    print(f"{rounds} rounds, {step} steps of {options.batch} in {time.time() - started:.0f} s", flush=True)
    return average, log, rounds


def sync(device):
    if device != "cpu":
        torch.cuda.synchronize()


def halved(rows, kind, device):
    """The folded rows with the values that the float16 file holds."""
    return [(name, w.half().to(device, kind), b.half().to(device, kind), *rest) for name, w, b, *rest in rows]


def evaluate(options, rows, renderer):
    """PCK@0.1 of the written weights on figures never trained on."""
    torch.backends.cudnn.allow_tf32 = False
    random = Random(HELD_OUT, options.device)
    rows = halved(rows, torch.float32, options.device)
    totals = torch.zeros(4, PARTS)
    for start in range(0, options.held_out, 128):
        count = min(128, options.held_out - start)
        data = scenes(random, renderer, count, 1, options.size, options.size, STRETCH)
        found, _ = network.decode_single(network.run_folded(rows, normalised(data.image)))
        points, seen = data.points[:, 0], data.seen[:, 0]
        near = network.pck(found, points, seen, data.height[:, 0])
        strict = network.pck(found, points, seen, None)
        totals += torch.stack([near.sum(0), strict.sum(0), (near & (seen > 0.75)).sum(0), (seen > 0.75).sum(0)]).cpu()
        count = (seen > 0).sum(0).cpu()
        wanted = count if start == 0 else wanted + count
    near, strict, visible, wanted_visible = totals
    return {
        "figures": options.held_out, "seed": HELD_OUT,
        "pck": (near.sum() / wanted.sum()).item(), "pck_of_box": (strict.sum() / wanted.sum()).item(),
        "pck_visible_parts": (visible.sum() / wanted_visible.sum()).item(),
        "pck_by_part": [round(v, 4) for v in (near / wanted).tolist()],
    }


def samples(options, rows, renderer, path):
    """A sheet of held-out pictures with what the network finds on those of one person."""
    from PIL import Image, ImageDraw

    random = Random(HELD_OUT + 1, options.device)
    rows = halved(rows, torch.float32, options.device)
    size = options.size
    sheet = Image.new("RGB", (6 * size, 4 * size))
    for line, slots in enumerate((1, 1, 1, 4)):
        data = scenes(random, renderer, 6, slots, size, size, STRETCH)
        found, score = network.decode_single(network.run_folded(rows, normalised(data.image)))
        pixels = (data.image * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        for index in range(6):
            picture = Image.fromarray(pixels[index])
            draw = ImageDraw.Draw(picture)
            at, sure = found[index].tolist(), score[index].tolist()
            for a, b in BONES if slots == 1 else []:
                if min(sure[a], sure[b]) > 0.25:
                    draw.line([*at[a], *at[b]], fill=(255, 160, 40) if a % 2 else (60, 200, 255), width=2)
            sheet.paste(picture, (index * size, line * size))
    sheet.save(path)


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.size % network.STRIDE != 1:
        raise SystemExit(f"--size {options.size}: wanted a multiple of {network.STRIDE}, plus 1")
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    model = PoseNet(options.width).to(options.device)
    if options.resume:
        model.load_state_dict(torch.load(options.resume, map_location=options.device)["model"])
    renderer = Renderer(compiled=options.device != "cpu")
    model, log, rounds = train(options, model, Random(options.seed, options.device), renderer)
    renderer = Renderer(compiled=False)  # for few pictures

    model.eval().float()
    torch.save({"model": model.state_dict(), "width": options.width, "size": options.size, "rounds": rounds}, options.out / "checkpoint.pt")
    rows = network.folded(model)
    file = tflite.posenet(rows, options.size, f"PoseNet, MobileNetV1 {options.width}, trained on generated figures by diptych's examples/posenet/train")
    (options.out / "posenet.tflite").write_bytes(file)
    report = {"file_bytes": len(file), "width": options.width, "size": options.size, "rounds": rounds, "render": options.render, "batch": options.batch, "seed": options.seed}
    report |= evaluate(options, rows, renderer)
    (options.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (options.out / "log.csv").write_text("step,seconds,loss,heatmap,offset,displacements\n" + "".join(",".join(f"{v:g}" for v in row) + "\n" for row in log))
    print(json.dumps(report), flush=True)
    samples(options, rows, renderer, options.out / "samples.png")


if __name__ == "__main__":
    main()
