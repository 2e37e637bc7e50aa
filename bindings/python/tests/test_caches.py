"""A decoder whose keys and values stay on the device."""

import numpy as np
import pytest

import diptych
from conftest import ROOT

DECODER = ROOT / "tests/cases/kept_decoder.onnx"


def feeds(begin, count):
    places = np.arange(begin, begin + count)[None]
    return {
        "input_ids": (7 * places + 3) % 32,
        "attention_mask": np.ones((1, begin + count), np.int64),
        "position_ids": places,
    }


def test_caches_give_what_a_past_that_is_given_does(device):
    plain = diptych.Session(DECODER, device=device)
    session = diptych.Session(DECODER, device=device, caches=6)
    assert [port.name for port in session.inputs] == ["input_ids", "attention_mask", "position_ids"]
    assert [port.name for port in session.outputs] == ["logits"]
    past = {port.name: np.zeros((1, 2, 0, 4), np.float32) for port in plain.inputs if "past" in port.name}
    for begin, count in [(0, 3), (3, 1), (4, 1), (5, 1)]:
        wanted = plain.run({**feeds(begin, count), **past})
        past = {name: wanted[name.replace("past_key_values", "present")] for name in past}
        found = session.run(feeds(begin, count))
        np.testing.assert_allclose(found["logits"], wanted["logits"], atol=1e-4)
        assert session.cached == begin + count
    with pytest.raises(diptych.Error):
        session.run(feeds(6, 1))
    with pytest.raises(diptych.Error):
        session.truncate(7)
    session.truncate(3)
    assert session.cached == 3
    # Several tokens in one run, behind others.
    np.testing.assert_allclose(session.run(feeds(3, 3))["logits"][0, -1:], wanted["logits"][0], atol=1e-4)
    session.reset()
    assert session.cached == 0
    session.run(feeds(0, 2))
