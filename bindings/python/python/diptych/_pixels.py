"""What numbers a picture's bytes are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._errors import InputError

#: One number for all channels, or one for each.
Channels = Union[float, Sequence[float]]


def _each(what: str, value: Channels) -> List[float]:
    """The numbers, each finite: one, of Python's or NumPy's, or several."""
    try:
        numbers = [float(one) for one in np.asarray(value, np.float64).reshape(-1)]
    except (TypeError, ValueError):
        raise InputError(f"pixels: found {what} {value!r}, wanted a number, or one for each channel") from None
    if np.ndim(value) > 1 or not numbers or not all(map(math.isfinite, numbers)):
        raise InputError(f"pixels: found {what} {value!r}, wanted a finite number, or one for each channel")
    return numbers


@dataclass(frozen=True)
class Pixels:
    """How bytes (uint8) of pictures become an input's floats: ``(byte - mean) / deviation``.

    Both are in the units of bytes, 0 to 255, and are one number for all channels or one for each. Channels are the last axis,
    or the third last one, as in N x C x H x W: the one that has as many.
    """

    mean: Channels = 127.5
    deviation: Channels = 127.5

    @classmethod
    def range(cls, low: float, high: float) -> Pixels:
        """Bytes from 0 to 255 as ``low`` to ``high``: ``Pixels.range(0, 1)``, ``Pixels.range(-1, 1)``.

        ``Pixels.range(0, 255)`` leaves them as they are.
        """
        if low == high or not (math.isfinite(low) and math.isfinite(high)):
            raise InputError(f"pixels: found {low} to {high}, wanted two finite numbers that differ")
        low, high = float(low), float(high)
        deviation = 255.0 / (high - low)
        return cls(mean=-low * deviation, deviation=deviation)

    def _pairs(self) -> List[Tuple[float, float]]:
        means, deviations = _each("mean", self.mean), _each("deviation", self.deviation)
        count = max(len(means), len(deviations))
        means, deviations = (own * count if len(own) == 1 else own for own in (means, deviations))
        if len(means) != len(deviations):
            raise InputError(f"pixels: found {len(means)} means, wanted {len(deviations)}, as many as deviations")
        return list(zip(means, deviations))


#: For all inputs of floats, or for some by name.
Given = Optional[Union[Pixels, Mapping[str, Pixels]]]
#: What goes to the native module.
Native = List[Tuple[Optional[str], List[Tuple[float, float]]]]


def native(given: Given) -> Native:
    """What the native module takes."""
    if given is None:
        return []
    if isinstance(given, Pixels):
        return [(None, given._pairs())]
    if not isinstance(given, Mapping):
        raise InputError(f"pixels: found {given!r}, wanted diptych.Pixels, or one by the name of each input")
    for name, pixels in given.items():
        if not isinstance(pixels, Pixels):
            raise InputError(f"pixels: found {pixels!r} for input {name!r}, wanted diptych.Pixels")
    return [(name, pixels._pairs()) for name, pixels in given.items()]
