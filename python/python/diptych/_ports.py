"""Inputs and outputs of a network, and where models come from."""

from __future__ import annotations

import os
from dataclasses import dataclass
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
#: Arrays by the names of outputs.
Outputs = Dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Port:
    """An input or an output."""

    name: str
    shape: Tuple[int, ...]
    #: The type of its elements. An input also takes numbers of other types, if each is one of this type; an output has it.
    dtype: "np.dtype[Any]" = _arrays.F32


def of(ports: List[Tuple[str, List[int], str]]) -> Tuple[Port, ...]:
    """Ports of the native module."""
    return tuple(Port(name, tuple(extents), np.dtype(dtype)) for name, extents, dtype in ports)


def distinct(ports: List[Tuple[str, List[int], str]]) -> Tuple[Port, ...]:
    """Ports with names of their own: of several with one name, the later ones are ``name:1`` and so on."""
    names: Dict[str, int] = {}
    made = []
    for name, extents, dtype in ports:
        count = names[name] = names.get(name, -1) + 1
        made.append(Port(f"{name}:{count}" if count else name, tuple(extents), np.dtype(dtype)))
    return tuple(made)


def sources(ports: Sequence[Port], inputs: Inputs) -> List[NDArray[Any]]:
    """The inputs' arrays in order."""
    if not isinstance(inputs, Mapping):
        if len(ports) != 1:
            names = ", ".join(repr(port.name) for port in ports)
            raise InputError(f"inputs: found one array, wanted arrays by name for {names}")
        return [_arrays.source(ports[0], inputs)]
    unknown = inputs.keys() - {port.name for port in ports}
    if unknown:
        names = ", ".join(repr(port.name) for port in ports)
        raise _arrays.refused(sorted(unknown)[0], "no input of this name", f"one of {names}")
    for port in ports:
        if port.name not in inputs:
            raise _arrays.refused(port.name, "nothing", f"shape {port.shape}")
    return [_arrays.source(port, inputs[port.name]) for port in ports]


def empty(ports: Sequence[Port]) -> Outputs:
    """Memory for the outputs."""
    return {port.name: np.empty(port.shape, port.dtype) for port in ports}


def described(inputs: Iterable[Port], outputs: Iterable[Port]) -> str:
    """Names and shapes, and types but for float32."""

    def one(port: Port) -> str:
        dtype = "" if port.dtype == _arrays.F32 else f" {port.dtype}"
        return f"{port.name}{list(port.shape)}{dtype}"

    return f"{', '.join(map(one, inputs))} -> {', '.join(map(one, outputs))}"


def random(ports: Iterable[Port]) -> Dict[str, NDArray[Any]]:
    """Random inputs: floats from 0 to 1; 0 and 1 for integers and booleans."""
    numbers = np.random.default_rng(0)
    return {
        port.name: numbers.random(port.shape, np.float32)
        if port.dtype.kind == "f"
        else numbers.integers(0, 2, port.shape).astype(port.dtype)
        for port in ports
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
