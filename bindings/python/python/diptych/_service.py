"""Networks that serve requests of many threads, on one device or on several."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar

from numpy.typing import NDArray

from . import _devices, _native, _pixels, _ports
from ._ports import Inputs, Model, Outputs, Port, Record
from ._stream import Finish, Stream

#: Runs of a device that are under way at once: one computes, one is on its way.
_IN_FLIGHT = 2

Own = TypeVar("Own", bound="Service")


@dataclass(frozen=True)
class BatchCounts:
    """What was done so far."""

    #: Requests that were answered, with results or an error.
    requests: int
    #: Runs of one request, of two, and so on.
    runs: Tuple[int, ...]
    #: Requests that wait for their run.
    waiting: int


@dataclass(frozen=True)
class PoolDevice:
    """A device of a :class:`DevicePool`, and what it has done."""

    info: _devices.Info
    #: Requests that it has answered.
    requests: int
    #: How long a request of a run takes it, of late, if a run was seen.
    seconds: Optional[float]
    #: Why it was taken out, if it was.
    error: Optional[Exception]


class Ticket:
    """A request that was handed in. Without its ticket a request is withdrawn, unless its run has begun."""

    def __init__(self, native: _native.Ticket, outputs: Tuple[Port, ...]) -> None:
        self._native = native
        self._outputs = outputs

    def wait(
        self, timeout: Optional[float] = None, outputs: Optional[Sequence[str]] = None, out: _ports.Out = None
    ) -> Outputs:
        """Waits for the outputs, and gives them once: all, or those that are named, and to arrays of the caller's as
        :meth:`Session.run` does.

        If so many seconds are over before, this is Python's ``TimeoutError``: the request still waits, or runs. Ctrl-C
        withdraws it.
        """
        wanted = _ports.wanted(self._outputs, outputs, out)
        new = [_ports.empty(self._outputs[place]) for place in wanted.places]
        arrays: List[Optional[NDArray[Any]]] = [None] * len(self._outputs)
        for place, array in (*zip(wanted.places, new), *wanted.given):
            arrays[place] = array
        if not self._native.wait(arrays, timeout):
            raise TimeoutError(f"no answer within {timeout} seconds")
        return wanted.outputs(new)


class Service:
    """What :class:`Batch` and :class:`DevicePool` have in common."""

    def __init__(
        self,
        model: Model,
        devices: Optional[Sequence[str]],
        max_batch: int,
        max_delay: float,
        max_waiting: int,
        sizes: Sequence[int],
        f16: bool,
        database: Record,
        dims: Optional[Mapping[str, int]],
        values: Optional[Mapping[str, Any]],
        dimension: Optional[str],
        dequantize: bool,
        threads: Optional[int],
        outputs: Optional[Sequence[str]],
        pixels: _pixels.Given,
        files: Optional[_ports.Files],
    ) -> None:
        self._native = _native.Service(
            _ports.model(model),
            devices,
            f16,
            dict(dims or {}),
            _ports.known(values),
            _ports.record(database),
            max_batch,
            max_delay,
            max_waiting,
            list(sizes),
            dimension,
            dequantize,
            _ports.threads(threads),
            _ports.chosen(outputs),
            _pixels.native(pixels),
            _ports.files(files),
        )
        # Also when the interpreter ends: no driver is at work then.
        self._close = weakref.finalize(self, self._native.close)
        taken, given = self._native.ports()
        self._inputs = _ports.of(taken)
        self._outputs = _ports.distinct(given)
        self._window = max_waiting + len(self._native.devices()) * _IN_FLIGHT * max_batch

    @property
    def inputs(self) -> Tuple[Port, ...]:
        """The inputs of one request, in the file's order."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[Port, ...]:
        """The outputs of one request, in the file's order, with the names that they have in a :class:`Session`."""
        return self._outputs

    @property
    def counts(self) -> BatchCounts:
        """What was done so far."""
        requests, runs, waiting = self._native.counts()
        return BatchCounts(requests, tuple(runs), waiting)

    def run(self, inputs: Inputs, outputs: Optional[Sequence[str]] = None, out: _ports.Out = None) -> Outputs:
        """Runs the network on one request: arrays by name, or the one input's array; the outputs by name, with ``outputs`` and
        ``out`` as those of :meth:`Session.run`.

        Arrays are copied before they are joined with those of other requests. What is wrong with them concerns no other
        request; if a run fails, all of its requests get the error. Ctrl-C withdraws the request, unless its run has
        begun.
        """
        _ports.wanted(self._outputs, outputs, out)
        return self.submit(inputs).wait(outputs=outputs, out=out)

    __call__ = run

    def submit(self, inputs: Inputs) -> Ticket:
        """Hands in a request, and waits until it is taken: at once where fewer than ``max_waiting`` wait.

        The arrays may be written again when this returns.
        """
        return Ticket(self._native.submit(_ports.arrays(self._inputs, inputs)), self._outputs)

    def try_submit(self, inputs: Inputs) -> Optional[Ticket]:
        """:meth:`submit` if there is room; ``None`` otherwise, for a server that would rather refuse than hold back."""
        ticket = self._native.try_submit(_ports.arrays(self._inputs, inputs))
        return None if ticket is None else Ticket(ticket, self._outputs)

    def stream(self, frames: Iterable[Inputs]) -> Stream:
        """Runs the network on many frames, and gives the outputs in the same order.

        Frames are taken from ``frames`` while fewer than ``max_waiting`` wait for a device, so it may go on for ever. What
        ``frames`` raises, and what is wrong with a frame or its run, is raised in its place, behind the outputs of the
        frames before; the frames after it go on, if ``frames`` does.
        """

        def start(frame: Inputs) -> Finish:
            return self.submit(frame).wait

        return Stream(frames, self._window, start)

    def close(self) -> None:
        """Answers what was handed in, and ends. Later requests are an :class:`InputError`."""
        self._close()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        name = type(self).__name__
        raise TypeError(f"a {name} is of its process: make it where it runs, from the model's path or bytes")


class Batch(Service):
    """One network that serves requests of many threads: what is asked for at about the same time becomes one run, whose
    results are split again.

    Threads call :meth:`run`, and wait without holding up others; in asyncio, ``await asyncio.to_thread(batch.run, x)``.
    Each request has the results that it would have alone. A network with states, which belong to one sequence of runs, is
    refused.

    A batch ends with ``with``, :meth:`close`, or when it is dropped. After a :class:`DeviceLostError` make another one.

    :param model: As for :class:`Session`; so are ``device``, ``f16``, ``database``, ``dims``, ``values``, ``dequantize``,
        ``threads``, ``outputs``, ``pixels`` and ``files``; no device is measured.
    :param max_batch: Requests of one run at most, 1 to 1024.
    :param max_delay: Seconds that a request waits for others at most, while no two runs are under way. A full batch does
        not wait. With 0, batches are what came while the device was busy.
    :param max_waiting: Requests at most that have been taken and whose run has not begun. Those who bring more wait.
    :param sizes: The batch sizes that are made ready; sizes whose kernels read the weights alike share them. Where a size
        is missing the next larger one runs; ``max_batch`` is always one. Empty means every size from 1 to ``max_batch``.
    :param dimension: The named extent that counts requests; unless it is given, the one that is the outermost of every
        input, and without such a one the outermost extent, which is 1 in the file.
    """

    def __init__(
        self,
        model: Model,
        *,
        device: str = "auto",
        max_batch: int = 8,
        max_delay: float = 0.001,
        max_waiting: int = 32,
        sizes: Sequence[int] = (),
        f16: bool = False,
        database: Record = None,
        dims: Optional[Mapping[str, int]] = None,
        values: Optional[Mapping[str, Any]] = None,
        dimension: Optional[str] = None,
        dequantize: bool = False,
        threads: Optional[int] = None,
        outputs: Optional[Sequence[str]] = None,
        pixels: _pixels.Given = None,
        files: Optional[_ports.Files] = None,
    ) -> None:
        super().__init__(
            model,
            [device],
            max_batch,
            max_delay,
            max_waiting,
            sizes,
            f16,
            database,
            dims,
            values,
            dimension,
            dequantize,
            threads,
            outputs,
            pixels,
            files,
        )

    @property
    def info(self) -> _devices.Info:
        """The device, and why it is this one."""
        [(info, *_)] = self._native.devices()
        return _devices.info(info)

    def __repr__(self) -> str:
        return f"<diptych.Batch {_ports.described(self._inputs, self._outputs)}>"


class DevicePool(Service):
    """One network on several devices: GPUs, or GPUs and the CPU, whose work is requests as those of :class:`Batch`.

    Requests wait in one queue, and each device takes a batch of them when it is free: at most its share of what waits, by
    the speed at which it was seen to run, so that fast and slow ones are done at about the same time. The weights are
    read once.

    A device that is lost is taken out, and what it had begun runs on another one. So does a run that failed: if it
    succeeds there, the first device is taken out; if it fails there as well, its requests get the error, and both go on.
    The last device is not taken out: its errors are those of the requests.

    :param devices: Devices as for :class:`Session`, as in ``["wgpu:0", "wgpu:1", "cpu"]``. Unless they are given, every
        GPU of this machine, each once, or the CPU if there is none.
    :param max_waiting: Requests at most that wait for all devices: below ``max_batch`` for each of them, batches stay
        small.

    The others are those of :class:`Batch`.
    """

    def __init__(
        self,
        model: Model,
        devices: Optional[Sequence[str]] = None,
        *,
        max_batch: int = 8,
        max_delay: float = 0.001,
        max_waiting: int = 32,
        sizes: Sequence[int] = (),
        f16: bool = False,
        database: Record = None,
        dims: Optional[Mapping[str, int]] = None,
        values: Optional[Mapping[str, Any]] = None,
        dimension: Optional[str] = None,
        dequantize: bool = False,
        threads: Optional[int] = None,
        outputs: Optional[Sequence[str]] = None,
        pixels: _pixels.Given = None,
        files: Optional[_ports.Files] = None,
    ) -> None:
        # A text is a sequence of texts, too.
        named = [devices] if isinstance(devices, str) else None if devices is None else list(devices)
        super().__init__(
            model,
            named,
            max_batch,
            max_delay,
            max_waiting,
            sizes,
            f16,
            database,
            dims,
            values,
            dimension,
            dequantize,
            threads,
            outputs,
            pixels,
            files,
        )

    @property
    def devices(self) -> List[PoolDevice]:
        """The devices, in the order in which they were given, and what each has done."""
        return [
            PoolDevice(_devices.info(info), requests, seconds, error)
            for info, requests, seconds, error in self._native.devices()
        ]

    def __repr__(self) -> str:
        count = len(self._native.devices())
        return f"<diptych.DevicePool {_ports.described(self._inputs, self._outputs)} on {count} devices>"
