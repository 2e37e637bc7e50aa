"""Options: threads, outputs by name, arrays to write to, bytes of pictures, any GPU; what errors name; what is printed."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import diptych
from conftest import IDS, PAIR, POSENET, ROOT, TINY, field, onnx


@pytest.fixture(scope="module")
def posenet():
    return diptych.Session(POSENET, device="cpu")


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(1).integers(0, 256, (1, 257, 257, 3), np.uint8)


def pair(**options):
    return diptych.Session(PAIR, dims={"rows": 2}, **options)


A, B = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.float32)


def test_outputs_are_chosen_at_a_run(device):
    session = pair(device=device)
    for names in (["difference"], ("difference", "sum"), "sum"):
        outputs = session.run({"a": A, "b": B}, outputs=names)
        assert list(outputs) == ([names] if isinstance(names, str) else list(names))
        for name, array in outputs.items():
            np.testing.assert_array_equal(array, A + B if name == "sum" else A - B)
    [outputs] = session.stream([{"a": A, "b": B}], outputs=["difference"])
    assert list(outputs) == ["difference"]
    np.testing.assert_array_equal(outputs["difference"], A - B)
    for names, message in [
        (["product"], "outputs: found no output 'product', wanted one of 'sum', 'difference'"),
        (["sum", "sum"], "outputs: found ['sum', 'sum'], wanted each name once"),
    ]:
        with pytest.raises(diptych.InputError, match=re.escape(message)):
            session.run({"a": A, "b": B}, outputs=names)
        with pytest.raises(diptych.InputError, match=re.escape(message)):
            session.stream([], outputs=names)


def test_outputs_that_a_session_is_made_without_are_not_computed(device, posenet):
    session = pair(device=device, outputs=["difference"])
    assert [port.name for port in session.outputs] == ["difference"]
    assert len(session.steps) < len(pair(device=device).steps)
    np.testing.assert_array_equal(session.run({"a": A, "b": B})["difference"], A - B)
    names = [port.name for port in posenet.outputs]
    one = diptych.Session(POSENET, device="cpu", outputs=[names[2]])
    assert [port.name for port in one.outputs] == [names[2]]
    assert len(one.steps) < len(posenet.steps)
    x = np.random.default_rng(0).random((1, 257, 257, 3), np.float32)
    np.testing.assert_array_equal(one.run(x)[names[2]], posenet.run(x)[names[2]])
    # The file's order, whatever order the names have.
    assert [port.name for port in pair(device="cpu", outputs=["difference", "sum"]).outputs] == ["sum", "difference"]
    with pytest.raises(diptych.ModelError, match='found no output "x", wanted one of'):
        pair(device="cpu", outputs=["x"])
    with pytest.raises(diptych.InputError, match="outputs: found no names"):
        pair(device="cpu", outputs=[])


def test_outputs_are_written_to_the_callers_arrays(device):
    session = pair(device=device)
    total, rest = np.full((2, 4), np.nan, np.float32), np.full((2, 4), np.nan, np.float32)
    outputs = session.run({"a": A, "b": B}, out={"sum": total})
    assert list(outputs) == ["sum"] and outputs["sum"] is total
    np.testing.assert_array_equal(total, A + B)
    outputs = session.run({"a": A, "b": B}, outputs=["difference", "sum"], out={"sum": total})
    assert list(outputs) == ["difference", "sum"] and outputs["sum"] is total
    np.testing.assert_array_equal(outputs["difference"], A - B)
    # An array alone is that of the one output that is wanted; a part of a larger one will do.
    large = np.zeros((6, 4), np.float32)
    assert session.run({"a": B, "b": A}, outputs=["difference"], out=large[2:4])["difference"].base is large
    np.testing.assert_array_equal(large[2:4], B - A)
    assert not large[:2].any() and not large[4:].any()
    outputs = session.run({"a": A, "b": A}, out={"difference": rest, "sum": total})
    assert list(outputs) == ["difference", "sum"] and not rest.any()
    ids = diptych.Session(IDS, device=device)
    a, b = np.array([[1, 2, 3]]), np.array([[3, 2, 1]])
    found = {"sum": np.zeros((1, 3), np.int64), "greater": np.ones((1, 3), np.bool_)}
    ids.run({"a": a, "b": b}, out=found)
    np.testing.assert_array_equal(found["sum"], a + b)
    np.testing.assert_array_equal(found["greater"], a > b)


def test_arrays_that_cannot_be_written_to_are_refused():
    session = pair(device="cpu")
    good = np.zeros((2, 4), np.float32)
    read_only = good.copy()
    read_only.flags.writeable = False
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float32).reshape(2, 4)
    shared = np.zeros((3, 4), np.float32)
    cases = [
        ({"sum": good.astype(np.float64)}, "out['sum']: found elements of float64, wanted float32"),
        ({"sum": good.astype(">f4")}, "out['sum']: found elements of >f4, wanted float32"),
        ({"sum": np.zeros((2, 3), np.float32)}, "out['sum']: found shape (2, 3), wanted (2, 4)"),
        ({"sum": np.zeros((4, 2), np.float32).T}, "out['sum']: found strides (4, 8), wanted a contiguous array in C order"),
        ({"sum": unaligned}, "wanted a contiguous array in C order"),
        ({"sum": read_only}, "out['sum']: found an array that is read-only, wanted one that may be written"),
        ({"sum": [0.0] * 8}, "out['sum']: found a list, wanted a NumPy array"),
        ({"sum": shared[:2], "difference": shared[1:]}, "out['difference']: found memory of another output, wanted memory of its own"),
        ({"sum": A}, "out['sum']: found memory of an input, wanted memory of its own"),
        ({"product": good}, "out: found no output 'product', wanted one of 'sum', 'difference'"),
        (good, "out: found one array, wanted arrays by name for 'sum', 'difference'"),
    ]
    for out, message in cases:
        with pytest.raises(diptych.InputError) as caught:
            session.run({"a": A, "b": B}, out=out)
        assert message in str(caught.value), str(caught.value)
    with pytest.raises(diptych.InputError, match=re.escape("out: found output 'sum', wanted one of the outputs that are wanted, ['difference']")):
        session.run({"a": A, "b": B}, outputs=["difference"], out={"sum": good})
    assert not good.any() and not shared.any()


def test_extents_that_a_run_decides_are_checked_after_it():
    session = diptych.Session(PAIR, device="cpu")
    out = np.zeros((3, 4), np.float32)
    session.run({"a": A[[0, 1, 0]], "b": B[[0, 1, 0]]}, out={"sum": out})
    np.testing.assert_array_equal(out, (A + B)[[0, 1, 0]])
    with pytest.raises(diptych.InputError, match=re.escape("output 'sum': found an array of shape [3, 4], wanted [2, 4]")):
        session.run({"a": A, "b": B}, out={"sum": out})
    np.testing.assert_array_equal(out, (A + B)[[0, 1, 0]])


def test_batches_choose_outputs_too(posenet):
    name = posenet.outputs[1].name
    x = np.random.default_rng(0).random((1, 257, 257, 3), np.float32)
    wanted = posenet.run(x)[name]
    out = np.zeros_like(wanted)
    with diptych.Batch(POSENET, device="cpu", max_batch=2, sizes=[1], threads=1, outputs=[name, posenet.outputs[0].name]) as batch:
        assert [port.name for port in batch.outputs] == [posenet.outputs[0].name, name]
        assert list(batch.run(x, outputs=[name])) == [name]
        assert batch.run(x, out={name: out})[name] is out
        np.testing.assert_allclose(out, wanted, atol=1e-4)
        assert list(batch.submit(x).wait(outputs=[name])) == [name]
        with pytest.raises(diptych.InputError, match="out: found no output 'x'"):
            batch.run(x, out={"x": out})
        with pytest.raises(diptych.InputError, match="input 'image': found a picture of uint8"):
            batch.run(np.zeros((1, 257, 257, 3), np.uint8))
    with diptych.DevicePool(POSENET, ["cpu"], sizes=[1], pixels=diptych.Pixels.range(0, 255)) as pool:
        bytes_ = np.full((1, 257, 257, 3), 3, np.uint8)
        np.testing.assert_allclose(pool.run(bytes_)[name], posenet.run(bytes_.astype(np.float32))[name], atol=1e-4)


def test_bytes_without_a_scale_are_refused(posenet, picture):
    message = "input 'image': found a picture of uint8, of which the file does not say what numbers they are, wanted pixels="
    for run in (posenet.run, posenet.profile, lambda given: list(posenet.stream([given]))):
        with pytest.raises(diptych.InputError, match=re.escape(message)):
            run(picture)
    # Integers of other types are numbers, and so are bytes for an input that is no picture or is one of bytes.
    posenet.run(picture.astype(np.int16))
    np.testing.assert_array_equal(diptych.Session(TINY, device="cpu").run(np.array([1, 2, 3], np.uint8))["y"], [2, 4, 6])
    bytes_ = onnx([("Add", ["x", "x"], ["y"])], [("x", [1, 1, 3], 2)], [("y", [1, 1, 3], 2)])
    given = np.array([[[1, 2, 3]]], np.uint8)
    np.testing.assert_array_equal(diptych.Session(bytes_, device="cpu").run(given)["y"], 2 * given)


@pytest.mark.parametrize(
    ("pixels", "mean", "deviation"),
    [
        (diptych.Pixels.range(-1, 1), 127.5, 127.5),
        (diptych.Pixels.range(0, 1), 0, 255),
        (diptych.Pixels.range(0, 255), 0, 1),
        (diptych.Pixels(mean=(123.675, 116.28, 103.53), deviation=(58.395, 57.12, 57.375)), (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
        ({"image": diptych.Pixels(mean=10, deviation=(1, 2, 4))}, 10, (1, 2, 4)),
        # Numbers of NumPy's, and such as float32 does not hold.
        (diptych.Pixels(mean=np.float32(10), deviation=np.array([1, 2, 4])), 10, (1, 2, 4)),
        (diptych.Pixels(mean=np.int64(10), deviation=0.1), 10, 0.1),
        (diptych.Pixels.range(0, np.float64(0.1)), 0, 255.0 / 0.1),
    ],
)
def test_bytes_are_scaled_as_is_said(posenet, picture, pixels, mean, deviation):
    name = posenet.outputs[0].name
    wanted = posenet.run(((picture - np.float64(mean)) / np.float64(deviation)).astype(np.float32))
    session = diptych.Session(POSENET, device="cpu", pixels=pixels)
    [streamed] = session.stream([picture])
    for found in (session.run(picture), streamed):
        np.testing.assert_array_equal(found[name], wanted[name])
    assert session.profile(picture)


def test_channels_may_come_first():
    network = onnx([("Add", ["x", "x"], ["y"])], [("x", [1, 3, 2, 2])], [("y", [1, 3, 2, 2])])
    session = diptych.Session(network, device="cpu", pixels=diptych.Pixels(mean=(0, 10, 20), deviation=(1, 2, 4)))
    given = np.arange(12, dtype=np.uint8).reshape(1, 3, 2, 2)
    mean, deviation = (np.array(own, np.float32).reshape(1, 3, 1, 1) for own in ([0, 10, 20], [1, 2, 4]))
    np.testing.assert_array_equal(session.run(given)["y"], 2 * (given - mean) / deviation)


def test_bytes_are_scaled_as_the_metadata_say(shared):
    model = shared / "models/hand_landmark_lite.tflite"
    if not model.exists():
        pytest.skip(f"{model} is not there")
    session = diptych.Session(model, device="cpu")
    assert session.model.inputs[0].normalisation == [(0.0, 255.0)] * 3
    given = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), np.uint8)
    wanted, found = session.run((given / 255).astype(np.float32)), session.run(given)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    # What the caller says goes before what the file says.
    own = diptych.Session(model, device="cpu", pixels=diptych.Pixels.range(0, 255)).run(given)
    name = session.outputs[0].name
    np.testing.assert_array_equal(own[name], session.run(given.astype(np.float32))[name])
    assert not np.array_equal(own[name], found[name])


def test_scales_that_do_not_fit_are_refused(picture):
    cases = [
        ({"other": diptych.Pixels()}, "pixels: found input 'other', wanted one of the inputs of floats, 'image'"),
        ({"image": (0, 1)}, "pixels: found (0, 1) for input 'image', wanted diptych.Pixels"),
        (diptych.Pixels(deviation=0), "pixels: found means and deviations [(127.5, 0.0)], wanted finite numbers"),
        ((0, 1), "pixels: found (0, 1), wanted diptych.Pixels"),
        (diptych.Pixels(mean=float("nan")), "pixels: found mean nan, wanted a finite number"),
        (diptych.Pixels(deviation=(1, float("inf"), 1)), "pixels: found deviation (1, inf, 1), wanted a finite number"),
        (diptych.Pixels(mean="dark"), "pixels: found mean 'dark', wanted a number"),
        (diptych.Pixels(mean=()), "pixels: found mean (), wanted a finite number"),
        (diptych.Pixels(mean=(1, 2, 3), deviation=(1, 2)), "pixels: found 3 means, wanted 2, as many as deviations"),
    ]
    for pixels, message in cases:
        with pytest.raises(diptych.InputError) as caught:
            diptych.Session(POSENET, device="cpu", pixels=pixels)
        assert message in str(caught.value), str(caught.value)
    for low, high in [(1, 1), (0, float("inf")), (float("nan"), 1)]:
        with pytest.raises(diptych.InputError, match=f"pixels: found {low} to {high}, wanted two finite numbers that differ"):
            diptych.Pixels.range(low, high)
    two = diptych.Session(POSENET, device="cpu", pixels=diptych.Pixels(mean=(1, 2), deviation=(3, 4)))
    with pytest.raises(diptych.InputError, match="input 'image': found a picture of 1x257x257x3, wanted 2 channels"):
        two.run(picture)


def test_a_model_in_memory_is_given_the_files_of_its_weights():
    place = field(13, field(1, "location") + field(2, "weights"))
    weights = field(1, 2) + field(2, 1) + field(8, "w") + place + field(14, 1)
    model = onnx([("Add", ["x", "w"], ["y"])], [("x", [1, 2])], [("y", [1, 2])], [weights])
    with pytest.raises(diptych.ModelError) as caught:
        diptych.Session(model, device="cpu")
    assert "in files" in str(caught.value) and "::" not in str(caught.value), str(caught.value)
    contents = np.array([10, 20], np.float32).tobytes()
    for given in (contents, bytearray(contents), memoryview(contents)):
        session = diptych.Session(model, device="cpu", files={"weights": given})
        np.testing.assert_array_equal(session.run(np.array([[1, 2]], np.float32))["y"], [[11, 22]])
    with diptych.Batch(model, device="cpu", sizes=[1], files={"weights": contents}) as batch:
        assert batch.outputs[0].name == "y"
    with pytest.raises(diptych.InputError, match="files: found str for 'weights', wanted its bytes"):
        diptych.Session(model, device="cpu", files={"weights": "weights.bin"})


COUNT = """
import sys, threading, numpy as np, diptych
session = diptych.Session(sys.argv[1], device="cpu", threads=int(sys.argv[2]) or None)
for _ in range(5):
    session.run(np.zeros((1, 257, 257, 3), np.float32))
print(sum(open(f"/proc/self/task/{task}/comm").read().startswith("diptych helper") for task in __import__("os").listdir("/proc/self/task")))
"""


def test_a_session_computes_on_as_many_threads_as_it_is_given(posenet):
    x = np.random.default_rng(0).random((1, 257, 257, 3), np.float32)
    for threads in (1, 2, 64):
        found = diptych.Session(POSENET, device="cpu", threads=threads).run(x)
        for name, array in posenet.run(x).items():
            np.testing.assert_allclose(found[name], array, atol=1e-4)
    for threads in (0, -1):
        with pytest.raises(diptych.InputError, match=f"threads: found {threads}, wanted 1 or more"):
            diptych.Session(POSENET, device="cpu", threads=threads)

    def helpers(threads):
        command = [sys.executable, "-c", COUNT, str(POSENET), str(threads)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert helpers(1) == 0
    if sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1:
        assert helpers(2) == 1


def test_a_gpu_is_never_the_cpu():
    has_gpu = any(not device.software for device in diptych.devices())
    if has_gpu:
        info = diptych.Session(TINY, device="gpu").info
        assert info.backend in ("wgpu", "opencl") and not info.device.software
        return
    with pytest.raises(diptych.NoDeviceError) as caught:
        diptych.Session(TINY, device="gpu")
    assert (caught.value.backend, caught.value.wanted) == ("gpu", "the best GPU")
    assert len(caught.value.tried) == 2 and all(reason.startswith(("wgpu", "opencl")) for reason in caught.value.tried)
    with pytest.raises(diptych.NoDeviceError):
        diptych.Batch(TINY, device="gpu", dims={})


def test_nothing_is_printed(tmp_path):
    """Without XDG_RUNTIME_DIR, as in containers, a layer of Mesa's has libwayland complain whenever devices are listed."""
    program = "import sys, diptych; diptych.devices(); print(diptych.Session(sys.argv[1], device=sys.argv[2]).info.backend)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_RUNTIME", "WAYLAND"))}
    model = tmp_path / "tiny.onnx"
    model.write_bytes(TINY)
    for device in ("auto", "cpu"):
        command = [sys.executable, "-c", program, str(model), device]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.strip() in ("cpu", "wgpu", "opencl")


def test_errors_name_the_packages_own_options():
    cases = [
        (lambda: diptych.Batch(TINY, device="cpu", max_batch=0), "max_batch: found 0, wanted 1 to 1024"),
        (lambda: diptych.Batch(TINY, device="cpu", max_waiting=0), "max_waiting: found 0, wanted at least 1"),
        (lambda: diptych.Session(POSENET, device="cpu", caches=4), "caches"),
    ]
    for make, message in cases:
        with pytest.raises(diptych.Error) as caught:
            make()
        assert message in str(caught.value) and "::" not in str(caught.value), str(caught.value)
        assert "::" not in getattr(caught.value, "name", "")
