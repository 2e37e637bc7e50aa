"""Inputs as arrays that a run reads without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError

if TYPE_CHECKING:
    from ._ports import Port

#: What a network computes in.
F32 = np.dtype(np.float32)

#: Kinds of elements that are converted to it: booleans, integers and floats of other sizes.
_NUMBERS = "biuf"


def refused(name: str, found: str, wanted: str) -> InputError:
    """An error that names the input."""
    error = InputError(f"input {name!r}: found {found}, wanted {wanted}")
    error.name, error.found, error.wanted = name, found, wanted
    return error


def numbers(name: str, value: Any) -> NDArray[np.float32]:
    """``value`` as f32 in C order. It is not copied if it is that already."""
    if isinstance(value, np.ndarray):
        array: NDArray[Any] = value
    elif hasattr(value, "__dlpack__"):
        try:
            array = np.from_dlpack(value)
        except Exception as error:
            found = f"a {type(value).__name__} that NumPy cannot read ({error})"
            raise refused(name, found, "one in the CPU's memory") from error
    else:
        array = np.asarray(value)
    # Halves of other kinds (bfloat16, float8) are types of their own, which know how to become f32.
    if array.dtype.kind not in _NUMBERS and "float" not in array.dtype.name:
        raise refused(name, f"elements of type {array.dtype}", "numbers")
    if array.dtype == F32 and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, F32, ["C_CONTIGUOUS", "ALIGNED"])


def source(port: Port, value: Any) -> NDArray[np.float32]:
    """What a run reads for an input."""
    array = numbers(port.name, value)
    if array.shape != port.shape:
        raise refused(port.name, f"shape {array.shape}", f"{port.shape}")
    return array
