"""Which devices there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from . import _native


@dataclass(frozen=True)
class Device:
    """A device of one API. A GPU is listed once for each API that reaches it; ``pci`` is the same on both."""

    #: The text by which :class:`Session` opens this device: the backend with the PCI address, or with the number if the
    #: driver reports no address.
    id: str
    #: ``"wgpu"``, ``"opencl"`` or ``"cpu"``.
    backend: str
    name: str
    #: ``"Vulkan"``, ``"OpenCL"`` and others.
    api: str
    driver: str
    #: Where it sits on the PCI bus, as in ``"0000:41:00.0"``, if its driver says so.
    pci: Optional[str]
    #: The same on every API of its driver; what ``nvidia-smi -L`` prints.
    uuid: Optional[str]
    #: Whether it is a driver that runs kernels on the CPU.
    software: bool
    #: Whether it computes in f16.
    halves: bool


@dataclass(frozen=True)
class Info:
    """The device that a session runs on, and why it is this one."""

    backend: str
    #: ``None`` on the CPU.
    device: Optional[Device]
    reason: str
    text: str

    def __str__(self) -> str:
        return self.text


def info(values: Dict[str, Any]) -> Info:
    """The native module's answer as data."""
    backend, given = values["backend"], values["device"]
    device = None if given is None else _device(backend, given["name"], given)
    return Info(backend=backend, device=device, reason=values["reason"], text=values["text"])


def _device(backend: str, place: object, given: Dict[str, Any]) -> Device:
    return Device(id=f"{backend}:{given['pci'] or place}", backend=backend, **given)


def devices() -> List[Device]:
    """Every device of every backend, and the CPU, which is always there.

    A backend without a driver has no devices here. Opening one raises an error with the reason.
    """
    found = [
        _device(backend, index, given)
        for backend, listed, _ in _native.devices()
        for index, given in enumerate(listed)
    ]
    cpu = Device("cpu", "cpu", "CPU", api="CPU", driver="", pci=None, uuid=None, software=True, halves=False)
    return [*found, cpu]
