"""Writes generated pictures: a test set, a single picture, a sheet to choose from, or a film.

    python figures.py set --out DIR --count 256 --people 1       # pictures and truth.json for `posenet --evaluate`
    python figures.py picture --out people.png --people 4 --seed 7 --size 640x480
    python figures.py sheet --out sheet.png --people 4 --seed 1 --count 24
    python figures.py film --out DIR --people 3 --seed 3 --count 48
"""

import argparse
import json
from pathlib import Path

import torch
from PIL import Image

from bodies import Motion, Random, Still
from render import Renderer
from scenes import scenes
from train import HELD_OUT, STRETCH


def pixels(image):
    return (image * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()


def finer(image, by):
    """The mean of `by` x `by` pixels: smoother edges than the renderer's own."""
    return torch.nn.functional.avg_pool2d(image, by) if by > 1 else image


def write_set(options, width, height, renderer):
    random = Random(HELD_OUT if options.seed is None else options.seed, options.device)
    rows = []
    for start in range(0, options.count, 32):
        count = min(32, options.count - start)
        data = scenes(random, renderer, count, options.people, height, width, STRETCH)
        for index, picture in enumerate(pixels(data.image)):
            name = f"{start + index:04}.jpg"
            Image.fromarray(picture).save(options.out / name, quality=92)
            people = [
                {
                    "height": round(data.height[index, slot].item(), 2),
                    # Right of and below the centre of the first pixel; 1 seen, 0.5 hidden, 0 outside the picture.
                    "keypoints": [[round(x, 2), round(y, 2), seen] for (x, y), seen in
                                  zip(data.points[index, slot].tolist(), data.seen[index, slot].tolist())],
                }
                for slot in range(options.people) if data.present[index, slot]
            ]
            rows.append({"file": name, "people": people})
    (options.out / "truth.json").write_text(json.dumps({"pictures": rows}, separators=(",", ":")) + "\n")


def calm(options, width, height, renderer, seed):
    random = Random(seed, options.device)
    data = scenes(random, renderer, 1, options.people, height * 2, width * 2, calm=True)
    return finer(data.image, 2)


def write_sheet(options, width, height, renderer):
    from PIL import ImageDraw

    first = options.seed or 0
    sheet = Image.new("RGB", (6 * width // 2, -(-options.count // 6) * height // 2))
    for index in range(options.count):
        picture = Image.fromarray(pixels(calm(options, width, height, renderer, first + index))[0])
        picture = picture.resize((width // 2, height // 2))
        ImageDraw.Draw(picture).text((3, 3), str(first + index), fill=(255, 0, 0))
        sheet.paste(picture, (index % 6 * width // 2, index // 6 * height // 2))
    sheet.save(options.out)


def write_film(options, width, height, renderer):
    seed = options.seed or 0
    still = Still(seed, options.device, options.count)
    motion = Motion(seed + 1, options.device, options.count, keys=max(2, options.count // 10))
    data = scenes(still, renderer, options.count, options.people, height * 2, width * 2, calm=True, motion=motion)
    for index, picture in enumerate(pixels(finer(data.image, 2))):
        Image.fromarray(picture).save(options.out / f"{index:04}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["set", "picture", "sheet", "film"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=48, help="of pictures or frames")
    parser.add_argument("--people", type=int, choices=[1, 2, 3, 4], default=1, help="4 stands for two to four")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--size", help="WIDTHxHEIGHT")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true", help="the renderer: pays for many pictures; needs a C++ compiler")
    options = parser.parse_args()
    width, height = map(int, (options.size or ("257x257" if options.what == "set" else "640x480")).split("x"))
    renderer = Renderer(compiled=options.compile)
    if options.what in ("set", "film"):
        options.out.mkdir(parents=True, exist_ok=True)
    if options.what == "set":
        write_set(options, width, height, renderer)
    elif options.what == "sheet":
        write_sheet(options, width, height, renderer)
    elif options.what == "film":
        write_film(options, width, height, renderer)
    else:
        Image.fromarray(pixels(calm(options, width, height, renderer, options.seed or 0))[0]).save(options.out)


if __name__ == "__main__":
    main()
