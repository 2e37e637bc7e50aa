"""What a worker does: pictures' files to the places of a person's parts."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

import diptych

#: The bundled network.
MODEL = Path(__file__).resolve().parents[3] / "examples/posenet/data/posenet_figures.tflite"


class Pose:
    """The network with what comes before and after it."""

    def __init__(self, model=MODEL, device="auto"):
        self.session = diptych.Session(model, device=device)
        (self.port,) = self.session.inputs

    def decode(self, picture):
        """The network's input, and what one of its pixels is in the picture."""
        _, height, width, _ = self.port.shape
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        scale = (image.width / width, image.height / height)
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), np.float32)
        return ((pixels - 127.5) / 127.5)[np.newaxis], scale

    def parts(self, outputs, scale):
        """Each part's x, y and score: where its heatmap is highest, moved by the offset there."""
        heatmap, offset, *_ = (array[0] for array in outputs.values())
        rows, columns, count = heatmap.shape
        stride = (self.port.shape[1] - 1) / (rows - 1)
        found = []
        for part in range(count):
            row, column = np.unravel_index(np.argmax(heatmap[:, :, part]), (rows, columns))
            y, x = offset[row, column, part], offset[row, column, part + count]
            score = 1 / (1 + np.exp(-heatmap[row, column, part]))
            found.append([(column * stride + x) * scale[0], (row * stride + y) * scale[1], score])
        return np.array(found, np.float32)

    def batch(self, pictures):
        """For each picture its parts and no error, or no parts and why it could not be read.

        While the device works on a picture, the next one is decoded.
        """
        scales, errors = [], {}

        def frames():
            for index, picture in enumerate(pictures):
                try:
                    frame, scale = self.decode(picture)
                except OSError as error:
                    errors[index] = str(error)
                    continue
                scales.append(scale)
                yield frame

        found = [self.parts(outputs, scales[index]) for index, outputs in enumerate(self.session.stream(frames()))]
        rest = iter(found)
        return [(None, errors[index]) if index in errors else (next(rest), None) for index in range(len(pictures))]
