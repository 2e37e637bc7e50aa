"""Runs whose arrays decide the extents that a file leaves open."""

import numpy as np
import pytest

import diptych
from conftest import PAIR, ROOT, onnx

#: present = past and x joined; projected = present times a matrix; reshaped = x in a given shape; extents of present;
#: places where x is not 0.
PAST = ROOT / "tests/cases/open_extents_past.onnx"
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3) - 5


def feeds(batch, length, past, shape, seed=0):
    numbers = np.random.default_rng(seed)
    x, before = (numbers.integers(-2, 3, (batch, extent, 4)).astype(np.float32) for extent in (length, past))
    return {"x": x, "past": before, "shape": np.array(shape)}


def wanted(x, past, shape):
    present = np.concatenate([past, x], 1)
    places = np.array(np.nonzero(x))
    return {
        "present": present,
        "projected": present @ MATRIX,
        "reshaped": x.reshape(shape),
        "extents": np.array(present.shape),
        "places": places,
    }


def check(outputs, given):
    assert list(outputs) == list(wanted(**given))
    for name, array in wanted(**given).items():
        np.testing.assert_array_equal(outputs[name], array)
        assert (outputs[name].dtype, outputs[name].shape) == (array.dtype, array.shape)


def test_a_session_runs_arrays_of_any_extents(device):
    session = diptych.Session(PAST, device=device)
    assert [(port.name, port.shape) for port in session.inputs] == [
        ("x", ("batch", "length", 4)),
        ("past", ("batch", "past", 4)),
        ("shape", (2,)),
    ]
    assert [port.shape for port in session.outputs] == [
        ("batch", "total", 4),
        ("batch", "total", 3),
        ("rows", "columns"),
        (3,),
        (3, None),
    ]
    assert "x[batch, length, 4], past[batch, past, 4], shape[2] int64 -> " in repr(session)
    assert repr(session).count("places[3, ?] int64") == 1
    assert session.dims == {}
    # No past, then a longer one at each run; another shape for the same extents; all as before.
    runs = [feeds(1, 3, 0, (4, 3))] + [feeds(1, 1, past, (2, 2), past) for past in range(3, 6)]
    runs += [feeds(2, 3, 1, (8, 3)), feeds(2, 3, 1, (-1, 6)), runs[0]]
    for given in runs:
        check(session.run(given), given)
        batch, length, _ = given["x"].shape
        assert session.dims == {"batch": batch, "length": length, "past": given["past"].shape[1]}
    for outputs, given in zip(session.stream(runs, in_flight=3), runs):
        check(outputs, given)
    session.restore()
    assert session.dims == {}
    check(session.run(runs[1]), runs[1])


def test_arrays_that_do_not_fit_are_refused():
    session = diptych.Session(PAST, device="cpu")
    good = feeds(1, 3, 2, (3, 4))
    for name, array, message in [
        ("x", good["x"][0], "input 'x': found shape (3, 4), wanted ('batch', 'length', 4)"),
        ("past", good["past"][:, :, :3], "input 'past': found shape (1, 2, 3), wanted ('batch', 'past', 4)"),
        ("shape", np.array([12]), "input 'shape': found shape (1,), wanted (2,)"),
    ]:
        with pytest.raises(diptych.InputError) as caught:
            session.run({**good, name: array})
        assert str(caught.value) == message
    with pytest.raises(diptych.InputError, match="input 'past': found nothing, wanted shape"):
        session.run({"x": good["x"], "shape": good["shape"]})
    # Extents that each fit their input, but not each other; a shape of other elements.
    with pytest.raises(diptych.Error, match="Concat"):
        session.run({**good, "past": np.zeros((2, 2, 4), np.float32)})
    with pytest.raises(diptych.Error, match="Reshape"):
        session.run({**good, "shape": np.array([5, 5])})
    check(session.run(good), good)


def test_given_extents_are_fixed():
    session = diptych.Session(PAST, device="cpu", dims={"past": 2}, values={"shape": np.array([3, 4])})
    assert [port.shape for port in session.inputs] == [("batch", "length", 4), ("batch", 2, 4)]
    assert session.dims == {"past": 2}
    given = feeds(1, 3, 2, (3, 4))
    check(session.run({"x": given["x"], "past": given["past"]}), given)
    with pytest.raises(diptych.InputError, match="wanted .'batch', 2, 4."):
        session.run({"x": given["x"], "past": given["past"][:, :1]})
    with pytest.raises(diptych.Error, match="nothing"):
        diptych.Session(PAST, device="cpu", dims={"nothing": 2})


def test_axes_without_names_and_unknown_ranks():
    unnamed = onnx([("Add", ["x", "x"], ["y"])], [("x", ["", 3])], [("y", ["", 3])])
    session = diptych.Session(unnamed, device="cpu")
    assert session.inputs[0].shape == session.outputs[0].shape == (None, 3)
    np.testing.assert_array_equal(session.run(np.ones((5, 3), np.float32))["y"], np.full((5, 3), 2))
    assert session.dims == {"x.0": 5}
    assert diptych.Session(unnamed, device="cpu", dims={"x.0": 2}).inputs[0].shape == (2, 3)


def test_random_inputs_are_as_large_as_those_of_the_last_run(device):
    session = diptych.Session(PAIR, device=device)
    assert session.steps == []
    assert len(session.profile()) == len(session.steps) > 0
    assert session.dims == {"rows": 1}
    session.run({"a": np.ones((3, 4), np.float32), "b": np.ones((3, 4), np.float32)})
    assert len(session.profile(runs=2)) > 0
    assert session.dims == {"rows": 3}


def test_a_search_is_for_the_extents_of_the_last_run(device, tmp_path):
    model = onnx([("Softmax", ["x"], ["y"])], [("x", ["rows", "columns"])], [("y", ["rows", "columns"])])
    if device == "cpu":
        return
    session = diptych.Session(model, device=device, database=tmp_path)
    with pytest.raises(diptych.Error, match="columns"):
        session.tune(1.0)
    x = np.random.default_rng(1).random((64, 48), np.float32)
    before = session.run(x)["y"]
    verdicts = session.tune(1.0)
    assert verdicts[0].op == "softmax" and "64" in verdicts[0].problem and "48" in verdicts[0].problem
    np.testing.assert_allclose(session.run(x)["y"], before, rtol=1e-5)
    again = diptych.Session(model, device=device, database=tmp_path)
    again.run(x)
    assert "rule" not in again.steps[0].source, again.steps[0].source


def test_a_service_fixes_its_extents():
    with diptych.Batch(PAIR, device="cpu") as batch:
        assert [port.shape for port in batch.inputs] == [(1, 4), (1, 4)]
        a = np.ones((1, 4), np.float32)
        np.testing.assert_array_equal(batch.run({"a": a, "b": a})["sum"], a + a)
        with pytest.raises(diptych.InputError, match="wanted .1, 4."):
            batch.run({"a": np.ones((2, 4), np.float32), "b": a})
