"""Primitives -> pictures: signed distances with shading, painted one over the other.

A primitive is a bar from a to b. At the share t of its length it is `w(t) = wa + (wb - wa) t + 4 bulge
t (1 - t)` wide to either side of the axis, its corners are rounded by `rho w`, and its ends reach
`ext w` beyond a and b: with `rho = ext = 1` it is a limb, with both near 0 a board.
"""

import torch

from bodies import F

CHUNK = 4  # primitives painted by one compiled function


def paint(canvas, noise, prims, light, x, y, aa):
    """Paints `prims` (B, K, fields) one after the other on `canvas` (B, 3, H, W), in pixels of the scene.

    `noise` (B, 1, H, W) is the weave of all surfaces; `light` (B, 3) points to the light; `x`, `y` are
    the pixels' centres (B, 1, W), (B, H, 1); `aa` (B, 1, 1) is the width of an edge.
    """
    red, green, blue = canvas[:, 0], canvas[:, 1], canvas[:, 2]
    weave = noise[:, 0]
    lx, ly, lz = (light[:, k, None, None] for k in range(3))
    for index in range(prims.shape[1]):
        get = lambda name: prims[:, index, F[name], None, None]
        ax, ay, wa, wb, rho, ext = get("ax"), get("ay"), get("wa"), get("wb"), get("rho"), get("ext")
        dx, dy = get("bx") - ax, get("by") - ay
        length = torch.sqrt(dx * dx + dy * dy + 1e-6)
        ux, uy = dx / length, dy / length
        px, py = x - ax, y - ay
        along, side = px * ux + py * uy, py * ux - px * uy
        t = (along / length).clamp(0, 1)
        w = (wa + (wb - wa) * t + 4 * get("bulge") * t * (1 - t)).clamp_min(0.05)
        corner = rho * w
        qx = side.abs() - (w - corner)
        qy = (along - length / 2).abs() - (length / 2 + ext * w - corner)
        inside = torch.maximum(qx, qy).clamp_max(0)
        qx, qy = qx.clamp_min(0), qy.clamp_min(0)
        distance = torch.sqrt(qx * qx + qy * qy + 1e-8) + inside - corner
        edge = aa * get("soft")
        opacity = get("opacity")
        cover = (0.5 - distance / edge).clamp(0, 1) * opacity
        # A soft shadow around the part, on what is painted already.
        dark = 1 - get("shadow") * opacity * 0.55 * torch.exp(-distance.clamp_min(0) / (0.45 * torch.maximum(wa, wb) + 0.3))
        # The body is round: its normal follows from the place across and beyond the ends.
        nx = (side / w).clamp(-1, 1)
        reach = ext * w + 1e-3
        ny = ((along - length) / reach).clamp(0, 1) - (-along / reach).clamp(0, 1)
        nz = torch.sqrt((1 - 0.92 * (nx * nx + ny * ny).clamp_max(1)))
        # Across the axis, to the side of growing `side`: (-uy, ux).
        lit = (nx * (lx * -uy + ly * ux) + ny * (lx * ux + ly * uy) + nz * lz).clamp_min(0)
        shade = get("shade")
        glow = 1 - shade + shade * (0.42 + 0.78 * lit)
        glow = glow * (0.94 + 0.12 * weave)
        # Stripes: along, across or slanted.
        wave = torch.sin(get("freq") * (along * get("pcos") + side * get("psin"))) * 3
        mix = get("pamp") * (0.5 + 0.5 * wave.clamp(-1, 1))
        for_channel = lambda c1, c2: ((get(c1) + (get(c2) - get(c1)) * mix) * glow)
        red = red * dark + (for_channel("r", "r2") - red * dark) * cover
        green = green * dark + (for_channel("g", "g2") - green * dark) * cover
        blue = blue * dark + (for_channel("b", "b2") - blue * dark) * cover
    return torch.stack([red, green, blue], 1)


class Renderer:
    """Paints scenes; compiled where that pays (on a GPU)."""

    def __init__(self, compiled):
        if compiled:
            torch._dynamo.config.recompile_limit = 32  # one for each batch size
            torch._dynamo.config.suppress_errors = True  # then it is slower, not wrong
        self.paint = torch.compile(paint, dynamic=False) if compiled else paint

    def primitives(self, canvas, noise, prims, light, x, y, aa):
        count = prims.shape[1]
        missing = -count % CHUNK
        if missing:
            blank = torch.zeros_like(prims[:, :1]).expand(-1, missing, -1)
            prims = torch.cat([prims, blank], 1)  # of no opacity
        for start in range(0, count, CHUNK):
            canvas = self.paint(canvas, noise, prims[:, start:start + CHUNK].contiguous(), light, x, y, aa)
        return canvas


def covered(prims, points, margin):
    """Whether each primitive (B, K, fields) covers each point (B, N, 2): (B, N, K), opaque ones only."""
    get = lambda name: prims[:, None, :, F[name]]
    px, py = points[:, :, None, 0] - get("ax"), points[:, :, None, 1] - get("ay")
    dx, dy = get("bx") - get("ax"), get("by") - get("ay")
    length = torch.sqrt(dx * dx + dy * dy + 1e-6)
    ux, uy = dx / length, dy / length
    along, side = px * ux + py * uy, py * ux - px * uy
    t = (along / length).clamp(0, 1)
    w = (get("wa") + (get("wb") - get("wa")) * t + 4 * get("bulge") * t * (1 - t)).clamp_min(0.05)
    corner = get("rho") * w
    qx = side.abs() - (w - corner)
    qy = (along - length / 2).abs() - (length / 2 + get("ext") * w - corner)
    distance = torch.hypot(qx.clamp_min(0), qy.clamp_min(0)) + torch.maximum(qx, qy).clamp_max(0) - corner
    return (distance < -margin) & (get("opacity") > 0.5)
