"""Inputs and outputs of a network, and where models come from."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays
from ._errors import InputError

#: A model: a path, or a file's bytes.
Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]
#: Files' contents by their names.
Files = Mapping[str, Union[bytes, bytearray, memoryview]]
#: A folder of the tuner's record; ``True`` for the user's own.
Record = Union[str, "os.PathLike[str]", bool, None]
#: Arrays by the names of inputs; or the one input's array. An array is what NumPy takes for one, or has ``__dlpack__``. It has
#: the input's type, or one that becomes it without rounding (``Port.dtype``).
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
    #: The type of its elements. An output has it. An input of floats also takes arrays of types whose every number it holds
    #: (float16, and integers of up to 16 bits, for float32), one of integers any numbers that are integers of its type, and
    #: both take lists.
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


def empty(port: Port) -> NDArray[Any]:
    """Memory for an output of known shape."""
    return np.empty([extent for extent in port.shape or () if isinstance(extent, int)], port.dtype)


def chosen(outputs: Optional[Sequence[str]]) -> Set[str]:
    """The outputs to compute as the native module takes them: none stand for all."""
    if outputs is None:
        return set()
    names = {outputs} if isinstance(outputs, str) else set(outputs)
    if not names:
        raise _arrays.wrong("outputs", "no names", "at least one, or None for all")
    return names


def threads(count: Optional[int]) -> Optional[int]:
    """How many threads, as the native module takes it."""
    if count is not None and count < 1:
        raise _arrays.wrong("threads", f"{count}", "1 or more, or None for all")
    return count


#: Arrays for outputs by their names, or the one output's array.
Out = Optional[Union[Mapping[str, NDArray[Any]], NDArray[Any]]]


@dataclass(frozen=True)
class Wanted:
    """Which outputs of a run are wanted, and where."""

    #: Their names, in the order of the answer.
    names: Tuple[str, ...]
    #: Their places among the ports.
    order: List[int]
    #: The places of those that become new arrays.
    places: List[int]
    #: Arrays of the caller's, and the places of their outputs.
    given: List[Tuple[int, NDArray[Any]]]

    def outputs(self, new: Iterable[NDArray[Any]]) -> Outputs:
        """The answer, with these new arrays."""
        found = dict(zip(self.places, new))
        found.update(self.given)
        return {name: found[place] for name, place in zip(self.names, self.order)}


def wanted(ports: Sequence[Port], names: Optional[Sequence[str]], out: Out, sources: Sequence[NDArray[Any]] = ()) -> Wanted:
    """The outputs that are named, or all, of which those in ``out`` are written there."""
    known = {port.name: place for place, port in enumerate(ports)}

    def place(what: str, name: str) -> int:
        if name not in known:
            listed = ", ".join(map(repr, known))
            raise _arrays.wrong(what, f"no output {name!r}", f"one of {listed}")
        return known[name]

    if isinstance(names, str):
        names = [names]
    if names is not None and len(set(names)) != len(names):
        raise _arrays.wrong("outputs", f"{list(names)}", "each name once")
    if out is not None and not isinstance(out, Mapping):
        alone = list(known) if names is None else list(names)
        if len(alone) != 1:
            raise _arrays.wrong("out", "one array", f"arrays by name for {', '.join(map(repr, alone))}")
        out = {alone[0]: out}
    out = out or {}
    places = {name: place("out", name) for name in out}
    if names is None:
        names = list(out) if out else list(known)
    order = [place("outputs", name) for name in names]
    given: List[Tuple[int, NDArray[Any]]] = []
    for name, array in out.items():
        at = places[name]
        if at not in order:
            raise _arrays.wrong("out", f"output {name!r}", f"one of the outputs that are wanted, {list(names)}")
        others = [("an input", source) for source in sources] + [("another output", other) for _, other in given]
        _arrays.check_out(ports[at], array, others)
        given.append((at, array))
    taken = {at for at, _ in given}
    return Wanted(tuple(names), order, [at for at in order if at not in taken], given)


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
        port.name: numbers.random(shape, np.float32).astype(port.dtype, copy=False)
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


def files(given: Optional[Files]) -> Dict[str, bytes]:
    """Files that hold a model's weights, by their names in it."""
    found = {}
    for name, contents in (given or {}).items():
        if not isinstance(contents, (bytes, bytearray, memoryview)):
            raise _arrays.wrong("files", f"{type(contents).__name__} for {name!r}", "its bytes")
        found[name] = bytes(contents)
    return found
