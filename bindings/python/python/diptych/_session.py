"""A network that is ready to run."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from . import _devices, _native, _pixels, _ports
from ._errors import InputError
from ._ports import Inputs, Model, Outputs, Port, Record
from ._stream import Finish, Stream


@dataclass(frozen=True)
class TensorInfo:
    """The file's own description of an input or an output."""

    name: str
    description: str
    #: Means and standard deviations, one for all channels or one for each: ``(x - mean) / deviation``.
    normalisation: List[Tuple[float, float]]
    #: The meaning of each index along the last axis.
    labels: List[str]


@dataclass(frozen=True)
class ModelInfo:
    """What the file says of the model; empty where it does not."""

    name: str
    description: str
    inputs: List[TensorInfo]
    outputs: List[TensorInfo]


@dataclass(frozen=True)
class Step:
    """A step of a run: a node, or several that run as one."""

    name: str
    op: str
    #: The kernel's label.
    kernel: str
    #: What it computes in and stores: ``"f32"``, ``"f16"`` and others.
    precision: str
    work_group: Tuple[int, int, int]
    #: Where the kernel came from: by rule, or which row of the record.
    source: str
    #: Its floating-point operations.
    flops: int
    #: Whether it is no node of the network, but moves a value.
    inserted: bool


@dataclass(frozen=True)
class TimedStep(Step):
    """A step of a run with its time."""

    #: Its time on the device, the median of the runs.
    microseconds: float
    #: The clock: GPU timestamps, profiling events or the host's.
    clock: str


@dataclass(frozen=True)
class Progress:
    """How far a search for faster kernels is."""

    done: int
    problems: int
    #: Candidates of the present problem.
    tried: int
    candidates: int
    finished: bool


@dataclass(frozen=True)
class Verdict:
    """What a search found for one problem."""

    nodes: List[str]
    op: str
    problem: str
    default: str
    #: The fastest; ``None`` if no candidate gives the right result.
    choice: Optional[str]
    default_microseconds: Optional[float]
    microseconds: Optional[float]
    #: The default's time over the choice's.
    speed_up: float
    #: Whether the time was over before the search: the next one goes on with it.
    cut_short: bool


#: What a search does before it looks whether Ctrl-C was pressed.
_TUNING_STEP = 0.1


class Session:
    """A network that is ready to run, on a device.

    Several threads may call one session: their runs take turns on the device, and none holds up other Python threads.
    A session does not survive ``fork``; make it in the process that runs it.

    A run takes arrays of any extents where the file leaves them open. The first run with certain extents prepares for
    them, which takes as long as making a session; the 32 last used ones are kept ready.

    :param model: A TensorFlow Lite or ONNX file: its path, or its bytes. The contents say which it is.
    :param device: ``"auto"`` (a GPU, else the CPU), ``"cpu"``, ``"wgpu"``, ``"opencl"``; one of several by its number,
        PCI address, UUID or a part of its name, as in ``"wgpu:1"``, ``"opencl:0000:41:00.0"`` or ``"H200"``. ``"gpu"`` is the best
        GPU of any API, and never a driver that runs on the CPU. A device that is not there is a :class:`NoDeviceError`, never
        the CPU instead. ``"fastest"`` is the GPU or the CPU that runs
        this network in the least time: the session measures that when it is made, or finds it in the ``database``. Of NVIDIA's cards only those are seen that
        ``CUDA_VISIBLE_DEVICES`` lists.
    :param f16: Halves: stored, and computed in where the device does that. The CPU computes in f32.
    :param tuning: Seconds for :meth:`tune` while the session is made. On the CPU there is nothing to tune.
    :param database: The folder of the tuner's record, which later sessions ask; ``True`` for the user's own. Without it
        the record lasts as long as the session, or is the user's if there is ``tuning``.
    :param dims: Extents to fix although the file leaves them open, by name, such as ``{"batch": 8}``; an axis without a name
        is ``"image.1"``, its input's name and its number. The other ones each run decides.
    :param values: Inputs that are known beforehand and are no inputs of the session.
    :param seed: The seed of the random numbers that the model draws. Sessions of one seed draw the same numbers, run for
        run, on every device; :meth:`reset` begins again.
    :param caches: Places for the keys and values that a decoder keeps from run to run (``past_key_values`` and
        ``present``): they stay on the device, and are no inputs and outputs of the session. A run has one token
        or several. Masks and positions are those of all tokens so far. :meth:`truncate` goes back to the first places,
        :meth:`reset` empties all.
    :param dequantize: Whether operators of quantised networks are computed with floats that are rounded to what the file's
        integers stand for, and not with these; floats beside weights of integers are not rounded at each run then.
    :param threads: How many threads read the file, prepare the session, and compute on the CPU, at most; all, unless given. To
        compute, the number is rounded down to a power of two.
    :param outputs: The outputs that the session has, by name; all of the file's, unless given. What the others alone need is
        not computed.
    :param pixels: What numbers the bytes of pictures are, for all inputs of floats or by the inputs' names: a run scales arrays
        of uint8 by it, or else as the file's metadata say. Without either they are refused.
    :param files: Files that hold weights of an ONNX model, by the names that the model has for them, as their bytes: for a model
        that is given as bytes. One that is loaded by its path reads those beside it that are not here.
    """

    def __init__(
        self,
        model: Model,
        *,
        device: str = "auto",
        f16: bool = False,
        tuning: Optional[float] = None,
        database: Record = None,
        dims: Optional[Mapping[str, int]] = None,
        values: Optional[Mapping[str, Any]] = None,
        seed: int = 0,
        caches: Optional[int] = None,
        dequantize: bool = False,
        threads: Optional[int] = None,
        outputs: Optional[Sequence[str]] = None,
        pixels: _pixels.Given = None,
        files: Optional[_ports.Files] = None,
    ) -> None:
        record = _ports.record(True if database is None and tuning is not None else database)
        known = _ports.known(values)
        extents = dict(dims or {})
        self._native = _native.Network(
            _ports.model(model),
            device,
            f16,
            extents,
            known,
            record,
            seed,
            caches,
            dequantize,
            _ports.threads(threads),
            _ports.chosen(outputs),
            _pixels.native(pixels),
            _ports.files(files),
        )
        self._inputs = _ports.of(self._native.inputs())
        self._optional = _ports.of(self._native.optional_inputs())
        self._outputs = _ports.distinct(self._native.outputs())
        if tuning is not None and self.info.backend != "cpu":
            self.tune(tuning)

    @property
    def inputs(self) -> Tuple[Port, ...]:
        """The inputs that a run needs, in the file's order."""
        return self._inputs

    @property
    def optional_inputs(self) -> Tuple[Port, ...]:
        """The inputs that a run may be given as well: those that have a value in the file."""
        return self._optional

    @property
    def outputs(self) -> Tuple[Port, ...]:
        """The outputs, in the file's order. Of several with one name, the later ones are ``name:1`` and so on.

        Where a run decides an extent, their shape is what the file says of it; arrays have the run's own.
        """
        return self._outputs

    @property
    def dims(self) -> Dict[str, int]:
        """Extents by the names of their axes: those that were given with the model, and those of the last run."""
        return self._native.dimensions()

    @property
    def info(self) -> _devices.Info:
        """The device, and why it is this one."""
        return _devices.info(self._native.info())

    @property
    def model(self) -> ModelInfo:
        """What the file says of the model: descriptions, labels, normalisation."""
        found = self._native.model()
        tensors = {
            side: [TensorInfo(**{**tensor, "normalisation": list(tensor["normalisation"])}) for tensor in found[side]]
            for side in ("inputs", "outputs")
        }
        return ModelInfo(name=found["name"], description=found["description"], **tensors)

    @property
    def steps(self) -> List[Step]:
        """The steps of a run in order. :meth:`profile` times them.

        They are those for the extents of the last run: where the file leaves some open, there are none before it.
        """
        return [Step(*_fields(step)) for step in self._native.steps()]

    @property
    def memory(self) -> Dict[str, int]:
        """Bytes that the session keeps: of ``values`` and of packed ``constants``."""
        values, constants = self._native.memory()
        return {"values": values, "constants": constants}

    def run(self, inputs: Inputs, outputs: Optional[Sequence[str]] = None, out: _ports.Out = None) -> Outputs:
        """Runs the network: arrays by name, or the one input's array; the outputs by name.

        Where an input's ``shape`` has a name or ``None``, any extent will do, 0 too if the network can do with it. Arrays
        of f32 in C order are read where they lie, and must not be written meanwhile. For an input of floats, arrays of float64,
        and of integers of 32 or 64 bits, are an :class:`InputError`: ``array.astype(np.float32)`` is the conversion. Lists become
        the input's type. For an input of integers, what is no number of its ``dtype`` is one. Arrays of uint8 with three axes or
        more are pictures for an input of floats, and become its numbers as ``pixels`` or the file's metadata say. Outputs are
        new arrays of their ``dtype``, whose shape may be another one at each run.

        :param outputs: The outputs that are wanted, by name: others are not copied. (Those that the session was made without
            are not computed either.)
        :param out: Arrays to write outputs to, by name, or that of the one output that is wanted. They have the output's
            ``dtype`` and its shape in this run, and are contiguous and writeable. Those outputs are wanted, unless ``outputs``
            names more.
        """
        sources = self._sources(inputs)
        wanted = _ports.wanted(self._outputs, outputs, out, [array for _, array in sources])
        return wanted.outputs(self._native.run(sources, wanted.places, wanted.given))

    __call__ = run

    def stream(
        self, frames: Iterable[Inputs], in_flight: int = 2, outputs: Optional[Sequence[str]] = None
    ) -> Stream:
        """Runs the network on one frame after the other, and gives the outputs in the same order.

        While the device works on a frame, the next one is uploaded, and the caller works on the outputs of the one before.
        Frames are taken from ``frames`` only when there is room, at most ``in_flight`` at once. An error of ``frames``, or
        of a frame, is raised in the frame's place, after the outputs of the frames before. The frames after it go on, if
        ``frames`` does. ``outputs`` names those that are wanted, if not all are.
        """
        wanted = _ports.wanted(self._outputs, outputs, None)

        def start(frame: Inputs) -> Finish:
            flight = self._native.start(self._sources(frame))
            return lambda: wanted.outputs(flight.finish(wanted.places))

        return Stream(frames, in_flight, start)

    def profile(self, inputs: Optional[Inputs] = None, *, runs: int = 1) -> List[TimedStep]:
        """The time of each step on the device's clock: the median of ``runs`` runs.

        Without inputs it takes random numbers of the last run's extents; before the first run those that are open are 1.
        """
        if runs < 1:
            raise InputError(f"runs: found {runs}, wanted 1 or more")
        if inputs is None:
            inputs = _ports.random(self._inputs, self._native.last_extents())
        sources = self._sources(inputs)
        clock, profiles = "", []
        for _ in range(runs):
            clock, timed = self._native.profile(sources)
            profiles.append(timed)

        def median(timed: Tuple[Tuple[Any, float], ...]) -> TimedStep:
            fields: Tuple[Any, ...] = (*_fields(timed[0][0]), 1e6 * statistics.median(time for _, time in timed), clock)
            return TimedStep(*fields)

        return [median(timed) for timed in zip(*profiles)]

    def tune(
        self, seconds: Optional[float] = None, *, on_progress: Optional[Callable[[Progress], object]] = None
    ) -> List[Verdict]:
        """Times kernels on this device, and takes the faster ones: for so many seconds, or to the end.

        Each candidate's result is checked before it is timed. What is found goes to the record. Ctrl-C, or what
        ``on_progress`` raises, ends the search; the record keeps what was found until then.

        The search is for the extents of the last run, so where the file leaves some open, run the network before, or give
        them with the model. An outermost extent that neither decides is 1.
        """
        tuning = self._native.tuning(seconds)
        try:
            while True:
                progress = Progress(*tuning.step(_TUNING_STEP))
                if on_progress is not None:
                    on_progress(progress)
                if progress.finished:
                    break
        except BaseException:
            tuning.cancel()
            raise
        self._native.refresh()
        return [_verdict(problem) for problem in tuning.report()]

    def refresh(self) -> List[str]:
        """Takes the kernels that the record has now, and returns the names of the steps whose kernel changed."""
        return self._native.refresh()

    @property
    def cached(self) -> int:
        """How many places of the caches are filled; 0 without ``caches``."""
        return self._native.cached()

    def truncate(self, places: int) -> None:
        """Goes back to the first places of the caches: a run behind this call gives what it would have given without the
        runs that filled the others. More places than are filled are an error."""
        self._native.truncate(places)

    def reset(self) -> None:
        """Sets values that one run leaves to the next back to those of the first run, and empties the caches."""
        self._native.reset()

    def restore(self) -> None:
        """Opens the device and makes everything anew: after a :class:`DeviceLostError`."""
        self._native.restore()

    def _sources(self, inputs: Inputs) -> _ports.Sources:
        return _ports.sources(self._inputs, inputs, self._optional)

    def __repr__(self) -> str:
        return f"<diptych.Session {_ports.described(self._inputs, self._outputs)} on {self.info}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Session is of its process: make it where it runs, from the model's path or bytes")


def _fields(step: Tuple[Any, ...]) -> Tuple[Any, ...]:
    *first, work_group, source, flops, inserted = step
    return (*first, tuple(work_group), source, flops, inserted)


def _verdict(problem: Dict[str, Any]) -> Verdict:
    def microseconds(seconds: Optional[float]) -> Optional[float]:
        return None if seconds is None else 1e6 * seconds

    default, chosen = problem.pop("default_seconds"), problem.pop("seconds")
    return Verdict(default_microseconds=microseconds(default), microseconds=microseconds(chosen), **problem)
