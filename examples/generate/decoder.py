"""A small decoder as an ONNX file, in the way exports of transformers' models have it.

    python decoder.py FILE [--layers 12 --width 768 --heads 12 --shared 4 --hidden 2048 --tokens 32000 --context 2048]

writes one with random weights, to measure speeds. `train.py` trains one. Inputs are `input_ids`, `attention_mask`,
`position_ids` and `past_key_values.N.key` and `.value`; outputs are `logits` and `present.N.key` and `.value`.
"""

import argparse
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass
class Shape:
    layers: int = 4
    width: int = 64
    heads: int = 4
    shared: int = 2  # heads of keys and values, which the others share
    hidden: int = 176
    tokens: int = 256
    context: int = 512

    @property
    def depth(self):
        return self.width // self.heads


def names(shape):
    """The weights with their extents. Products are written `x @ w`."""
    few = shape.shared * shape.depth
    yield "embedding", (shape.tokens, shape.width)
    for layer in range(shape.layers):
        yield f"{layer}.attention_norm", (shape.width,)
        yield f"{layer}.query", (shape.width, shape.width)
        yield f"{layer}.key", (shape.width, few)
        yield f"{layer}.value", (shape.width, few)
        yield f"{layer}.output", (shape.width, shape.width)
        yield f"{layer}.hidden_norm", (shape.width,)
        yield f"{layer}.gate", (shape.width, shape.hidden)
        yield f"{layer}.up", (shape.width, shape.hidden)
        yield f"{layer}.down", (shape.hidden, shape.width)
    yield "norm", (shape.width,)
    yield "unembedding", (shape.width, shape.tokens)


def random_weights(shape, seed=0):
    random = np.random.default_rng(seed)
    weights = {}
    for name, extents in names(shape):
        if name.endswith("norm"):
            weights[name] = np.ones(extents, np.float32)
        else:
            values = random.standard_normal(extents, dtype=np.float32)
            weights[name] = values * np.float32(extents[0] ** -0.5 if name != "embedding" else 1.0)
    return weights


def angles(shape):
    """Cosines and sines of each place, for both halves of a head."""
    half = np.arange(0, shape.depth, 2) / shape.depth
    turns = np.outer(np.arange(shape.context), 10000.0**-half)
    turns = np.concatenate([turns, turns], axis=1)
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


class Writer:
    def __init__(self, halves):
        self.nodes, self.constants, self.count, self.halves = [], [], 0, halves

    def add(self, op, *inputs, name=None, **options):
        self.count += 1
        name = name or f"{op}_{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **options))
        return name

    def constant(self, values, name=None):
        self.count += 1
        name = name or f"constant_{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, values, name):
        """In halves, if they are wanted: they are whole floats in the network."""
        if not self.halves:
            return self.constant(values, name)
        stored = self.constant(values.astype(np.float16), f"{name}.f16")
        return self.add("Cast", stored, name=name, to=TensorProto.FLOAT)


def write(path, shape, weights, halves=False):
    w = Writer(halves)
    ints = lambda *values: w.constant(np.array(values, np.int64))
    number = lambda value: w.constant(np.float32(value))
    w_of = {name: w.weight(weights[name], name) for name, _ in names(shape)}
    depth, few, group = shape.depth, shape.shared, shape.heads // shape.shared

    def normal(x, weight):
        square = w.add("Mul", x, x)
        mean = w.add("ReduceMean", square, axes=[-1], keepdims=1)
        root = w.add("Sqrt", w.add("Add", mean, number(1e-5)))
        return w.add("Mul", w.add("Div", x, root), w_of[weight])

    def heads(x, count):
        split = w.add("Reshape", x, ints(0, 0, count, depth))
        return w.add("Transpose", split, perm=[0, 2, 1, 3])

    def turned(x, cosine, sine):
        first = w.add("Slice", x, ints(0), ints(depth // 2), ints(3))
        second = w.add("Slice", x, ints(depth // 2), ints(depth), ints(3))
        other = w.add("Concat", w.add("Neg", second), first, axis=-1)
        return w.add("Add", w.add("Mul", x, cosine), w.add("Mul", other, sine))

    def spread(x):
        """Each head of keys or values once for each head of queries that shares it."""
        if group == 1:
            return x
        extents = w.add("Shape", x)
        parts = [w.add("Gather", extents, ints(axis)) for axis in range(4)]
        whole = w.add("Concat", parts[0], parts[1], ints(group), parts[2], parts[3], axis=0)
        joined = w.add("Concat", parts[0], ints(shape.heads), parts[2], parts[3], axis=0)
        return w.add("Reshape", w.add("Expand", w.add("Unsqueeze", x, ints(2)), whole), joined)

    extent = lambda x, axis: w.add("Gather", w.add("Shape", x), w.constant(np.int64(axis)))
    total, past = extent("attention_mask", 1), extent("past_key_values.0.key", 2)
    zero, one = w.constant(np.int64(0)), w.constant(np.int64(1))
    own = w.add("Unsqueeze", w.add("Range", past, total, one), ints(1))
    others = w.add("Range", zero, total, one)
    seen = w.add("LessOrEqual", others, own)
    filled = w.add("Cast", w.add("Unsqueeze", "attention_mask", ints(1, 2)), to=TensorProto.BOOL)
    bias = w.add("Where", w.add("And", seen, filled), number(0.0), number(np.finfo(np.float32).min))
    tables = [w.constant(table) for table in angles(shape)]
    cosine, sine = [w.add("Unsqueeze", w.add("Gather", table, "position_ids"), ints(1)) for table in tables]

    x = w.add("Gather", w_of["embedding"], "input_ids")
    for layer in range(shape.layers):
        h = normal(x, f"{layer}.attention_norm")
        q = turned(heads(w.add("MatMul", h, w_of[f"{layer}.query"]), shape.heads), cosine, sine)
        k = turned(heads(w.add("MatMul", h, w_of[f"{layer}.key"]), few), cosine, sine)
        v = heads(w.add("MatMul", h, w_of[f"{layer}.value"]), few)
        k = w.add("Concat", f"past_key_values.{layer}.key", k, name=f"present.{layer}.key", axis=2)
        v = w.add("Concat", f"past_key_values.{layer}.value", v, name=f"present.{layer}.value", axis=2)
        scores = w.add("MatMul", q, w.add("Transpose", spread(k), perm=[0, 1, 3, 2]))
        scores = w.add("Add", w.add("Mul", scores, number(depth**-0.5)), bias)
        found = w.add("MatMul", w.add("Softmax", scores, axis=-1), spread(v))
        found = w.add("Reshape", w.add("Transpose", found, perm=[0, 2, 1, 3]), ints(0, 0, shape.width))
        x = w.add("Add", x, w.add("MatMul", found, w_of[f"{layer}.output"]))
        h = normal(x, f"{layer}.hidden_norm")
        gate = w.add("MatMul", h, w_of[f"{layer}.gate"])
        gate = w.add("Mul", gate, w.add("Sigmoid", gate))
        up = w.add("Mul", gate, w.add("MatMul", h, w_of[f"{layer}.up"]))
        x = w.add("Add", x, w.add("MatMul", up, w_of[f"{layer}.down"]))
    w.add("MatMul", normal(x, "norm"), w_of["unembedding"], name="logits")

    long, float_ = TensorProto.INT64, TensorProto.FLOAT
    value = helper.make_tensor_value_info
    inputs = [
        value("input_ids", long, ["batch_size", "sequence_length"]),
        value("attention_mask", long, ["batch_size", "past_sequence_length + sequence_length"]),
        value("position_ids", long, ["batch_size", "sequence_length"]),
    ]
    outputs = [value("logits", float_, ["batch_size", "sequence_length", shape.tokens])]
    for layer in range(shape.layers):
        for kind in ["key", "value"]:
            cache = lambda places: ["batch_size", few, places, depth]
            inputs.append(value(f"past_key_values.{layer}.{kind}", float_, cache("past_sequence_length")))
            places = cache("past_sequence_length + sequence_length")
            outputs.append(value(f"present.{layer}.{kind}", float_, places))
    graph = helper.make_graph(w.nodes, "decoder", inputs, outputs, w.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    size = sum(int(np.prod(extents)) for _, extents in names(shape)) * (2 if halves else 4)
    if size < 1 << 30:
        onnx.save(model, path)
    else:
        location = path.rsplit("/", 1)[-1] + ".data"
        onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--halves", action="store_true", help="keep the weights in halves")
    for name, default in vars(Shape()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = vars(parser.parse_args())
    path, halves = options.pop("file"), options.pop("halves")
    shape = Shape(**options)
    write(path, shape, random_weights(shape), halves)


if __name__ == "__main__":
    main()
