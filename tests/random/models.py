"""Writes the ONNX files of this folder, which tests/it/random.rs runs. Needs onnx: python tests/random/models.py"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

HERE = Path(__file__).parent


def save(name, nodes, inputs, outputs, constants=(), opset=22):
    values = [h.make_tensor_value_info(*one) for one in inputs]
    results = [h.make_tensor_value_info(*one) for one in outputs]
    kept = [numpy_helper.from_array(array, key) for key, array in constants]
    graph = h.make_graph(nodes, name, values, results, kept)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, HERE / f"{name}.onnx")


def node(op, inputs, outputs, **options):
    return h.make_node(op, inputs, outputs, **options)


# Every operator, with its types.
save(
    "operators",
    [
        node("RandomNormal", [], ["normal"], shape=[200, 50], mean=2.0, scale=0.5),
        node("RandomUniform", [], ["uniform"], shape=[200, 50], low=-1.0, high=3.0, seed=5.0),
        node("RandomNormalLike", ["p"], ["normal_like"], dtype=T.DOUBLE),
        node("RandomUniformLike", ["p"], ["uniform_like"], dtype=T.FLOAT16),
        node("RandomUniformLike", ["ids"], ["of_integers"], dtype=T.FLOAT),
        node("Bernoulli", ["p"], ["bernoulli"]),
        node("Bernoulli", ["p"], ["bernoulli_int64"], dtype=T.INT64, seed=1.0),
        node("Bernoulli", ["p"], ["bernoulli_bool"], dtype=T.BOOL),
        node("Multinomial", ["logs"], ["multinomial"], sample_size=3000),
        node("Multinomial", ["logs"], ["multinomial_int64"], sample_size=1, dtype=T.INT64, seed=2.0),
    ],
    [("p", T.FLOAT, [40, 25]), ("ids", T.INT64, [7]), ("logs", T.FLOAT, [2, 4])],
    [
        ("normal", T.FLOAT, [200, 50]),
        ("uniform", T.FLOAT, [200, 50]),
        ("normal_like", T.DOUBLE, [40, 25]),
        ("uniform_like", T.FLOAT16, [40, 25]),
        ("of_integers", T.FLOAT, [7]),
        ("bernoulli", T.FLOAT, [40, 25]),
        ("bernoulli_int64", T.INT64, [40, 25]),
        ("bernoulli_bool", T.BOOL, [40, 25]),
        ("multinomial", T.INT32, [2, 3000]),
        ("multinomial_int64", T.INT64, [2, 1]),
    ],
)

# All that is read is known, and two nodes are alike.
save(
    "constants",
    [
        node("RandomUniformLike", ["half"], ["like"]),
        node("Bernoulli", ["half"], ["bernoulli"]),
        node("RandomNormal", [], ["one"], shape=[64], seed=3.0),
        node("RandomNormal", [], ["other"], shape=[64], seed=3.0),
        node("Dropout", ["half", "ratio", "true"], ["dropped", "mask"]),
    ],
    [],
    [
        ("like", T.FLOAT, [64]),
        ("bernoulli", T.FLOAT, [64]),
        ("one", T.FLOAT, [64]),
        ("other", T.FLOAT, [64]),
        ("dropped", T.FLOAT, [64]),
        ("mask", T.BOOL, [64]),
    ],
    [
        ("half", np.full(64, 0.5, np.float32)),
        ("ratio", np.array(0.25, np.float32)),
        ("true", np.array(True)),
    ],
)

# Dropout whose ratio and mode are given at the run, between convolutions, and with constants.
save(
    "dropout",
    [
        node("Conv", ["x", "w"], ["map"]),
        node("Dropout", ["map", "ratio", "training"], ["y", "mask"], seed=9),
        node("Dropout", ["map", "fixed", "true"], ["z", "other"]),
        node("Conv", ["z", "w"], ["last"]),
        node("Dropout", ["map", "", "true"], ["half"]),
    ],
    [("x", T.FLOAT, [2, 3, 20, 30]), ("ratio", T.FLOAT, []), ("training", T.BOOL, [])],
    [
        ("map", T.FLOAT, [2, 3, 20, 30]),
        ("y", T.FLOAT, [2, 3, 20, 30]),
        ("mask", T.BOOL, [2, 3, 20, 30]),
        ("z", T.FLOAT, [2, 3, 20, 30]),
        ("other", T.BOOL, [2, 3, 20, 30]),
        ("last", T.FLOAT, [2, 3, 20, 30]),
        ("half", T.FLOAT, [2, 3, 20, 30]),
    ],
    [
        ("w", np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)),
        ("fixed", np.array(0.25, np.float32)),
        ("true", np.array(True)),
    ],
)


def body(extra):
    """Draws, and hands on what it drew and what the turn before drew."""
    return h.make_graph(
        [
            node("Identity", ["go"], ["on"]),
            node("RandomUniform", [], ["now"], shape=[5], seed=4.0),
            node("Identity", ["last"], ["before"]),
            *([node("Identity", ["now"], ["kept"])] if extra else []),
        ],
        "body",
        [
            h.make_tensor_value_info("turn", T.INT64, []),
            h.make_tensor_value_info("go", T.BOOL, []),
            h.make_tensor_value_info("last", T.FLOAT, [5]),
            h.make_tensor_value_info("earlier", T.FLOAT, [5]),
        ],
        [
            h.make_tensor_value_info("on", T.BOOL, []),
            h.make_tensor_value_info("now", T.FLOAT, [5]),
            h.make_tensor_value_info("before", T.FLOAT, [5]),
            *([h.make_tensor_value_info("kept", T.FLOAT, [5])] if extra else []),
        ],
    )


START = [("zero", np.zeros(5, np.float32)), ("true", np.array(True))]

# A loop of four turns, and one that is counted at each run.
save(
    "loop",
    [node("Loop", ["four", "true", "zero", "zero"], ["last", "before", "all"], body=body(True))],
    [],
    [("last", T.FLOAT, [5]), ("before", T.FLOAT, [5]), ("all", T.FLOAT, [4, 5])],
    [*START, ("four", np.array(4, np.int64))],
)
save(
    "turns",
    [node("Loop", ["turns", "true", "zero", "zero"], ["last", "before"], body=body(False))],
    [("turns", T.INT64, [])],
    [("last", T.FLOAT, [5]), ("before", T.FLOAT, [5])],
    START,
)

# Extents that each run decides, and such as depend on what is drawn.
save(
    "open",
    [
        node("RandomUniformLike", ["x"], ["noise"]),
        node("Less", ["noise", "half"], ["truth"]),
        node("NonZero", ["truth"], ["places"]),
        node("Shape", ["places"], ["shape"]),
        node("Slice", ["shape", "one", "two"], ["count"]),
        node("ConstantOfShape", ["count"], ["zeros"]),
        node("RandomNormalLike", ["zeros"], ["last"]),
    ],
    [("x", T.FLOAT, ["n"])],
    [("noise", T.FLOAT, ["n"]), ("places", T.INT64, [1, "k"]), ("last", T.FLOAT, ["k"])],
    [("half", np.array(0.5, np.float32)), ("one", np.array([1], np.int64)), ("two", np.array([2], np.int64))],
)
save(
    "extents",
    [node("RandomNormalLike", ["x"], ["noise"]), node("Add", ["x", "noise"], ["y"])],
    [("x", T.FLOAT, ["n"])],
    [("y", T.FLOAT, ["n"])],
)
