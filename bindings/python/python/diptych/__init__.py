"""Neural networks on any GPU that speaks Vulkan or OpenCL, or on the CPU.

TensorFlow Lite and ONNX files; NumPy arrays in and out. See :class:`Session`, and for many threads or devices
:class:`Batch` and :class:`DevicePool`.
"""

from ._devices import Device, Info, devices
from ._errors import (
    CompileError,
    DeviceLostError,
    DriverError,
    Error,
    FileError,
    InputError,
    ModelError,
    NoDeviceError,
    NotFoundError,
    OutOfMemoryError,
    ShapeError,
    TimedOutError,
    UnsupportedError,
)
from ._frames import frame
from ._native import __version__
from ._pixels import Pixels
from ._ports import Port
from ._service import Batch, BatchCounts, DevicePool, PoolDevice, Ticket
from ._session import ModelInfo, Progress, Session, Step, TensorInfo, TimedStep, Verdict
from ._stream import Stream

__all__ = [
    "Batch",
    "BatchCounts",
    "CompileError",
    "Device",
    "DeviceLostError",
    "DevicePool",
    "DriverError",
    "Error",
    "FileError",
    "Info",
    "InputError",
    "ModelError",
    "ModelInfo",
    "NoDeviceError",
    "NotFoundError",
    "OutOfMemoryError",
    "Pixels",
    "PoolDevice",
    "Port",
    "Progress",
    "Session",
    "ShapeError",
    "Step",
    "Stream",
    "TensorInfo",
    "Ticket",
    "TimedOutError",
    "TimedStep",
    "UnsupportedError",
    "Verdict",
    "__version__",
    "devices",
    "frame",
]
