"""Other people's networks, against outputs of the engines that they were made for."""

import numpy as np
import pytest

import diptych

#: The largest error of an output, relative to its largest magnitude.
TOLERANCE = 1e-3

TFLITE = ["face_detection_short_range", "hand_landmark_lite", "mtcnn_onet", "dtln_1", "espcn_d2s", "kws_ref"]
ONNX = ["mnist", "version-RFB-320_simplified"]


def check(found, golden):
    wanted = np.load(golden)
    assert found.shape == wanted.shape
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert error <= TOLERANCE, f"{golden.name}: {error}"


@pytest.mark.parametrize("model", TFLITE)
def test_tensorflow_lite(device, shared, model):
    folder = shared / "models/golden" / model
    # Some goldens are of weights that stand for floats, and of inputs that are not rounded at the run.
    dequantize = (folder / "output0.dequantised.npy").exists()
    session = diptych.Session(shared / f"models/{model}.tflite", device=device, dequantize=dequantize)
    inputs = {port.name: np.load(folder / f"input{index}.npy") for index, port in enumerate(session.inputs)}
    outputs = session.run(inputs)
    for index, found in enumerate(outputs.values()):
        golden = folder / f"output{index}.xnnpack.npy"
        check(found, golden if golden.exists() else folder / f"output{index}.dequantised.npy")


@pytest.mark.parametrize("model", ONNX)
def test_onnx(device, shared, model):
    folder = shared / "models/onnx/golden" / model
    session = diptych.Session(shared / f"models/onnx/{model}.onnx", device=device)
    files = enumerate(port.name for port in session.inputs)
    inputs = {name: np.load(folder / f"{index}.{name}.input.npy") for index, name in files}
    for index, (name, found) in enumerate(session.run(inputs).items()):
        check(found, folder / f"{index}.{name}.output.npy")


def test_posenet(device, shared):
    model = "posenet_mobilenet_v1_075_257x257_os16_f32"
    folder = shared / "posenet/golden" / model / "random1234"
    outputs = diptych.Session(shared / f"posenet/{model}.tflite", device=device).run(np.load(folder / "input.npy"))
    for name, found in zip(["heatmaps", "offsets", "fwd", "bwd"], outputs.values()):
        check(found, folder / f"{name}.f64.npy")
