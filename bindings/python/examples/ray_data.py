"""Ray Data: a network in actors, over a Parquet file of pictures.

    python ray_data.py PICTURES.parquet [--workers 1] [--gpus 0] [--device auto]

Each worker takes a CPU, and what reads the file wants one more. With ``--gpus 1`` each worker has a GPU of its own: Ray
sets CUDA_VISIBLE_DEVICES.
"""

import argparse
import os

import ray

from pose import Pose


class Worker:
    """An actor: the session is made once, and used for many batches."""

    def __init__(self, device):
        self.pose = Pose(device=device)

    def __call__(self, batch):
        found = self.pose.batch(batch["picture"])
        return {
            "id": batch["id"],
            "parts": [None if parts is None else parts.ravel().tolist() for parts, _ in found],
            "error": [error for _, error in found],
            "worker": [os.getpid()] * len(found),
        }


def run(path, workers=1, gpus=0, device="auto", batch=8):
    """Rows with ``id``, ``parts`` (x, y and score of each) and ``error``."""
    # A small file is one block, which one worker would get.
    pictures = ray.data.read_parquet(path).repartition(2 * workers)
    found = pictures.map_batches(
        Worker,
        fn_constructor_args=(device,),
        batch_size=batch,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
        num_gpus=gpus,
    )
    return found.take_all()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("path")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--gpus", type=float, default=0)
    options.add_argument("--device", default="auto")
    given = options.parse_args()
    rows = run(given.path, given.workers, given.gpus, given.device)
    bad = [row["id"] for row in rows if row["error"]]
    print(f"{len(rows)} pictures by {len({row['worker'] for row in rows})} workers; not read: {bad}")


if __name__ == "__main__":
    main()
