"""The examples with Ray Data and Daft, against a plain loop over the same pictures."""

import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from conftest import ROOT

EXAMPLES = ROOT / "bindings/python/examples"
sys.path.insert(0, str(EXAMPLES))

COUNT = 24


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    import pictures

    path = tmp_path_factory.mktemp("pictures") / "pictures.parquet"
    pictures.write(path, COUNT)
    return path


@pytest.fixture(scope="module")
def wanted(pictures):
    """What a plain loop finds, by the picture's number."""
    from pose import Pose

    pose, found = Pose(device="cpu"), {}
    for row in pq.read_table(pictures).to_pylist():
        try:
            frame, scale = pose.decode(row["picture"])
        except OSError:
            found[row["id"]] = None
        else:
            found[row["id"]] = pose.parts(pose.session.run(frame), scale)
    assert [number for number, parts in found.items() if parts is None] == [3]
    # Other pictures have other people.
    assert not np.allclose(found[0], found[1])
    # People are found: their parts have scores.
    assert np.mean([parts[:, 2].mean() for parts in found.values() if parts is not None]) > 0.3
    return found


def check(rows, wanted):
    assert sorted(row["id"] for row in rows) == list(range(COUNT))
    for row in rows:
        parts = wanted[row["id"]]
        if parts is None:
            assert row["parts"] is None and row["error"], row
        else:
            assert row["error"] is None
            np.testing.assert_allclose(np.reshape(row["parts"], parts.shape), parts, rtol=1e-5, atol=1e-4)


def test_ray_data(pictures, wanted):
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    import ray_data

    ray.init(
        # One for each worker, and one for what reads the file.
        num_cpus=3,
        include_dashboard=False,
        object_store_memory=200_000_000,
        runtime_env={"env_vars": {"PYTHONPATH": str(EXAMPLES)}},
    )
    try:
        rows = ray_data.run(str(pictures), workers=2, device="cpu")
    finally:
        ray.shutdown()
    check(rows, wanted)
    assert len({row["worker"] for row in rows}) == 2


def test_daft(pictures, wanted):
    pytest.importorskip("daft")
    import daft_cls

    check(daft_cls.run(pictures, device="cpu"), wanted)
