"""Batches, and pools of devices: results, order, back-pressure, threads, what fails."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import diptych
from conftest import IDS, PAIR, POSENET, TINY, onnx

#: Longer than any test waits: requests of a batch that is not full stay where they are.
LONG = 300.0


def batch(**options):
    """Sums and differences of four numbers, on the CPU unless said."""
    options = {"device": "cpu", "dims": {"rows": 1}, "max_delay": 0.0, **options}
    return diptych.Batch(PAIR, **options)


def pool(devices, **options):
    return diptych.DevicePool(PAIR, devices, **{"dims": {"rows": 1}, "max_delay": 0.0, "sizes": [1], **options})


def pair(value):
    return {"a": np.full((1, 4), value, np.float32), "b": np.ones((1, 4), np.float32)}


def at_once(work, count):
    """What so many threads get, by their number."""
    found = {}

    def run(number):
        try:
            found[number] = work(number)
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def until(condition):
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < 60
        time.sleep(0.001)


def test_requests_of_threads_become_one_run(device):
    with batch(device=device, max_batch=4, max_delay=LONG, sizes=[4]) as served:
        assert [(port.name, port.shape) for port in served.inputs] == [("a", (1, 4)), ("b", (1, 4))]
        assert [(port.name, port.shape) for port in served.outputs] == [("sum", (1, 4)), ("difference", (1, 4))]
        assert served.info.backend == device
        assert "a[1, 4], b[1, 4] -> sum[1, 4]" in repr(served)
        found = at_once(lambda number: served.run(pair(number)), 8)
        assert served.counts == diptych.BatchCounts(requests=8, runs=(0, 0, 0, 2), waiting=0)
    for number in range(8):
        assert list(found[number]) == ["sum", "difference"]
        np.testing.assert_array_equal(found[number]["sum"], np.full((1, 4), number + 1))
        np.testing.assert_array_equal(found[number]["difference"], np.full((1, 4), number - 1))
        assert found[number]["sum"].flags.owndata and found[number]["sum"].flags.writeable


def test_requests_of_integers_are_answered_with_integers(device):
    with diptych.Batch(IDS, device=device, max_delay=0.0, max_batch=2) as served:
        assert [port.dtype for port in served.outputs] == [np.int64, np.bool_]
        a, b = np.array([[1 << 24, -5, 3]]), np.array([[1, 7, 3]], np.int8)
        outputs = served.run({"a": a, "b": b})
    assert (outputs["sum"].dtype, outputs["greater"].dtype) == (np.int64, np.bool_)
    np.testing.assert_array_equal(outputs["sum"], a + b)
    np.testing.assert_array_equal(outputs["greater"], a > b)


def test_a_batch_gives_what_a_session_gives(device):
    images = [np.random.default_rng(seed).random((1, 257, 257, 3), np.float32) for seed in range(3)]
    session = diptych.Session(POSENET, device=device)
    wanted = [session.run(image) for image in images]
    with diptych.Batch(POSENET, device=device, max_batch=3, max_delay=LONG, sizes=[3]) as served:
        found = at_once(lambda number: served.run(images[number]), 3)
    for number, outputs in enumerate(wanted):
        for name, array in outputs.items():
            scale = np.abs(array).max()
            np.testing.assert_allclose(found[number][name], array, rtol=0, atol=1e-4 * scale)


def test_arrays_are_what_sessions_take_and_may_be_written_again():
    with diptych.Batch(onnx([("Add", ["x", "x"], ["y"])], [("x", [1, 3])], [("y", [1, 3])]), device="cpu") as served:
        np.testing.assert_array_equal(served([[1, 2, 3]])["y"], [[2, 4, 6]])
        frame = np.zeros((1, 3), np.float32)
        tickets = []
        for number in range(9):
            frame[:] = number
            tickets.append(served.submit(frame))
        frame[:] = -1
        assert [int(ticket.wait()["y"][0, 0]) for ticket in tickets] == [2 * number for number in range(9)]


def test_those_who_bring_more_than_may_wait_are_held_back():
    with batch(max_batch=2, max_delay=LONG, max_waiting=1) as served:
        first = served.submit(pair(1))
        assert served.counts.waiting == 1
        assert served.try_submit(pair(2)) is None
        with pytest.raises(TimeoutError, match="no answer within 0.05 seconds"):
            first.wait(timeout=0.05)
        # Held back it makes the batch full all the same, and is taken with it.
        second = served.submit(pair(3))
        assert [ticket.wait(timeout=LONG)["sum"][0, 0] for ticket in (first, second)] == [2, 4]
        third = served.try_submit(pair(4))
        assert third is not None and served.counts == diptych.BatchCounts(2, (0, 1), 1)
        # Without its ticket nobody waits for it.
        del third
        gc.collect()
        assert served.counts.waiting == 0
        with pytest.raises(diptych.InputError, match="ticket"):
            first.wait()


def test_a_closed_batch_has_answered_what_it_had():
    with batch(max_batch=8, max_delay=LONG) as served:
        tickets = [served.submit(pair(number)) for number in range(3)]
    assert [ticket.wait()["sum"][0, 0] for ticket in tickets] == [1, 2, 3]
    served.close()
    for call in (lambda: served.run(pair(1)), lambda: served.try_submit(pair(1)), lambda: served.counts):
        with pytest.raises(diptych.InputError, match="closed"):
            call()
    dropped = batch(max_delay=LONG)
    ticket, gone = dropped.submit(pair(1)), weakref.ref(dropped)
    del dropped
    gc.collect()
    assert gone() is None
    assert ticket.wait(timeout=LONG)["sum"][0, 0] == 2


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_withdraws_a_request():
    with batch(max_batch=8, max_delay=LONG) as served:
        press = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        press.start()
        with pytest.raises(KeyboardInterrupt):
            served.run(pair(1))
        press.join()
        assert served.counts.waiting == 0
    with batch(max_batch=1) as served:
        press = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        press.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in served.stream(pair(1) for _ in iter(int, 1)):
                pass
        press.join()
        assert served.run(pair(1))["sum"][0, 0] == 2


def test_other_threads_run_while_requests_wait():
    image = np.zeros((1, 257, 257, 3), np.float32)
    with diptych.Batch(POSENET, device="cpu", max_batch=1) as served:
        served.run(image)
        over, counted = threading.Event(), 0
        thread = threading.Thread(target=lambda: ([served.run(image) for _ in range(5)], over.set()))
        thread.start()
        while not over.is_set():
            counted += 1
            time.sleep(0)
        thread.join()
    # While a run holds the interpreter, this thread counts once between two runs.
    assert counted > 100, counted


def test_a_program_ends_with_a_batch_at_work():
    script = f"""
import numpy as np, diptych, threading
pool = diptych.DevicePool({str(POSENET)!r}, ["cpu", "cpu"], max_batch=2, sizes=[2])
image = np.zeros((1, 257, 257, 3), np.float32)
tickets = [pool.submit(image) for _ in range(4)]
waiting = threading.Thread(target=tickets.pop().wait, daemon=True)
waiting.start()
print("over")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "over\n", "")


def test_options_and_networks_that_cannot_be_served_are_errors(tmp_path):
    cases = [
        ({"max_batch": 0}, "max_batch"),
        ({"max_batch": 2000}, "max_batch"),
        ({"max_waiting": 0}, "max_waiting"),
        ({"sizes": [9]}, "sizes"),
        ({"max_delay": -1.0}, "max_delay"),
        ({"max_delay": float("nan")}, "max_delay"),
        ({"dimension": "columns"}, "columns"),
        ({"database": ""}, "database"),
    ]
    for options, message in cases:
        with pytest.raises(diptych.InputError, match=message):
            batch(**options)
    with pytest.raises(diptych.ShapeError, match="batch 1"):
        diptych.Batch(TINY, device="cpu")
    total = onnx([("ReduceSum", ["x"], ["y"])], [("x", ["n", 4])], [("y", [1, 1])])
    with pytest.raises(diptych.ShapeError, match="grows with the requests"):
        diptych.Batch(total, device="cpu", dims={"n": 1})
    with pytest.raises(FileNotFoundError):
        diptych.Batch(tmp_path / "nothing", device="cpu")
    with pytest.raises(diptych.NoDeviceError):
        pool(["cpu", "wgpu:no such GPU"])
    with pytest.raises(diptych.InputError, match="devices: found none"):
        pool([])
    with batch() as served:
        with pytest.raises(diptych.InputError, match="input 'b': found nothing"):
            served.run({"a": np.zeros((1, 4), np.float32)})
        with pytest.raises(diptych.InputError, match=r"found shape \(2, 4\), wanted \(1, 4\)"):
            served.submit({"a": np.zeros((2, 4), np.float32), "b": np.zeros((1, 4), np.float32)})
        with pytest.raises(TypeError, match="a Batch is of its process"):
            pickle.dumps(served)
        with pytest.raises(diptych.InputError, match="timeout"):
            served.submit(pair(1)).wait(timeout=-1)
        native = served._native
        a = np.zeros((1, 4), np.float32)
        with pytest.raises(diptych.InputError, match="nothing"):
            native.submit([a])
        with pytest.raises(diptych.InputError, match="found 1, wanted 2"):
            native.submit([a, a]).wait([a.copy()], None)
        with pytest.raises(diptych.InputError, match="found 3 elements, wanted 4 of f32"):
            native.submit([a, a]).wait([a.copy(), np.zeros(3, np.float32)], None)


def test_a_pool_keeps_the_order_whichever_device_ran(device):
    taken = []

    def frames():
        for frame in range(300):
            taken.append(frame)
            yield pair(frame)

    with pool([device, "cpu"], max_batch=4, max_waiting=16) as many:
        stream = many.stream(frames())
        assert taken == []
        first = next(stream)
        # As many as may wait, and two batches for each device.
        assert len(taken) == 16 + 2 * 2 * 4
        found = [int(outputs["sum"][0, 0]) for outputs in [first, *stream]]
        assert found == list(range(1, 301))
        # A thread may come late, when the other has done everything.
        rounds = 1

        def shared():
            nonlocal rounds
            if all(one.requests > 0 for one in many.devices):
                return True
            rounds += 1
            return not len(list(many.stream(pair(frame) for frame in range(300)))) == 300

        until(shared)
        devices = many.devices
        assert [one.info.backend for one in devices] == [device, "cpu"]
        assert sum(one.requests for one in devices) == many.counts.requests == 300 * rounds
        assert all(one.error is None and one.seconds > 0 for one in devices)
        assert "on 2 devices" in repr(many)


def test_threads_share_a_pool():
    with pool(["cpu", "cpu"], max_batch=2, max_waiting=3) as many:
        def work(number):
            streamed = [outputs["sum"][0, 0] for outputs in many.stream(pair(number + frame) for frame in range(50))]
            return streamed, many.run(pair(number))["difference"][0, 0]

        for number, (streamed, alone) in at_once(work, 6).items():
            assert streamed == [number + frame + 1 for frame in range(50)]
            assert alone == number - 1
        assert many.counts.requests == 6 * 51


def test_errors_of_a_stream_come_in_their_place():
    def frames():
        yield pair(1)
        yield {"a": np.zeros((1, 4), np.float32), "b": np.zeros((1, 3), np.float32)}
        yield pair(2)
        raise LookupError("no frame")

    with pool(["cpu", "cpu"]) as many:
        stream, found = many.stream(frames()), []
        while True:
            try:
                found.append(int(next(stream)["sum"][0, 0]))
            except diptych.InputError as error:
                found.append(error.found)
            except LookupError as error:
                found.append(str(error))
            except StopIteration:
                break
        assert found == [2, "shape (1, 3)", 3, "no frame"]


def test_a_pool_is_of_every_gpu_unless_said():
    gpus = [one for one in diptych.devices() if not one.software]
    with diptych.DevicePool(PAIR, dims={"rows": 1}) as many:
        infos = [one.info for one in many.devices]
        if gpus:
            cards = {one.pci or one.uuid or one.id for one in gpus}
            assert len(infos) <= len(cards) and all(info.device and not info.device.software for info in infos)
        else:
            assert [info.backend for info in infos] == ["cpu"]
        assert many.run(pair(1))["sum"][0, 0] == 2
    # A text is one device, not its letters.
    with pool("cpu") as many:
        assert [one.info.backend for one in many.devices] == ["cpu"]


def test_a_pool_in_halves_is_near(device):
    with pool([device, "cpu"], f16=True) as many:
        for outputs in many.stream(pair(0.1) for _ in range(40)):
            np.testing.assert_allclose(outputs["sum"], np.full((1, 4), 1.1), rtol=2e-3)


#: A pool whose first device has less time than a run takes, but enough to be made ready: what it fails to do succeeds on
#: the CPU.
FAILING = """
import json, os, sys, time
import numpy as np
import diptych

model, device = sys.argv[1:]
image = np.random.default_rng(0).random((1, 257, 257, 3), np.float32)
wanted = diptych.Session(model, device="cpu").run(image)
session = diptych.Session(model, device=device)
session.run(image)
start = time.perf_counter()
session.run(image)
once, limit = time.perf_counter() - start, 1e-6
while limit < once / 2:
    os.environ["DIPTYCH_TIME_LIMIT"] = f"{limit:f}"
    try:
        pool = diptych.DevicePool(model, [device, "cpu"], max_batch=1, max_delay=0)
    except diptych.TimedOutError:
        limit *= 4
        continue
    outputs = list(pool.stream([image] * 12))
    failing, other = pool.devices
    if failing.error is None:
        limit *= 4
        continue
    print(json.dumps({
        "right": [all(np.allclose(one[name], wanted[name], atol=1e-3) for name in wanted) for one in outputs],
        "requests": [failing.requests, other.requests],
        "kind": [one.__name__ for one in type(failing.error).__mro__],
        "message": str(failing.error),
        "limit": [failing.error.limit, limit],
        "other": str(other.error),
    }), flush=True)
    break
# What the device was told to do may go on.
os._exit(0)
"""


@pytest.mark.parametrize("device", ["wgpu", "opencl"])
def test_a_device_that_fails_is_taken_out_and_its_work_is_done(device):
    try:
        info = diptych.Session(TINY, device=device).info
    except diptych.NoDeviceError as error:
        if os.environ.get("DIPTYCH_REQUIRE_DEVICES") == "1":
            raise
        pytest.skip(f"{device}: {error}")
    command = [sys.executable, "-c", FAILING, str(POSENET), device]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    if not ended.stdout and not info.device.software:
        pytest.skip(f"{info}: it is made ready no faster than it runs")
    found = json.loads(ended.stdout)
    assert found["right"] == [True] * 12
    # A run that is done by the time that somebody waits for it is no failure.
    of_failing, of_other = found["requests"]
    assert of_failing + of_other == 12 and of_other >= 1
    assert "TimedOutError" in found["kind"] and "TimeoutError" in found["kind"]
    assert "did not come to an end" in found["message"]
    assert found["limit"][0] == pytest.approx(found["limit"][1]) and found["other"] == "None"
