"""Frames, one behind the other."""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Iterable, Iterator, Optional, Union

from ._errors import InputError
from ._ports import Inputs, Outputs

#: Waits for a frame's outputs.
Finish = Callable[[], Outputs]


class Stream(Iterator[Outputs]):
    """The outputs of a stream of frames, in their order. Made by :meth:`Session.stream` and :meth:`DevicePool.stream`."""

    def __init__(self, frames: Iterable[Inputs], in_flight: int, start: Callable[[Inputs], Finish]) -> None:
        if in_flight < 1:
            raise InputError(f"in_flight: found {in_flight}, wanted 1 or more")
        self._frames: Optional[Iterator[Inputs]] = iter(frames)
        self._in_flight = in_flight
        self._start = start
        self._started: Deque[Union[Finish, Exception]] = deque()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Outputs:
        while self._frames is not None and len(self._started) < self._in_flight:
            try:
                frame = next(self._frames)
            except StopIteration:
                self._frames = None
                break
            except Exception as error:
                self._started.append(error)
                continue
            try:
                self._started.append(self._start(frame))
            except Exception as error:
                self._started.append(error)
        if not self._started:
            raise StopIteration
        finish = self._started.popleft()
        if isinstance(finish, Exception):
            raise finish
        return finish()
