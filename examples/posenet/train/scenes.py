"""Pictures of one to four people in a room or outdoors, among other things, with the truth about them."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as nn

import bodies
from bodies import F, FIELDS, OWN, P, PARTS, SKIN, Random, colour, palette
from render import Renderer, covered

CLUTTER, OCCLUDERS = 16, 4


@dataclass
class Batch:
    image: torch.Tensor  # (B, 3, H, W), 0 to 1
    points: torch.Tensor  # (B, N, 17, 2): x, y in pixels, from the centre of the first
    seen: torch.Tensor  # (B, N, 17): 1 seen, 0.5 hidden but in the picture, 0 outside it or nobody
    present: torch.Tensor  # (B, N): whether there is such a person
    height: torch.Tensor  # (B, N): of the person standing, in pixels


def noise(random, count, height, width, cells):
    """Smooth noise (B, 1, H, W), 0 to 1, with about `cells` bumps in each direction."""
    grid = random.uniform(0, 1, count, 1, cells + 2, cells + 2)
    return nn.interpolate(grid, (height, width), mode="bicubic", align_corners=True).clamp(0, 1)


def backdrop(random, count, x, y, height, width, ground, calm=False):
    """A wall or a sky, a floor, and their patterns: (B, 3, H, W). `ground` (B,) is the feet's y."""
    u = lambda lo, hi: random.uniform(lo, hi, count)[:, None, None]
    scene_h = y.amax(dim=(1, 2), keepdim=True)
    horizon = ground[:, None, None] - u(0.02, 0.30) * scene_h
    pale = random.chance(0.5, count)[:, None] if not calm else 1.0
    hues = [pale * (0.6 + 0.4 * colour(random, count)) + (1 - pale) * colour(random, count) for _ in range(4)]
    top, bottom, near, far = (c[:, :, None, None] for c in hues)
    t = (y / horizon.clamp_min(1)).clamp(0, 1)[:, None]
    wall = top + (0.3 * bottom + 0.7 * top - top) * t
    # Boards or bricks on the wall.
    period = u(0.03, 0.25) * scene_h
    lines = lambda v: torch.exp(-((v - v.round()) * 14) ** 2)
    boards = torch.maximum(lines(x / period) * random.chance(0.4, count)[:, None, None], lines(y / period) * random.chance(0.4, count)[:, None, None])
    wall = wall * (1 - (boards * random.chance(0.35, count)[:, None, None] * u(0.05, 0.5))[:, None])
    depth = ((y - horizon) / (scene_h - horizon).clamp_min(1)).clamp(0, 1)
    floor = far + (0.5 * near + 0.5 * far - far) * depth[:, None]
    # Planks that run towards a point on the horizon.
    spread = (x - u(0.2, 0.8) * x.amax(dim=(1, 2), keepdim=True)) / (depth + 0.25)
    planks = lines(spread / (period * 1.5 + 4)) * random.chance(0.5, count)[:, None, None] * u(0.05, 0.4)
    floor = floor * (1 - planks[:, None])
    edge = ((y - horizon) / 1.5 + 0.5).clamp(0, 1)[:, None]
    picture = wall + (floor - wall) * edge
    skirting = torch.exp(-(((y - horizon + 4) / 3) ** 2)) * random.chance(0.35, count)[:, None, None]
    picture = picture + (0.9 - picture) * skirting[:, None] * 0.8
    for cells in (3, 9, 30, 80):
        strength = (0.3 if calm else 1.0) * (random.uniform(0, 1, count) ** 2)[:, None, None, None] * (0.35 if cells < 20 else 0.22)
        tint = 1 + 0.5 * random.normal(count, 3, 1, 1)
        picture = picture * (1 + strength * tint * (noise(random, count, height, width, cells) - 0.5) * 2)
    return picture.clamp(0.01, 1)


def things(random, count, number, size, front, calm=False):
    """Furniture, plants, posters, limb-like bars: (B, number, fields), anywhere in `size` (B, 2)."""
    prims = torch.zeros(count, number, len(FIELDS), device=random.device)
    u = lambda lo, hi: random.uniform(lo, hi, count, number)
    small = size.amin(-1)[:, None]
    kind = random.pick([0.42, 0.30, 0.28] if not front else [0.45, 0.45, 0.10], count, number)
    board, limb = kind == 0, kind == 1
    angle = torch.where(board, math.pi / 2 * (u(0, 1) < 0.5) + 0.04 * random.normal(count, number), u(0, 2 * math.pi))
    length = torch.where(board, u(0.05, 0.6), torch.where(limb, u(0.08, 0.5), u(0.0, 0.06))) * small
    width = torch.where(board, u(0.02, 0.22), torch.where(limb, u(0.006, 0.045), u(0.015, 0.12))) * small
    x, y = u(-0.05, 1.05) * size[:, :1], u(-0.05, 1.05) * size[:, 1:]
    dx, dy = torch.cos(angle) * length / 2, torch.sin(angle) * length / 2
    taper = torch.where(limb, u(0.5, 1.0), torch.ones_like(x))
    for name, value in {
        "ax": x - dx, "ay": y - dy, "bx": x + dx, "by": y + dy, "wa": width, "wb": width * taper,
        "rho": torch.where(board, u(0.0, 0.25), torch.ones_like(x)), "ext": torch.where(board, 0.0 * x, torch.ones_like(x)),
        "soft": torch.where(u(0, 1) < 0.2, u(1, 12), torch.ones_like(x)), "shadow": u(0, 0.6) * (u(0, 1) < 0.6),
        "shade": torch.where(board, u(0.0, 0.5), u(0.4, 1.0)), "freq": u(6, 60) / small,
        "pcos": torch.cos(angle * 2), "psin": torch.sin(angle * 2), "pamp": u(-0.6, 0.9).clamp_min(0),
        "opacity": (u(0, 1) < (random.uniform(0, 1, count, 1) if not front else 0.22 * random.chance(0.5, count)[:, None] + 0 * x)).float(),
    }.items():
        prims[..., F[name]] = value
    skinlike = random.chance(0.25, count, number)[..., None].bool()
    first = torch.where(skinlike, palette(random, SKIN, count, number), colour(random, count, number))
    prims[..., F["r"]:F["r"] + 3] = first
    prims[..., F["r2"]:F["r2"] + 3] = colour(random, count, number)
    if calm:
        prims[..., F["opacity"]] *= (board & (x > 0)).float() if not front else 0.0
    return prims


def scale(prims, factor, offset):
    """Primitives of unit scale, moved: `factor` (B,) pixels to the unit, `offset` (B, 2)."""
    prims = prims.clone()
    f = factor[:, None]
    for name in ("ax", "ay", "bx", "by", "wa", "wb", "bulge"):
        prims[..., F[name]] *= f
    prims[..., F["freq"]] /= f
    for x, y in (("ax", "ay"), ("bx", "by")):
        prims[..., F[x]] += offset[:, :1]
        prims[..., F[y]] += offset[:, 1:]
    return prims


def crowd(random, count, slots, size, motion=None):
    """People placed in pictures of `size` (B, 2): lists of primitives by person, and the truth."""
    # How many there are: with four slots two to four, else as many as slots.
    number = 2 + random.pick([0.45, 0.3, 0.25], count) if slots == 4 else torch.full((count,), slots, device=random.device)
    small = size.amin(-1)
    ground = size[:, 1] * random.uniform(0.72, 1.02, count)
    base = random.uniform(0.46, 0.97, count) if slots == 1 else random.uniform(0.34, 0.85, count)
    order = torch.argsort(random.uniform(0, 1, count, slots), 1).float()
    # A film stands still where its people move: their places are not those of their poses.
    place = lambda at: at if motion is None else at.mean(0, keepdim=True).expand_as(at)
    painted, points, turned, present, heights = [], [], [], [], []
    # All bodies at once: one long batch is quicker than several short ones.
    everybody = bodies.people(random, count * slots, motion)
    for slot in range(slots):
        prims, depth, at, hidden = (values[slot * count:(slot + 1) * count] for values in everybody)
        here = (slot < number).float()
        height = small * (base * random.uniform(0.85, 1.12, count)).clamp_max(1.0)
        lo, hi = place(at.amin(1)), place(at.amax(1))
        extent = (hi - lo) * height[:, None]
        # In width: anywhere, or each in a stripe of their own; now and then partly outside.
        margin = torch.where(random.chance(0.15, count).bool(), -0.10, 0.03) * size[:, 0]
        free = (size[:, 0] - extent[:, 0] - 2 * margin).clamp_min(0)
        if slots == 1:
            share = random.uniform(0, 1, count)
        else:
            rank = torch.where(order[:, slot] < number, order[:, slot], order[:, slot] % number.clamp_min(1))
            share = (rank + 0.5 + 0.28 * random.normal(count)) / number.clamp_min(1)
        left = margin + free * share.clamp(-0.1, 1.1)
        bottom = ground - 0.04 * height + (random.uniform(-0.06, 0.0, count) + 0.01 * slot) * size[:, 1]
        # Some jump, and tall ones are moved down so that the head is not cut off too often.
        lift = random.chance(0.12, count) * random.uniform(0, 0.12, count) * size[:, 1]
        top = bottom - lift - extent[:, 1]
        inside = (random.uniform(0.03, 0.14, count) * height - top).clamp_min(0) * random.chance(0.92, count)
        offset = torch.stack([left - lo[:, 0] * height, bottom - lift + inside - hi[:, 1] * height], -1)
        prims = scale(prims, height, offset)
        prims[..., F["opacity"]] *= here[:, None]
        rank = torch.argsort(depth, 1)
        painted.append((torch.gather(prims, 1, rank[:, :, None].expand_as(prims)), torch.argsort(rank, 1), bottom + inside, left + extent[:, 0] / 2, extent[:, 0], here, height))
        points.append(at * height[:, None, None] + offset[:, None])
        turned.append(hidden)
        present.append(here)
        heights.append(height)
    stack = lambda values: torch.stack(values, 1)
    return painted, stack(points), stack(turned), stack(present).bool(), stack(heights), ground


def hidden_by_others(points, seen, start, order, prims):
    """Marks keypoints that a later primitive covers, unless they are in that part of the body."""
    margin = 1.5
    over = covered(prims, points, margin)  # (B, 17, K)
    positions = torch.arange(prims.shape[1], device=prims.device)
    result = seen.clone()
    for part in range(PARTS):
        own = start + order[:, [P[name] for name in OWN[part].split()]]  # (B, n) places in the painting
        later = positions[None] > own.amin(1, keepdim=True)
        mine = (positions[None, :, None] == own[:, None, :]).any(-1)
        result[:, part] *= 1 - (over[:, part] & later & ~mine).any(-1).float()
    return result


def scenes(random: Random, renderer: Renderer, count, slots, height, width, stretch=0.0, calm=False, motion=None):
    """`count` pictures of `height` x `width` with up to `slots` people.

    `stretch` is how much wider or higher than the picture the scene may be before it is squeezed
    into it, as a photograph is on its way into the network (0.3: by up to a factor of 1.3). `calm`
    pictures are for people to look at: less clutter, no grain. `motion` poses the people, where it is
    not `random` (see `bodies.Motion`).
    """
    device = random.device
    with torch.no_grad():
        # The scene's size in units that are square; the picture shows all of it.
        wider = (1 + stretch) ** random.uniform(-1, 1, count)
        step = torch.stack([wider.clamp_min(1), (1 / wider).clamp_min(1)], -1)  # scene units per pixel
        size = step * torch.tensor([width, height], device=device)
        x = (torch.arange(width, device=device) + 0.5)[None, None] * step[:, :1, None]
        y = (torch.arange(height, device=device) + 0.5)[None, :, None] * step[:, 1:, None]
        painted, points, turned, present, heights, ground = crowd(random, count, slots, size, motion)
        picture = backdrop(random, count, x, y, height, width, ground, calm)
        weave = noise(random, count, height, width, max(height, width) // 3)
        light = nn.normalize(torch.stack([
            random.uniform(-0.9, 0.9, count), random.uniform(-1.1, 0.2, count), random.uniform(0.5, 1.3, count)], -1), dim=-1)
        groups = [things(random, count, CLUTTER, size, False, calm)]
        shadows = torch.zeros(count, slots, len(FIELDS), device=device)
        for slot, (_, _, foot, middle, extent, here, tall) in enumerate(painted):
            shift = -light[:, 0] * 0.10 * tall
            half = 0.32 * extent + 0.04 * tall
            for name, value in {
                "ax": middle + shift - half, "bx": middle + shift + half, "ay": foot + 0.03 * tall, "by": foot + 0.03 * tall,
                "wa": 0.015 * tall, "wb": 0.015 * tall, "rho": 1.0, "ext": 1.0, "soft": 0.07 * tall, "opacity": 0.45 * here,
            }.items():
                shadows[:, slot, F[name]] = value
        groups.append(shadows)
        starts = []
        for prims, order, *_ in painted:
            starts.append(sum(group.shape[1] for group in groups))
            groups.append(prims)
        groups.append(things(random, count, OCCLUDERS, size, True, calm))
        prims = torch.cat(groups, 1)
        aa = step.mean(-1)[:, None, None]
        picture = renderer.primitives(picture, weave, prims, light, x, y, aa)

        inside = ((points >= 0) & (points < size[:, None, None])).all(-1).float() * present[..., None]
        seen = torch.stack([
            hidden_by_others(points[:, slot], 1 - turned[:, slot], starts[slot], painted[slot][1], prims)
            for slot in range(slots)], 1)
        seen = inside * (0.5 + 0.5 * seen)
        points = points / step[:, None, None] - 0.5
        picture = picture.clamp(0, 1) if calm else develop(random, picture)
        return Batch(picture, points, seen, present, heights / step[:, 1:])


def develop(random, picture):
    """What a camera does: exposure, white balance, contrast, blur and grain."""
    count, _, height, width = picture.shape
    u = lambda lo, hi, *shape: random.uniform(lo, hi, count, *shape)
    gain = torch.exp(0.18 * random.normal(count, 1, 1, 1) + 0.06 * random.normal(count, 3, 1, 1))
    contrast, lift = u(0.75, 1.25, 1, 1, 1), u(-0.06, 0.06, 1, 1, 1)
    picture = ((picture * gain - 0.45) * contrast + 0.45 + lift).clamp(0, 1)
    yy = torch.linspace(-1, 1, height, device=random.device)[:, None]
    xx = torch.linspace(-1, 1, width, device=random.device)[None]
    picture = picture * (1 - u(0, 0.25, 1, 1, 1) * (xx * xx + yy * yy)[None, None] / 2)
    blurred = nn.avg_pool2d(nn.pad(picture, (1, 1, 1, 1), mode="replicate"), 3, 1)
    soft = u(0, 1, 1, 1, 1) * random.chance(0.4, count)[:, None, None, None]
    picture = picture + (blurred - picture) * soft
    grey = picture.mean(1, keepdim=True)
    picture = torch.lerp(picture, grey.expand_as(picture), u(0, 1, 1, 1, 1) * random.chance(0.12, count)[:, None, None, None])
    grain = (random.uniform(0, 1, count) ** 2 * 0.05)[:, None, None, None]
    return (picture + grain * random.normal(count, 3, height, width)).clamp(0, 1)
