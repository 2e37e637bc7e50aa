"""Sessions: results, memory, threads, streams, errors."""

import gc
import itertools
import pickle
import re
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import diptych
from conftest import IDS, PAIR, POSENET, ROOT, TINY, onnx


def picture(seed=0):
    return np.random.default_rng(seed).random((1, 257, 257, 3), np.float32)


@pytest.fixture(scope="module")
def posenet():
    return diptych.Session(POSENET, device="cpu")


class Spy:
    """Stands before the native network, and keeps the addresses of what it is given."""

    def __init__(self, native):
        self._native, self.read = native, []

    def run(self, inputs, places, given):
        self.read = [array.ctypes.data for _, array in inputs]
        return self._native.run(inputs, places, given)

    def __getattr__(self, name):
        return getattr(self._native, name)


@pytest.fixture
def spied():
    session = diptych.Session(PAIR, device="cpu", dims={"rows": 2})
    session._native = Spy(session._native)
    return session


def test_a_session_tells_what_goes_in_and_comes_out(device):
    session = diptych.Session(PAIR, device=device, dims={"rows": 2})
    assert [(port.name, port.shape) for port in session.inputs] == [("a", (2, 4)), ("b", (2, 4))]
    assert [(port.name, port.shape) for port in session.outputs] == [("sum", (2, 4)), ("difference", (2, 4))]
    assert session.inputs[0].dtype == np.float32
    assert session.info.backend == device
    assert (session.info.device is None) == (device == "cpu")
    assert "a[2, 4]" in repr(session)
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.float32)
    outputs = session.run({"b": b, "a": a})
    assert list(outputs) == ["sum", "difference"]
    np.testing.assert_array_equal(outputs["sum"], a + b)
    np.testing.assert_array_equal(outputs["difference"], a - b)
    assert session.steps and all(step.kernel for step in session.steps)
    assert session.memory["values"] > 0


def test_a_model_is_a_path_or_bytes():
    text = POSENET.read_bytes()
    for model in (POSENET, str(POSENET), text, bytearray(text), memoryview(text)):
        session = diptych.Session(model, device="cpu")
        assert session.inputs[0].shape == (1, 257, 257, 3)
    assert isinstance(session.model.name, str)


def test_the_bundled_network_computes_what_float64_computes(device):
    image = pytest.importorskip("PIL.Image")
    pixels = np.asarray(image.open(ROOT / "tests/data/posenet_figures.png").convert("RGB"), np.float32)
    outputs = diptych.Session(POSENET, device=device).run(((pixels - 127.5) / 127.5)[np.newaxis])
    # Every third row and column of each output, and what f32 may be off by: tests/posenet/bundled.rs.
    found = [array[0, ::3, ::3].ravel() for array in outputs.values()]
    wanted = np.split(np.load(ROOT / "tests/data/posenet_figures.npy"), np.cumsum([len(one) for one in found])[:-1])
    for one, golden, tolerance in zip(found, wanted, [2.06e-2, 1.36e-1, 9.35e-2, 8.89e-2]):
        assert np.abs(one - golden).max() <= tolerance


def test_arrays_are_read_where_they_lie(spied):
    a, b = np.ones((2, 4), np.float32), np.full((2, 4), 2, np.float32)
    outputs = spied.run({"a": a, "b": b})
    assert spied._native.read == [a.ctypes.data, b.ctypes.data]
    for array in outputs.values():
        assert array.flags.owndata and array.flags.writeable and array.flags.c_contiguous
    # Read-only arrays are read all the same.
    a.flags.writeable = False
    spied.run({"a": a, "b": b})
    assert spied._native.read[0] == a.ctypes.data


def test_dlpack_is_read_where_it_lies_and_given(spied):
    class Tensor:
        """What torch and jax give: an object that is no array, and has the protocol."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a = np.ones((2, 4), np.float32)
    outputs = spied.run({"a": Tensor(a), "b": a})
    assert spied._native.read == [a.ctypes.data, a.ctypes.data]
    back = np.from_dlpack(outputs["sum"])
    assert back.ctypes.data == outputs["sum"].ctypes.data

    class Elsewhere(Tensor):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            raise BufferError("the tensor is on a GPU")

    with pytest.raises(diptych.InputError, match="input 'a': found a Elsewhere that NumPy cannot read"):
        spied.run({"a": Elsewhere(a), "b": a})


@pytest.mark.parametrize("dtype", ["f2", ">f4", "i1", "u1", "i2", "u2", "?"])
def test_other_numbers_are_converted(spied, dtype):
    a = np.array([[0, 1, 0, 1], [1, 1, 0, 0]]).astype(dtype)
    outputs = spied.run({"a": a, "b": np.zeros((2, 4), np.float32)})
    np.testing.assert_array_equal(outputs["sum"], a.astype(np.float32))


def test_integers_go_in_and_come_out_as_they_are(device):
    session = diptych.Session(IDS, device=device)
    assert [port.dtype for port in session.inputs] == [np.int64, np.int64]
    assert [port.dtype for port in session.outputs] == [np.int64, np.bool_]
    assert "a[1, 3] int64, b[1, 3] int64 -> sum[1, 3] int64, greater[1, 3] bool" in repr(session)
    a, b = np.array([[1 << 24, -5, 3]]), np.array([[1, 7, 3]])
    runs = [session.run({"a": a, "b": b}), *session.stream([{"a": a, "b": b}])]
    # Narrower integers, floats that are whole, another byte order, and lists.
    for other in (b.astype(np.int8), b.astype(np.float32), b.astype(float), b.astype(">i4"), b.astype(np.uint64), b.tolist()):
        runs.append(session.run({"a": a, "b": other}))
    for outputs in runs:
        assert (outputs["sum"].dtype, outputs["greater"].dtype) == (np.int64, np.bool_)
        np.testing.assert_array_equal(outputs["sum"], a + b)
        np.testing.assert_array_equal(outputs["greater"], a > b)
    assert len(session.profile(runs=1)) == len(session.profile({"a": a, "b": b})) > 0
    large = np.array([[1 << 53, 0, 0]])
    if device == "cpu":
        np.testing.assert_array_equal(session.run({"a": large, "b": b})["sum"], large + b)
    else:
        with pytest.raises(diptych.InputError, match='input "a": found 9007199254740992 at element 0'):
            session.run({"a": large, "b": b})


def test_numbers_that_are_not_of_the_inputs_type_are_refused():
    session = diptych.Session(IDS, device="cpu")
    b = np.array([[1, 7, 3]])
    cases = [
        (np.array([[1, 2.5, 0]]), "input 'a': found 2.5 of float64 at element 1, wanted a whole number for int64"),
        (np.array([[1, 0, 2**64 - 1]], np.uint64), "found 18446744073709551615 of uint64 at element 2, wanted a number"),
        (np.array([[1, 2.5, 0]], np.float32), 'input "a": found 2.5 at element 1, wanted a number of i64'),
        (np.array([[1, np.inf, 0]]), "input 'a': found inf of float64 at element 1"),
    ]
    for a, message in cases:
        with pytest.raises(diptych.InputError) as caught:
            session.run({"a": a, "b": b})
        assert message in str(caught.value)
    floats = diptych.Session(TINY, device="cpu")
    with pytest.raises(diptych.InputError, match='input "x": found 16777217 at element 0'):
        floats.run([16777217, 0, 0])
    # The native module looks at extents itself.
    with pytest.raises(diptych.InputError, match='input "a": found shape 2, wanted a tensor of 1x3'):
        session._native.run([("a", b[0, :2].copy()), ("b", b)], [0, 1], [])


class Owner:
    """What NumPy makes an array of, as pandas' tables are."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class Shared:
    """A tensor of another library in the CPU's memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **words):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("made_of", [lambda array: array, Owner, Shared])
def test_arrays_that_floats_would_round_are_refused(made_of):
    session = diptych.Session(TINY, device="cpu")
    with diptych.Batch(onnx([("Add", ["x", "x"], ["y"])], [("x", [1, 3])], [("y", [1, 3])]), device="cpu") as served:
        for dtype in (np.float64, np.int32, np.int64, np.uint32, np.uint64):
            message = f"input 'x': found elements of {np.dtype(dtype)}, wanted float32, which .astype(np.float32) makes of them"
            for run, shape in ((session.run, 3), (session.profile, 3), (lambda given: list(session.stream([given])), 3), (served.run, (1, 3))):
                with pytest.raises(diptych.InputError, match=re.escape(message)) as caught:
                    run(made_of(np.ones(shape, dtype)))
                assert (caught.value.name, caught.value.found) == ("x", f"elements of {np.dtype(dtype)}")
    # What float32 holds whatever the numbers are.
    for dtype in (np.float16, np.int16, np.uint16, np.int8, np.uint8):
        np.testing.assert_array_equal(session.run(made_of(np.array([1, 2, 3], dtype)))["y"], [2, 4, 6])
    assert session.run(np.array([True, False, True]))["y"].tolist() == [2, 0, 2]


def test_numbers_without_a_type_become_the_inputs():
    session = diptych.Session(TINY, device="cpu")
    for given in ([0.1, 2, True], (0.1, 2.0, 1), [np.float64(0.1), np.int64(2), 1]):
        np.testing.assert_array_equal(session.run(given)["y"], 2 * np.array([0.1, 2, 1], np.float32))
    # Halves are not rounded to without a word either.
    halves = diptych.Session(onnx([("Add", ["x", "x"], ["y"])], [("x", [3], 10)], [("y", [3], 10)]), device="cpu")
    assert halves.inputs[0].dtype == np.float16
    with pytest.raises(diptych.InputError, match="found elements of float32, wanted float16"):
        halves.run(np.ones(3, np.float32))
    assert halves.run([0.1, 2, 3])["y"].dtype == np.float16
    assert halves.profile()


def test_values_that_are_known_are_not_rounded_either():
    with pytest.raises(diptych.InputError, match="input 'x': found elements of float64, wanted float32"):
        diptych.Session(TINY, device="cpu", values={"x": np.array([0.1, 0.2, 0.3])})


def test_arrays_in_another_order_are_converted(spied):
    whole = np.arange(32, dtype=np.float32).reshape(4, 8)
    for a in (np.asfortranarray(whole[:2, :4]), whole[::2, ::2], whole.T[::4, :]):
        outputs = spied.run({"a": a, "b": a})
        np.testing.assert_array_equal(outputs["sum"], 2 * a)
    unaligned = np.frombuffer(b"\0" + whole[:1].tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 4)
    np.testing.assert_array_equal(spied.run({"a": unaligned, "b": unaligned})["sum"], 2 * unaligned)
    nested = [[1, 2, 3, 4], [5, 6, 7, 8]]
    np.testing.assert_array_equal(spied.run({"a": nested, "b": nested})["sum"], 2 * np.array(nested))


def test_one_input_needs_no_name():
    session = diptych.Session(TINY, device="cpu")
    np.testing.assert_array_equal(session.run([1, 2, 3])["y"], [2, 4, 6])
    np.testing.assert_array_equal(session(np.ones(3, np.float32))["y"], [2, 2, 2])


def test_errors_name_the_input(spied):
    a = np.ones((2, 4), np.float32)
    cases = [
        ({"a": a}, "input 'b': found nothing, wanted shape (2, 4)"),
        ({"a": a, "b": a, "c": a}, "input 'c': found no input of this name, wanted one of 'a', 'b'"),
        ({"a": a, "b": a[0]}, "input 'b': found shape (4,), wanted (2, 4)"),
        ({"a": a[:, :3], "b": a}, "input 'a': found shape (2, 3), wanted (2, 4)"),
        ({"a": a.astype(complex), "b": a}, "input 'a': found elements of type complex128, wanted numbers"),
        ({"a": [["1", "2"]], "b": a}, "input 'a': found elements of type <U1, wanted numbers"),
        ({"a": a, "b": None}, "input 'b': found elements of type object, wanted numbers"),
        (a, "inputs: found one array, wanted arrays by name for 'a', 'b'"),
    ]
    for inputs, message in cases:
        with pytest.raises(diptych.InputError) as caught:
            spied.run(inputs)
        assert str(caught.value) == message
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, diptych.Error)
    assert (caught.value.node, spied._native.read) == (None, [])


def test_errors_are_of_the_kinds_that_callers_expect(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        diptych.Session("no such file")
    assert isinstance(caught.value, diptych.FileError) and isinstance(caught.value, OSError)
    assert (caught.value.filename, caught.value.errno) == ("no such file", 2)
    assert str(caught.value).startswith("no such file: ")
    with pytest.raises(diptych.FileError):
        diptych.Session(tmp_path)
    with pytest.raises(diptych.ModelError) as caught:
        diptych.Session(b"no model at all")
    assert isinstance(caught.value, ValueError) and caught.value.file == "model" and caught.value.reason
    with pytest.raises(diptych.NoDeviceError) as caught:
        diptych.Session(TINY, device="wgpu:no such GPU")
    assert "no such GPU" in caught.value.wanted and isinstance(caught.value.tried, list)
    with pytest.raises(diptych.NoDeviceError):
        diptych.Session(TINY, device="1000")
    with pytest.raises(diptych.InputError, match="device"):
        diptych.Session(TINY, device="wgpu:")
    with pytest.raises(NotImplementedError) as caught:
        diptych.Session(TINY, device="cpu").tune()
    assert isinstance(caught.value, diptych.UnsupportedError) and "CPU" in caught.value.reason
    unknown = onnx([("NoSuchOperator", ["x"], ["y"])], [("x", [3])], [("y", [3])])
    with pytest.raises(diptych.Error, match="NoSuchOperator"):
        diptych.Session(unknown, device="cpu")
    with pytest.raises(diptych.Error, match="nothing"):
        diptych.Session(TINY, device="cpu", dims={"nothing": 2})
    # As workers' errors go to whoever asked them.
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.__dict__) == (type(caught.value), str(caught.value), caught.value.__dict__)
    assert issubclass(diptych.OutOfMemoryError, MemoryError)
    assert issubclass(diptych.DeviceLostError, OSError) and issubclass(diptych.DeviceLostError, RuntimeError)
    with pytest.raises(TypeError, match="process"):
        pickle.dumps(diptych.Session(TINY, device="cpu"))


def test_the_native_module_checks_what_it_is_given():
    native = diptych.Session(PAIR, device="cpu", dims={"rows": 2})._native
    a = np.ones((2, 4), np.float32)
    with pytest.raises(diptych.InputError, match='input "b": found shape 4, wanted a tensor of 2x4'):
        native.run([("a", a), ("b", a[0].copy())], [0, 1], [])
    with pytest.raises(diptych.InputError, match='input "b": found nothing, wanted a tensor of 2x4'):
        native.run([("a", a)], [0, 1], [])
    with pytest.raises(diptych.InputError, match='input "a": found two tensors, wanted one'):
        native.run([("a", a), ("a", a), ("b", a)], [0, 1], [])
    with pytest.raises(diptych.InputError, match='"c"'):
        native.run([("a", a), ("b", a), ("c", a)], [0, 1], [])
    with pytest.raises(Exception, match="contiguous"):
        native.run([("a", a), ("b", np.ones((2, 8), np.float32)[:, ::2])], [0, 1], [])
    flight = native.start([("a", a), ("b", a)])
    assert [array.tolist() for array in flight.finish([0, 1])] == [(a + a).tolist(), (a - a).tolist()]
    with pytest.raises(diptych.InputError, match="one that was waited for"):
        flight.finish([0])


def test_a_stream_keeps_its_order_and_overlaps(device):
    session = diptych.Session(TINY, device=device)
    taken = []

    def frames():
        for frame in range(7):
            taken.append(frame)
            yield {"x": np.full(3, frame, np.float32)}

    stream = session.stream(frames(), in_flight=3)
    assert taken == []
    first = next(stream)
    assert taken == [0, 1, 2]
    # Other runs of the session are none of the stream's business.
    np.testing.assert_array_equal(session.run(np.ones(3, np.float32))["y"], [2, 2, 2])
    rest = list(stream)
    found = [int(outputs["y"][0]) for outputs in [first, *rest]]
    assert found == [2 * frame for frame in range(7)]
    assert next(stream, None) is None


def test_what_a_stream_of_one_array_reads_may_be_written_again():
    session = diptych.Session(TINY, device="cpu")
    frame = np.zeros(3, np.float32)

    def frames():
        for number in range(5):
            frame[:] = number
            yield frame

    assert [outputs["y"][0] for outputs in session.stream(frames())] == [0, 2, 4, 6, 8]


def test_errors_of_a_stream_come_in_their_place():
    session = diptych.Session(TINY, device="cpu")

    class Source:
        def __init__(self):
            self.frame = -1

        def __iter__(self):
            return self

        def __next__(self):
            self.frame += 1
            if self.frame == 2:
                raise LookupError("no frame")
            if self.frame == 6:
                raise StopIteration
            return np.full(2 if self.frame == 4 else 3, self.frame, np.float32)

    stream, found = session.stream(Source(), in_flight=4), []
    while True:
        try:
            found.append(int(next(stream)["y"][0]))
        except LookupError as error:
            found.append(str(error))
        except diptych.InputError as error:
            found.append(error.found)
        except StopIteration:
            break
    assert found == [0, 2, "no frame", 6, "shape (2,)", 10]
    with pytest.raises(ZeroDivisionError):
        list(session.stream(1 / number for number in [0]))
    with pytest.raises(diptych.InputError, match="in_flight"):
        session.stream([], in_flight=0)

    def interrupted():
        yield np.zeros(3, np.float32)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(session.stream(interrupted()))


def test_a_stream_that_is_dropped_leaves_nothing_behind():
    session = diptych.Session(TINY, device="cpu")
    stream = session.stream(iter([np.zeros(3, np.float32)] * 5), in_flight=4)
    next(stream)
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(session.run(np.ones(3, np.float32))["y"], [2, 2, 2])


def test_other_threads_run_while_the_network_does(posenet):
    image, counted, over = picture(), 0, threading.Event()
    posenet.run(image)
    started = time.perf_counter()
    posenet.run(image)
    once = time.perf_counter() - started

    def run():
        for _ in range(max(3, int(0.3 / once))):
            posenet.run(image)
        over.set()

    thread = threading.Thread(target=run)
    thread.start()
    waits = []
    while not over.is_set():
        before = time.perf_counter()
        counted += 1
        time.sleep(0)
        waits.append(time.perf_counter() - before)
    thread.join()
    # With the lock held, this thread would have had a turn or two for each run.
    assert counted > 1000, counted
    assert sorted(waits)[len(waits) // 2] < once / 10


def test_threads_share_a_session(posenet):
    images = [picture(seed) for seed in range(4)]
    wanted = [posenet.run(image) for image in images]
    found = {}

    def run(index):
        found[index] = [posenet.run(images[index]), *posenet.stream([images[index]] * 3)]

    threads = [threading.Thread(target=run, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, outputs in found.items():
        assert len(outputs) == 4
        for one in outputs:
            for name, array in one.items():
                np.testing.assert_array_equal(array, wanted[index][name])


def test_a_profile_has_a_time_for_every_step(posenet):
    nodes = posenet.profile(picture(), runs=3)
    assert len(nodes) == len(posenet.steps) > 10
    assert all(node.microseconds > 0 and node.clock == "host clock" for node in nodes)
    assert {node.precision for node in nodes} == {"f32"}
    assert len(posenet.profile()) == len(nodes)
    with pytest.raises(diptych.InputError, match="runs"):
        posenet.profile(runs=0)


def test_a_device_has_a_clock_of_its_own(device):
    nodes = diptych.Session(PAIR, device=device, dims={"rows": 2}).profile()
    clock = {"cpu": "host clock", "wgpu": "GPU timestamps", "opencl": "profiling events"}[device]
    assert nodes and {node.clock for node in nodes} == {clock}
    assert sum(node.microseconds for node in nodes) > 0


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_streams_and_searches(device):
    def interrupted(work):
        press = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        started = time.perf_counter()
        press.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        press.join()
        assert time.perf_counter() - started < 20

    session = diptych.Session(TINY, device=device)
    interrupted(lambda: [None for _ in session.stream(itertools.repeat(np.zeros(3, np.float32)))])
    if device != "cpu":
        network = diptych.Session(POSENET, device=device)
        interrupted(lambda: network.tune(60))
    # What comes after is as before.
    np.testing.assert_array_equal(session.run([1, 2, 3])["y"], [2, 4, 6])


def test_devices_open_by_their_ids():
    listed = diptych.devices()
    assert listed[-1].id == "cpu" and listed[-1].pci is None
    for one in listed:
        info = diptych.Session(TINY, device=one.id).info
        assert info.backend == one.backend
        if info.device is not None:
            assert (info.device.name, info.device.pci) == (one.name, one.pci)
            assert one.name in str(info)


def test_tuning_finds_kernels_and_keeps_them(device, tmp_path):
    if device == "cpu":
        # With nothing to tune, sessions of any device are made all the same.
        assert diptych.Session(TINY, device=device, tuning=0.1, database=tmp_path).info.backend == "cpu"
        return
    told = []
    model = onnx([("Softmax", ["x"], ["y"])], [("x", [64, 64])], [("y", [64, 64])])
    session = diptych.Session(model, device=device, database=tmp_path)
    verdicts = session.tune(1.0, on_progress=told.append)
    assert told and told[-1].finished and told[-1].done == told[-1].problems == len(verdicts) > 0
    assert verdicts[0].op == "softmax" and verdicts[0].nodes and verdicts[0].speed_up > 0
    assert any(tmp_path.iterdir())
    x = np.random.default_rng(1).random((64, 64), np.float32)
    exponents = np.exp(x)
    np.testing.assert_allclose(session.run(x)["y"], exponents / exponents.sum(1, keepdims=True), rtol=1e-5)
    again = diptych.Session(model, device=device, database=tmp_path)
    assert "rule" not in again.steps[0].source, again.steps[0].source

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        diptych.Session(model, device=device).tune(10.0, on_progress=stop)


def test_halves_are_near(device):
    session = diptych.Session(TINY, device=device, f16=True)
    np.testing.assert_allclose(session.run([0.1, 2.0, 3.0])["y"], [0.2, 4.0, 6.0], rtol=2e-3)


def test_a_session_is_made_anew(device):
    session = diptych.Session(TINY, device=device)
    session.restore()
    session.reset()
    assert session.refresh() == []
    np.testing.assert_array_equal(session.run([1, 2, 3])["y"], [2, 4, 6])


def test_known_inputs_are_constants():
    session = diptych.Session(PAIR, device="cpu", dims={"rows": 1}, values={"b": np.ones((1, 4), np.float32)})
    assert [port.name for port in session.inputs] == ["a"]
    np.testing.assert_array_equal(session.run([[1, 2, 3, 4]])["sum"], [[2, 3, 4, 5]])


def test_a_seed_decides_what_each_run_draws(device):
    """The model adds random numbers to ``x``."""

    def runs(seed):
        session = diptych.Session(ROOT / "tests/random/extents.onnx", device=device, seed=seed)
        return session, [session.run({"x": np.zeros(9, np.float32)})["y"] for _ in range(2)]

    session, drawn = runs(2**64 - 1)
    np.testing.assert_array_equal(runs(2**64 - 1)[1], drawn)
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(runs(0)[1], drawn)
    session.reset()
    np.testing.assert_array_equal(session.run({"x": np.zeros(9, np.float32)})["y"], drawn[0])


def test_the_fastest_device_runs_the_network():
    session = diptych.Session(PAIR, device="fastest", dims={"rows": 2})
    assert "the fastest of" in session.info.reason
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(session.run({"a": a, "b": b})["sum"], a + b)


def test_quantised_operators_are_computed_with_floats_where_that_is_asked_for():
    model = ROOT / "tests/cases/dynamic_int8.onnx"
    x = np.load(ROOT / "tests/cases/dynamic_int8.in.x.npy")
    wanted = np.load(ROOT / "tests/cases/dynamic_int8.out0.npy")
    for dequantize in (False, True):
        session = diptych.Session(model, device="cpu", dequantize=dequantize)
        (found,) = session.run({"x": x}).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        assert any(step.op == "dynamic_conv2d" for step in session.steps) == (not dequantize)
