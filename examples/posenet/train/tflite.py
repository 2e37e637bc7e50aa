"""Writes a network of convolutions as a float16 TensorFlow Lite file.

The weights are float16 constants behind DEQUANTIZE operators, the usual form of such files; the
feature maps are float32, NHWC. Only the part of the published schema (version 3) that this needs is
written, with the field ids of that schema:

| table | fields |
|---|---|
| Model | version 0, operator_codes 1, subgraphs 2, description 3, buffers 4 |
| OperatorCode | deprecated_builtin_code 0, version 2, builtin_code 3 |
| SubGraph | tensors 0, inputs 1, outputs 2, operators 3, name 4 |
| Tensor | shape 0, type 1 (0 float32, 1 float16), buffer 2, name 3 |
| Operator | opcode_index 0, inputs 1, outputs 2, builtin_options_type 3, builtin_options 4 |
| Conv2DOptions (1) | padding 0, stride_w 1, stride_h 2, activation 3, dilation_w 4, dilation_h 5 |
| DepthwiseConv2DOptions (2) | padding 0, stride_w 1, stride_h 2, depth_multiplier 3, activation 4, dilation_w 5, dilation_h 6 |
| Buffer | data 0 |
"""

import flatbuffers
import numpy as np

CONV_2D, DEPTHWISE_CONV_2D, DEQUANTIZE = 3, 4, 6
CODES = [DEQUANTIZE, CONV_2D, DEPTHWISE_CONV_2D]
FLOAT32, FLOAT16 = 0, 1
SAME, RELU6 = 0, 3


class File:
    def __init__(self):
        self.buffers, self.tensors, self.operators = [b""], [], []

    def tensor(self, name, shape, kind=FLOAT32, data=None):
        buffer = 0
        if data is not None:
            self.buffers.append(data)
            buffer = len(self.buffers) - 1
        self.tensors.append((name, shape, kind, buffer))
        return len(self.tensors) - 1

    def constant(self, name, values):
        """A float16 constant and the operator that widens it."""
        stored = self.tensor(name + "/half", values.shape, FLOAT16, values.astype("<f2").tobytes())
        widened = self.tensor(name, values.shape)
        self.operators.append((DEQUANTIZE, [stored], [widened], None))
        return widened

    def bytes(self, inputs, outputs, description):
        fbb = flatbuffers.Builder(1 << 20)

        def vector(offsets):
            fbb.StartVector(4, len(offsets), 4)
            for offset in reversed(offsets):
                fbb.PrependUOffsetTRelative(offset)
            return fbb.EndVector()

        def ints(values):
            return fbb.CreateNumpyVector(np.asarray(values, dtype="<i4"))

        def raw(data):
            # Aligned as TFLite wants it, so that a reader may use the file in place.
            fbb.StartVector(1, len(data), 16)
            fbb.head -= len(data)
            fbb.Bytes[fbb.head:fbb.head + len(data)] = data
            return fbb.EndVector()

        def table(fields):
            """Fields as (id, how, value); `how` is the builder's method for the slot."""
            fbb.StartObject(max(field[0] for field in fields) + 1 if fields else 0)
            for slot, how, value in fields:
                getattr(fbb, f"Prepend{how}Slot")(slot, value, 0)
            return fbb.EndObject()

        offset = "UOffsetTRelative"
        codes = vector([table([(0, "Int8", code), (2, "Int32", 1), (3, "Int32", code)]) for code in CODES])
        rows = []
        for data in self.buffers:
            content = raw(data) if data else None
            rows.append(table([(0, offset, content)] if content else []))
        buffers = vector(rows)
        rows = []
        for name, shape, kind, buffer in self.tensors:
            text, extents = fbb.CreateString(name), ints(shape)
            rows.append(table([(0, offset, extents), (1, "Int8", kind), (2, "Uint32", buffer), (3, offset, text)]))
        tensors = vector(rows)
        rows = []
        for code, ins, outs, options in self.operators:
            ins, outs = ints(ins), ints(outs)
            fields = [(0, "Uint32", CODES.index(code)), (1, offset, ins), (2, offset, outs)]
            if options is not None:
                fields += [(3, "Uint8", 1 if code == CONV_2D else 2), (4, offset, table(options))]
            rows.append(table(fields))
        operators = vector(rows)
        name, ins, outs = fbb.CreateString("posenet"), ints(inputs), ints(outputs)
        network = table([(0, offset, tensors), (1, offset, ins), (2, offset, outs), (3, offset, operators), (4, offset, name)])
        networks, text = vector([network]), fbb.CreateString(description)
        model = table([(0, "Uint32", 3), (1, offset, codes), (2, offset, networks), (3, offset, text), (4, offset, buffers)])
        fbb.Finish(model, b"TFL3")
        return bytes(fbb.Output())


def posenet(rows, size, description):
    """The file of folded convolutions (`network.folded`) on an input of `size` x `size`."""
    file = File()
    x = file.tensor("image", (1, size, size, 3))
    extent, outputs, inputs = size, [], [x]
    for name, weights, bias, stride, dilation, groups, relu6 in rows:
        weights = weights.cpu().numpy()
        depthwise = groups > 1
        # OIHW to `1 kh kw c` or `oc kh kw c`.
        stored = weights.transpose(1, 2, 3, 0) if depthwise else weights.transpose(0, 2, 3, 1)
        short = name.rsplit("/", 1)[0]
        w, b = file.constant(short + "/weights", stored), file.constant(short + "/bias", bias.cpu().numpy())
        out = -(-extent // stride)
        y = file.tensor(name, (1, out, out, weights.shape[0]))
        activation = RELU6 if relu6 else 0
        options = [(0, "Int8", SAME), (1, "Int32", stride), (2, "Int32", stride)]
        if depthwise:
            options += [(3, "Int32", 1), (4, "Int8", activation), (5, "Int32", dilation), (6, "Int32", dilation)]
        else:
            options += [(3, "Int8", activation), (4, "Int32", dilation), (5, "Int32", dilation)]
        file.operators.append((DEPTHWISE_CONV_2D if depthwise else CONV_2D, [x, w, b], [y], options))
        if relu6:
            x, extent = y, out
        else:
            outputs.append(y)
    return file.bytes(inputs, outputs, description)
