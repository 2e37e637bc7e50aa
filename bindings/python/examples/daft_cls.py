"""Daft: a network in a class, over a Parquet file of pictures.

    python daft_cls.py PICTURES.parquet [--device auto]
"""

import argparse

import daft
from daft import DataType, Series

from pose import Pose

#: What a picture gives.
FOUND = DataType.struct({"parts": DataType.list(DataType.float32()), "error": DataType.string()})


# Threads share the process: runs release its lock. On Ray, `gpus=1` here gives each instance a GPU of its own.
@daft.cls(use_process=False)
class Worker:
    """The session is made once, and used for many batches."""

    def __init__(self, device: str):
        self.pose = Pose(device=device)

    @daft.method.batch(return_dtype=FOUND, batch_size=8)
    def find(self, pictures: Series):
        found = self.pose.batch(pictures.to_pylist())
        return [
            {"parts": None if parts is None else parts.ravel().tolist(), "error": error} for parts, error in found
        ]


def run(path, device="auto"):
    """Rows with ``id``, ``parts`` (x, y and score of each) and ``error``."""
    worker = Worker(device)
    pictures = daft.read_parquet(str(path))
    found = pictures.select("id", worker.find(pictures["picture"]).alias("found"))
    rows = found.select(found["id"], found["found"]["parts"].alias("parts"), found["found"]["error"].alias("error"))
    return rows.to_pylist()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("path")
    options.add_argument("--device", default="auto")
    given = options.parse_args()
    rows = run(given.path, given.device)
    bad = [row["id"] for row in rows if row["error"]]
    print(f"{len(rows)} pictures; not read: {bad}")


if __name__ == "__main__":
    main()
