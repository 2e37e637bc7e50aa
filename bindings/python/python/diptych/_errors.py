"""The exceptions. Each is an :class:`Error`, and also of the built-in class that fits: ``ValueError``, ``OSError`` and so on.

The message is the library's. Attributes have the values in it: ``node`` is the node of the network, or ``None``.
"""

from __future__ import annotations

from typing import List, Optional, Tuple


class Error(Exception):
    """The base of all exceptions of Diptych."""

    node: Optional[str] = None


class InputError(Error, ValueError):
    """A name, shape, type or option that does not fit: ``name`` of the input, what was ``found`` and ``wanted``."""

    name: str = ""
    found: str = ""
    wanted: str = ""


class ShapeError(Error, ValueError):
    """Shapes that do not fit an op: ``op``, what was ``found`` and ``wanted``."""

    op: str = ""
    found: str = ""
    wanted: str = ""


class ModelError(Error, ValueError):
    """A model's file that cannot be read: ``file``, ``op`` (its number and name, where there is one), ``reason``."""

    file: str = ""
    op: Optional[Tuple[int, str]] = None
    reason: str = ""


class UnsupportedError(Error, NotImplementedError):
    """Something that is not supported: ``what`` it is, or which ``kernel``, and the ``reason``."""

    what: str = ""
    kernel: str = ""
    reason: str = ""


class NoDeviceError(Error, RuntimeError):
    """No such device: which ``backend``, what was ``wanted``, and what was ``tried``."""

    backend: str = ""
    wanted: str = ""
    tried: List[str] = []


class CompileError(Error, RuntimeError):
    """A ``kernel`` that the driver of ``api`` does not compile: its ``log``, and the numbered ``source``."""

    kernel: str = ""
    api: str = ""
    log: str = ""
    source: str = ""


class DriverError(Error, RuntimeError):
    """A ``call`` of an ``api`` that failed, with the ``reason``."""

    api: str = ""
    call: str = ""
    reason: str = ""


class OutOfMemoryError(Error, MemoryError):
    """A ``call`` of an ``api`` for which the device or its driver has no memory, with the ``reason``."""

    api: str = ""
    call: str = ""
    reason: str = ""


class TimedOutError(Error, TimeoutError):
    """A wait for the device took longer than ``limit`` seconds (``DIPTYCH_TIME_LIMIT``). The device may still be at work."""

    api: str = ""
    limit: float = 0.0


class DeviceLostError(Error, OSError, RuntimeError):
    """The device is gone: ``api`` and ``reason``. :meth:`Session.restore` makes the session again."""

    api: str = ""
    reason: str = ""


class FileError(Error, OSError):
    """A file that could not be read or written: ``filename`` and ``errno``."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotFoundError(FileError, FileNotFoundError):
    """A file that is not there."""
