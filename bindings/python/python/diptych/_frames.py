"""Frames of cameras as inputs."""

from typing import Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ._native import frame as _frame


def frame(
    data: "bytes | bytearray | memoryview | NDArray[np.uint8]",
    format: str,
    size: Tuple[int, int],
    target: Tuple[int, int],
    *,
    stride: Optional[int] = None,
    matrix: str = "bt601",
    range: str = "video",
    siting: str = "centre",
    fit: str = "stretch",
    mean: Sequence[float] = (0.0, 0.0, 0.0),
    deviation: Sequence[float] = (1.0, 1.0, 1.0),
) -> NDArray[np.float32]:
    """A camera's frame as a network's input of ``1 x height x width x 3`` floats, made by the CPU.

    ``data`` is the frame of ``size`` (width, height) pixels, whose planes follow each other: ``format`` is ``"NV12"``,
    ``"NV21"``, ``"I420"``, ``"YUYV"``, ``"UYVY"``, ``"Gray8"``, ``"RGB8"``, ``"BGR8"``, ``"RGBA8"`` or ``"BGRA8"``, in any case. Rows of
    the first plane begin every ``stride`` bytes, without it one behind the other. ``matrix`` is ``"bt601"``, ``"bt709"`` or
    ``"bt2020"``, ``range`` is ``"video"`` or ``"full"``, and ``siting``, where the chroma lies, is ``"centre"``, ``"left"`` or
    ``"top-left"``. The frame is scaled to ``target`` (width, height): ``fit`` is ``"stretch"``, ``"letterbox"`` or ``"fill"``. Colours
    from 0 to 1 become ``(colour - mean) / deviation``; ``mean`` and ``deviation`` of 0.5 make -1 to 1 of them.

    Raises :class:`InputError` if a name is unknown, or the bytes are fewer than the frame needs.
    """
    array = np.frombuffer(data, dtype=np.uint8) if not isinstance(data, np.ndarray) else data
    described = (format, tuple(size), stride, matrix, range, siting)
    return _frame(np.ascontiguousarray(array).reshape(-1), described, tuple(target), fit, list(mean), list(deviation))
