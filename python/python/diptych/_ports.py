"""Inputs and outputs of a network, and where models come from."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays
from ._errors import InputError

#: A model: a path, or a file's bytes.
Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]
#: A folder of the tuner's record; ``True`` for the user's own.
Record = Union[str, "os.PathLike[str]", bool, None]
#: Arrays by the names of inputs; or the one input's array. An array is what NumPy takes for one, or has ``__dlpack__``.
Inputs = Union[Mapping[str, Any], ArrayLike]
#: What goes to the native module: arrays with the names of inputs.
Sources = List[Tuple[str, NDArray[Any]]]
#: The native module's inputs or outputs.
Native = List[Tuple[str, Optional[List[Union[int, str, None]]], str]]
#: Arrays by the names of outputs.
Outputs = Dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Port:
    """An input or an output."""

    name: str
    #: Its extents. Where each run decides one, the name of the axis in the file, or ``None`` if it has none there. ``None``
    #: for all of it, if each run even decides how many there are.
    shape: Optional[Tuple[Union[int, str, None], ...]]
    #: The type of its elements. An input also takes numbers of other types, if each is one of this type; an output has it.
    dtype: "np.dtype[Any]" = _arrays.F32

    def takes(self, shape: Tuple[int, ...]) -> bool:
        """Whether it takes an array of this shape."""
        if self.shape is None:
            return True
        fits = (not isinstance(own, int) or own == extent for own, extent in zip(self.shape, shape))
        return len(shape) == len(self.shape) and all(fits)


def of(ports: Native) -> Tuple[Port, ...]:
    """Ports of the native module."""
    return tuple(
        Port(name, None if extents is None else tuple(extents), np.dtype(dtype)) for name, extents, dtype in ports
    )


def distinct(ports: Native) -> Tuple[Port, ...]:
    """Ports with names of their own: of several with one name, the later ones are ``name:1`` and so on."""
    names: Dict[str, int] = {}
    made = []
    for port in of(ports):
        count = names[port.name] = names.get(port.name, -1) + 1
        made.append(replace(port, name=f"{port.name}:{count}") if count else port)
    return tuple(made)


def sources(ports: Sequence[Port], inputs: Inputs, optional: Sequence[Port] = ()) -> Sources:
    """Arrays for all ports and for some of the optional ones, in order."""
    if not isinstance(inputs, Mapping):
        if len(ports) != 1:
            names = ", ".join(repr(port.name) for port in ports)
            raise InputError(f"inputs: found one array, wanted arrays by name for {names}")
        return [(ports[0].name, _arrays.source(ports[0], inputs))]
    unknown = inputs.keys() - {port.name for port in (*ports, *optional)}
    if unknown:
        names = ", ".join(repr(port.name) for port in ports)
        raise _arrays.refused(sorted(unknown)[0], "no input of this name", f"one of {names}")
    for port in ports:
        if port.name not in inputs:
            raise _arrays.refused(port.name, "nothing", f"shape {port.shape}")
    given = [*ports, *(port for port in optional if port.name in inputs)]
    return [(port.name, _arrays.source(port, inputs[port.name])) for port in given]


def arrays(ports: Sequence[Port], inputs: Inputs) -> List[NDArray[Any]]:
    """The arrays of :func:`sources` alone."""
    return [array for _, array in sources(ports, inputs)]


def empty(ports: Sequence[Port]) -> Outputs:
    """Memory for outputs of known shapes."""

    def one(port: Port) -> NDArray[Any]:
        return np.empty([extent for extent in port.shape or () if isinstance(extent, int)], port.dtype)

    return {port.name: one(port) for port in ports}


def described(inputs: Iterable[Port], outputs: Iterable[Port]) -> str:
    """Names and shapes, and types but for float32."""

    def one(port: Port) -> str:
        dtype = "" if port.dtype == _arrays.F32 else f" {port.dtype}"
        extents = ["..."] if port.shape is None else ["?" if extent is None else str(extent) for extent in port.shape]
        return f"{port.name}[{', '.join(extents)}]{dtype}"

    return f"{', '.join(map(one, inputs))} -> {', '.join(map(one, outputs))}"


def random(ports: Sequence[Port], extents: Sequence[Sequence[int]]) -> Dict[str, NDArray[Any]]:
    """Random inputs of these extents: floats from 0 to 1; 0 and 1 for integers and booleans."""
    numbers = np.random.default_rng(0)
    return {
        port.name: numbers.random(shape, np.float32)
        if port.dtype.kind == "f"
        else numbers.integers(0, 2, shape).astype(port.dtype)
        for port, shape in zip(ports, extents)
    }


def model(given: Model) -> Union[str, "os.PathLike[str]", bytes]:
    """The model as the native module takes it."""
    return bytes(given) if isinstance(given, (bytearray, memoryview)) else given


def record(database: Record) -> Optional[Union[str, "os.PathLike[str]"]]:
    """The record's folder as the native module takes it: an empty path is the user's own."""
    if database is None or isinstance(database, bool):
        return "" if database else None
    if not os.fspath(database):
        raise InputError("database: found an empty path, wanted a folder's")
    return database


def known(values: Optional[Mapping[str, Any]]) -> Dict[str, NDArray[Any]]:
    """Inputs that are known beforehand."""
    return {name: _arrays.numbers(name, value) for name, value in (values or {}).items()}
