"""PoseNet on a narrow MobileNetV1, output stride 16, and what it is trained to say.

The heads are those of the public PoseNet, in its order: heatmap (17), offset (17 y, 17 x),
displacement_fwd and displacement_bwd (16 y, 16 x each, in input pixels).
"""

import torch
from torch import nn

from bodies import PARTS

# The tree of parts as (parent, child): channel e of the displacements is edge e.
TREE = [(0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15),
        (0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16)]
HEADS = [("heatmap", PARTS), ("offset", 2 * PARTS), ("displacement_fwd", 2 * len(TREE)), ("displacement_bwd", 2 * len(TREE))]
STRIDE = 16

# Output channels, stride and dilation of the thirteen blocks at width 1. The last stride of
# MobileNetV1 is taken out, and the block after it dilated instead.
BLOCKS = [(64, 1, 1), (128, 2, 1), (128, 1, 1), (256, 2, 1), (256, 1, 1), (512, 2, 1), (512, 1, 1), (512, 1, 1),
          (512, 1, 1), (512, 1, 1), (512, 1, 1), (1024, 1, 1), (1024, 1, 2)]


def channels(base, width):
    """`base * width`, as a multiple of eight, and not less than 8."""
    return max(8, int(base * width / 8 + 0.5) * 8)


class PoseNet(nn.Module):
    """Input (B, 3, H, W), `(v - 127.5) / 127.5`; output a list of four (B, C, H/16, W/16)."""

    def __init__(self, width=0.35):
        super().__init__()
        self.width = width
        previous = channels(32, width) + 8 * (width < 0.4)  # at least 16: the stem sees the most
        layers = [self.unit(3, previous, 3, 2)]
        for base, stride, dilation in BLOCKS:
            out = channels(base, width)
            layers += [self.unit(previous, previous, 3, stride, dilation, groups=previous), self.unit(previous, out, 1, 1)]
            previous = out
        self.body = nn.Sequential(*layers)
        self.heads = nn.ModuleList(nn.Conv2d(previous, count, 1) for _, count in HEADS)
        nn.init.constant_(self.heads[0].bias, -3.0)  # most cells hold no part

    @staticmethod
    def unit(ins, outs, kernel, stride, dilation=1, groups=1):
        pad = dilation * (kernel // 2)  # SAME of an odd input: as much on either side
        conv = nn.Conv2d(ins, outs, kernel, stride, pad, dilation, groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outs, momentum=0.03), nn.ReLU6(inplace=True))

    def forward(self, x):
        x = self.body(x)
        return [head(x) for head in self.heads]


def folded(model):
    """The convolutions with their batch norms folded in, in order: (name, weights, bias, stride,
    dilation, groups, relu6), in float64."""
    rows = []
    for index, (conv, norm, _) in enumerate(model.body):
        scale = norm.weight.double() / torch.sqrt(norm.running_var.double() + norm.eps)
        weights = conv.weight.double() * scale[:, None, None, None]
        bias = norm.bias.double() - norm.running_mean.double() * scale
        block = (index + 1) // 2
        name = "MobilenetV1/Conv2d_0" if index == 0 else f"MobilenetV1/Conv2d_{block}_{'depthwise' if index % 2 else 'pointwise'}"
        rows.append((name + "/Relu6", weights, bias, conv.stride[0], conv.dilation[0], conv.groups, True))
    for (name, _), head in zip(HEADS, model.heads):
        rows.append((f"MobilenetV1/{name}_2/BiasAdd", head.weight.double(), head.bias.double(), 1, 1, 1, False))
    return [(name, w.detach(), b.detach(), *rest) for name, w, b, *rest in rows]


def run_folded(rows, x):
    """The folded network in the type of its rows: what a TFLite file of them computes."""
    outputs = []
    for name, weights, bias, stride, dilation, groups, relu6 in rows:
        pad = dilation * (weights.shape[-1] // 2)
        y = nn.functional.conv2d(x, weights, bias, stride, pad, dilation, groups)
        if relu6:
            x = y.clamp(0, 6)
        else:
            outputs.append(y)
    return outputs


def truth(points, seen, present, size):
    """What the heads should say (B, N people): a heatmap and vectors with their weights.

    A heatmap is 1 around a part and falls off within two cells; a hidden part counts for less. Vectors
    are learned near the part they start from, those of the nearest person.
    """
    device = points.device
    grid = (size - 1) // STRIDE + 1
    cells = torch.arange(grid, device=device, dtype=torch.float32) * STRIDE
    cx, cy = cells[None, None, None, None, :], cells[None, None, None, :, None]
    px, py = points[..., 0, None, None], points[..., 1, None, None]  # (B, N, 17, 1, 1)
    dx, dy = px - cx, py - cy
    distance = torch.sqrt(dx * dx + dy * dy)
    valid = (seen > 0)[..., None, None]
    level = torch.where(seen > 0.75, 1.0, 0.6)[..., None, None]
    heat = torch.exp(-((distance - 7).clamp_min(0) / 15) ** 2 / 2) * level * valid
    heatmap = heat.amax(1)
    away = torch.where(valid, distance, torch.full_like(distance, 1e6))
    nearest, who = away.min(1)  # (B, 17, h, w)
    pick = lambda v: torch.gather(v.expand(-1, -1, -1, grid, grid), 1, who[:, None])[:, 0]
    offset = torch.stack([pick(dy), pick(dx)], 1)  # (B, 2, 17, h, w)
    near = (nearest < 44).float()
    vectors = []
    for source, target in ((0, 1), (1, 0)):
        a = torch.tensor([edge[source] for edge in TREE], device=device)
        b = torch.tensor([edge[target] for edge in TREE], device=device)
        step = points[:, :, b] - points[:, :, a]  # (B, N, 16, 2)
        owner = who[:, a]
        take = lambda v: torch.gather(v[..., None, None].expand(-1, -1, -1, grid, grid), 1, owner[:, None])[:, 0]
        # Only towards a part that is in the picture, or just outside it.
        known = present[..., None].float() * ((points[:, :, b] > -24) & (points[:, :, b] < size + 24)).all(-1)
        weight = (nearest[:, a] < 26).float() * take(known)
        vectors.append((torch.stack([take(step[..., 1]), take(step[..., 0])], 1), weight))
    return heatmap, (offset, near), vectors


def loss(outputs, points, seen, present, size):
    """The sum of the losses, and its parts: heatmap, offset, displacements."""
    heatmap, (offset, near), vectors = truth(points, seen, present, size)
    logits = outputs[0].float()
    weight = 1 + 3 * heatmap
    bce = nn.functional.binary_cross_entropy_with_logits(logits, heatmap, weight=weight, reduction="none")
    heat = bce.mean() * 60
    found = outputs[1].float().unflatten(1, (2, PARTS))
    smooth = lambda a, b, beta: nn.functional.smooth_l1_loss(a, b, beta=beta, reduction="none").sum(1)
    off = (smooth(found, offset, 4.0) * near).sum() / near.sum().clamp_min(1) / 8
    moved = 0
    for output, (target, weight) in zip(outputs[2:], vectors):
        found = output.float().unflatten(1, (2, len(TREE)))
        moved = moved + (smooth(found, target, 6.0) * weight).sum() / weight.sum().clamp_min(1) / 24
    return heat + off + moved, (heat.detach(), off.detach(), moved.detach() if torch.is_tensor(moved) else moved)


def decode_single(outputs):
    """The parts of the one person: positions (B, 17, 2) in input pixels, and scores (B, 17)."""
    heat = outputs[0].float()
    b, parts, h, w = heat.shape
    best, cell = heat.flatten(2).max(2)
    row, column = cell // w, cell % w
    offset = outputs[1].float().flatten(2)
    y = torch.gather(offset[:, :parts], 2, cell[..., None])[..., 0] + row * STRIDE
    x = torch.gather(offset[:, parts:], 2, cell[..., None])[..., 0] + column * STRIDE
    return torch.stack([x, y], -1), torch.sigmoid(best)


def pck(found, points, seen, height, alpha=0.1):
    """Which parts lie within `alpha` of the figure's height from the truth: (B, 17), boolean.

    `height` (B,) is the figure's height standing, in pixels. None stands for the longer side of the box
    around its parts, which is less: the stricter measure of the two.
    """
    if height is None:
        height = (points.amax(1) - points.amin(1)).amax(-1)
    return ((found - points).norm(dim=-1) <= alpha * height[:, None]) & (seen > 0)
