"""Frames of cameras."""

import numpy as np
import pytest

import diptych


def test_a_frame_is_scaled_and_has_the_colours_of_the_standard() -> None:
    # 8 x 4 pixels of NV12 in BT.601: pure red is 81, 90, 240.
    data = bytes([81]) * 32 + bytes([90, 240]) * 8
    found = diptych.frame(data, "nv12", (8, 4), (4, 2), mean=(0.5,) * 3, deviation=(0.5,) * 3)
    assert found.shape == (1, 2, 4, 3) and found.dtype == np.float32
    np.testing.assert_allclose(found, np.broadcast_to([1, -1, -1], found.shape), atol=0.02)


def test_rows_may_be_padded_and_arrays_given() -> None:
    data = np.zeros((2, 10), dtype=np.uint8)
    data[:, :8] = [[255, 128, 255, 128] * 2, [0, 128, 0, 128] * 2]
    found = diptych.frame(data, "YUYV", (4, 2), (4, 2), stride=10, range="full")
    np.testing.assert_allclose(found[0, 0], 1, atol=1e-5)
    np.testing.assert_allclose(found[0, 1], 0, atol=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(diptych.InputError, match="47 bytes.*48"):
        diptych.frame(bytes(47), "NV12", (8, 4), (4, 2))
    with pytest.raises(diptych.InputError, match="P010.*NV12"):
        diptych.frame(bytes(48), "P010", (8, 4), (4, 2))
    with pytest.raises(diptych.InputError, match="bt601"):
        diptych.frame(bytes(48), "NV12", (8, 4), (4, 2), matrix="bt470")
