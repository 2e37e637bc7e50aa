"""Inputs as arrays that a run reads without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError

if TYPE_CHECKING:
    from ._ports import Port

#: What most networks read and give.
F32 = np.dtype(np.float32)

#: The types that networks have: arrays of these are handed over as they are.
_TYPES = frozenset(
    ["float32", "float16", "int64", "int32", "int16", "int8", "uint32", "uint16", "uint8", "bool"]
)

#: Kinds of elements that are numbers: booleans, integers and floats.
_NUMBERS = "biuf"


def refused(name: str, found: str, wanted: str) -> InputError:
    """An error that names the input."""
    error = InputError(f"input {name!r}: found {found}, wanted {wanted}")
    error.name, error.found, error.wanted = name, found, wanted
    return error


def wrong(option: str, found: str, wanted: str) -> InputError:
    """An error that names an option."""
    error = InputError(f"{option}: found {found}, wanted {wanted}")
    error.name, error.found, error.wanted = option, found, wanted
    return error


def check_out(port: Port, array: Any, others: Sequence[Tuple[str, NDArray[Any]]]) -> None:
    """Refuses an array that an output cannot be written to."""
    what = f"out[{port.name!r}]"
    if not isinstance(array, np.ndarray):
        raise wrong(what, f"a {type(array).__name__}", "a NumPy array")
    if array.dtype != port.dtype or not array.dtype.isnative:
        raise wrong(what, f"elements of {array.dtype.str if not array.dtype.isnative else array.dtype}", f"{port.dtype}")
    if not port.takes(array.shape):
        raise wrong(what, f"shape {array.shape}", f"{port.shape}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise wrong(what, f"strides {array.strides}", "a contiguous array in C order")
    if not array.flags.writeable:
        raise wrong(what, "an array that is read-only", "one that may be written")
    for other, own in others:
        if np.may_share_memory(array, own):
            raise wrong(what, f"memory of {other}", "memory of its own")


def numbers(name: str, value: Any, wanted: Optional[np.dtype[Any]] = None) -> NDArray[Any]:
    """``value`` in a type that networks have, in C order. It is not copied if it is that already.

    An array for floats has a type whose every number they hold: NumPy's rule of safe casts. Others are refused, as they
    would be rounded, or are bytes and pixels that somebody forgot to scale. Numbers of Python and lists of them have no type
    of their own, and become ``wanted``. uint64 becomes int64; float64 for integers does where it is whole. Without
    ``wanted``, the type is not known yet, and floats become float32.
    """
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
    # An array that an object is made of has the type that the object's owner chose.
    is_typed = not isinstance(value, (int, float, list, tuple))
    floats = F32 if wanted is None and array.dtype.kind not in "biu" else wanted
    if is_typed and floats is not None and floats.kind == "f":
        own = array.dtype if array.dtype.kind in _NUMBERS else F32
        if not np.can_cast(own, floats, "safe"):
            raise refused(name, f"elements of {array.dtype}", f"{floats}, which .astype(np.{floats}) makes of them")
    if array.dtype.name in _TYPES:
        dtype = np.dtype(array.dtype.name)
    elif array.dtype.kind == "u":
        dtype = np.dtype(np.int64)
        check(name, array, array <= np.iinfo(np.int64).max, "a number that int64 holds")
    elif array.dtype.kind == "f" and wanted is not None and wanted.kind != "f":
        dtype = np.dtype(np.int64)
        # 2^63 is the first that is too large.
        whole = (np.trunc(array) == array) & (array >= -(2.0**63)) & (array < 2.0**63)
        check(name, array, whole, f"a whole number for {wanted}")
    else:
        dtype = F32
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def check(name: str, array: NDArray[Any], good: Any, wanted: str) -> None:
    """Refuses an array with an element that is not good, and names the first."""
    if not np.all(good):
        index = int(np.flatnonzero(~np.ravel(good))[0])
        raise refused(name, f"{np.ravel(array)[index]} of {array.dtype} at element {index}", wanted)


def source(port: Port, value: Any) -> NDArray[Any]:
    """What a run reads for an input."""
    array = numbers(port.name, value, port.dtype)
    if not port.takes(array.shape):
        raise refused(port.name, f"shape {array.shape}", f"{port.shape}")
    return array
