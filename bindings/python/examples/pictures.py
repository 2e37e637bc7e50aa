"""A Parquet file of generated pictures: the drawn people of the bundled picture, moved, mirrored and in other light.

    python pictures.py OUT.parquet [COUNT]
"""

import io
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

#: Our own picture; examples/posenet/train says how it was drawn.
PEOPLE = Path(__file__).resolve().parents[3] / "examples/posenet/data/people.png"

#: Pictures in a row group: what an engine reads at once.
GROUP = 8


def draw(number):
    """A picture, the same for the same number, as a file of JPEG."""
    random = np.random.default_rng(number)
    people = Image.open(PEOPLE).convert("RGB")
    width, height = people.size
    side = int(random.uniform(0.6, 1.0) * min(width, height))
    left, top = random.integers(0, width - side + 1), random.integers(0, height - side + 1)
    picture = people.crop((left, top, left + side, top + side))
    if random.random() < 0.5:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    light = random.uniform(0.7, 1.2)
    picture = picture.point(lambda value: min(255, int(light * value)))
    text = io.BytesIO()
    picture.save(text, "JPEG", quality=90)
    return text.getvalue()


def write(path, count):
    """A file with the columns ``id`` and ``picture``; picture 3 is damaged, as some always are."""
    pictures = [draw(number) for number in range(count)]
    if count > 3:
        pictures[3] = pictures[3][:100]
    table = pa.table({"id": list(range(count)), "picture": pictures})
    pq.write_table(table, path, row_group_size=GROUP)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 64)
