"""Where models are, and on which devices they run."""

import os
import signal
from pathlib import Path

import pytest

import diptych

ROOT = Path(__file__).resolve().parents[3]
POSENET = ROOT / "examples/posenet/data/posenet_figures.tflite"
PEOPLE = ROOT / "examples/posenet/data/people.png"
SHARED = Path(os.environ.get("DIPTYCH_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session", params=["cpu", "wgpu", "opencl"])
def device(request):
    """Each backend; one without a device is skipped, or fails where devices are required."""
    try:
        diptych.Session(TINY, device=request.param)
    except diptych.NoDeviceError as error:
        if os.environ.get("DIPTYCH_REQUIRE_DEVICES") == "1":
            raise
        pytest.skip(f"{request.param}: {error}")
    return request.param


@pytest.fixture(scope="session")
def shared():
    """The folder of other people's models."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there")
    return SHARED


@pytest.fixture
def ctrl_c():
    """Python's own answer to Ctrl-C, which a process that was started in the background of a script has not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def field(number, value):
    """A field of a protocol buffer: a number, or bytes."""
    def varint(value):
        out = bytearray()
        while True:
            out.append(value & 127 | (128 if value > 127 else 0))
            value >>= 7
            if not value:
                return bytes(out)

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx(nodes, inputs, outputs, initializers=()):
    """An ONNX file: nodes as (operator, inputs, outputs), inputs and outputs as (name, extents, number of the type), initializers
    as they are in the file."""
    def value(name, extents, kind=1):
        def extent(extent):
            return field(1, field(2, extent) if isinstance(extent, str) else field(1, extent))

        shape = b"".join(extent(one) for one in extents)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    graph = b"".join(
        field(1, b"".join(field(1, x) for x in read) + b"".join(field(2, y) for y in written) + field(4, operator))
        for operator, read, written in nodes
    )
    graph += field(2, "graph")
    graph += b"".join(field(5, initializer) for initializer in initializers)
    graph += b"".join(field(11, value(*port)) for port in inputs)
    graph += b"".join(field(12, value(*port)) for port in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


#: y = x + x of three numbers.
TINY = onnx([("Add", ["x", "x"], ["y"])], [("x", [3])], [("y", [3])])
#: sum = a + b, difference = a - b, of a free number of rows.
PAIR = onnx(
    [("Add", ["a", "b"], ["sum"]), ("Sub", ["a", "b"], ["difference"])],
    [("a", ["rows", 4]), ("b", ["rows", 4])],
    [("sum", ["rows", 4]), ("difference", ["rows", 4])],
)
#: sum = a + b, greater = a > b, of three integers of 64 bits.
IDS = onnx(
    [("Add", ["a", "b"], ["sum"]), ("Greater", ["a", "b"], ["greater"])],
    [("a", [1, 3], 7), ("b", [1, 3], 7)],
    [("sum", [1, 3], 7), ("greater", [1, 3], 9)],
)
