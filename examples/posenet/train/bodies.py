"""Articulated people: random pose, shape and clothes -> 17 keypoints and the primitives that draw them.

A body has the height 1 and stands in a frame of its own: x to the person's left, y up, z forward. The
joints follow from angles (forward kinematics), the body is turned, and projected in parallel onto the
picture: x right, y down, and z towards the viewer, by which the parts are painted in order.

All functions work on a batch of B people at once.
"""

import math

import torch

PARTS = 17
# The order of PoseNet's heatmap.
(NOSE, LEYE, REYE, LEAR, REAR, LSHO, RSHO, LELB, RELB, LWRI, RWRI, LHIP, RHIP, LKNE, RKNE, LANK, RANK) = range(17)

# A primitive is a tapered, bulging, rounded bar from a to b (see render.py). Its fields:
FIELDS = (
    "ax ay bx by wa wb bulge rho ext soft opacity "
    "r g b r2 g2 b2 freq pcos psin pamp shade shadow"
).split()
F = {name: index for index, name in enumerate(FIELDS)}

# The primitives of one person.
PRIMITIVES = (
    "pelvis torso shoulders neck head hair long_hair fringe eye_l eye_r brow_l brow_r nose mouth ear_l ear_r "
    "upper_l upper_r fore_l fore_r hand_l hand_r thigh_l thigh_r shin_l shin_r foot_l foot_r "
    "sleeve_l sleeve_r short_l short_r"
).split()
P = {name: index for index, name in enumerate(PRIMITIVES)}

# The primitives that may lie over a keypoint without hiding it: the parts that it is in.
OWN = {
    NOSE: "nose head fringe mouth", LEYE: "eye_l head brow_l nose fringe", REYE: "eye_r head brow_r nose fringe",
    LEAR: "ear_l head hair long_hair", REAR: "ear_r head hair long_hair",
    LSHO: "torso shoulders upper_l sleeve_l", RSHO: "torso shoulders upper_r sleeve_r",
    LELB: "upper_l fore_l sleeve_l", RELB: "upper_r fore_r sleeve_r",
    LWRI: "fore_l hand_l", RWRI: "fore_r hand_r",
    LHIP: "pelvis thigh_l short_l torso", RHIP: "pelvis thigh_r short_r torso",
    LKNE: "thigh_l shin_l short_l", RKNE: "thigh_r shin_r short_r",
    LANK: "shin_l foot_l", RANK: "shin_r foot_r",
}

# (thigh forward, thigh outward, knee bent; both legs, in degrees), and how often. Ranges.
STANCES = [
    # weight, thigh 1, out 1, knee 1, thigh 2, out 2, knee 2
    (0.33, (-6, 8), (0, 9), (0, 8), (-6, 8), (0, 9), (0, 8)),  # stand
    (0.20, (10, 40), (0, 8), (0, 30), (-30, 0), (0, 8), (5, 50)),  # walk, run
    (0.14, (-8, 15), (12, 42), (0, 20), (-8, 15), (12, 42), (0, 20)),  # star
    (0.12, (65, 100), (0, 25), (50, 105), (65, 100), (0, 25), (50, 105)),  # sit
    (0.10, (40, 95), (0, 30), (50, 120), (-25, 40), (0, 25), (10, 110)),  # lunge, squat
    (0.11, (-30, 100), (0, 50), (0, 120), (-30, 100), (0, 50), (0, 120)),  # anything
]
# (away from the body, from sideways to forward, elbow bent), and how often.
ARMS = [
    (0.34, (3, 25), (-40, 60), (0, 45)),  # hang
    (0.16, (40, 100), (-20, 50), (0, 90)),  # out
    (0.16, (100, 172), (-20, 70), (0, 80)),  # up
    (0.14, (20, 60), (0, 110), (60, 140)),  # on the hip, before the chest
    (0.20, (0, 165), (-40, 110), (0, 145)),  # anything
]

SKIN = [(0.98, 0.85, 0.74), (0.93, 0.75, 0.61), (0.83, 0.62, 0.47), (0.66, 0.46, 0.33), (0.47, 0.31, 0.22), (0.32, 0.20, 0.15)]
HAIR = [(0.09, 0.07, 0.07), (0.20, 0.12, 0.08), (0.36, 0.22, 0.12), (0.58, 0.36, 0.16), (0.85, 0.70, 0.42), (0.62, 0.60, 0.58), (0.50, 0.18, 0.10)]


class Random:
    """Random numbers of one seed, on one device."""

    def __init__(self, seed, device):
        self.device = device
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def uniform(self, lo, hi, *shape):
        return lo + (hi - lo) * torch.rand(*shape, generator=self.generator, device=self.device)

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator, device=self.device)

    def chance(self, p, *shape):
        return (torch.rand(*shape, generator=self.generator, device=self.device) < p).float()

    def pick(self, weights, *shape):
        """Indices, as often as their weights say."""
        edges = torch.tensor(weights).cumsum(0)
        edges = (edges / edges[-1])[:-1].to(self.device)
        drawn = self.uniform(0, 1, *shape)
        return (drawn[..., None] > edges).sum(-1)


class Still(Random):
    """The same numbers for all frames of a film: a batch is `frames` times one or more rows."""

    def __init__(self, seed, device, frames):
        super().__init__(seed, device)
        self.frames = frames

    def rows(self, count):
        return max(1, count // self.frames)

    def uniform(self, lo, hi, *shape):
        drawn = super().uniform(lo, hi, self.rows(shape[0]), *shape[1:])
        return drawn.repeat_interleave(shape[0] // drawn.shape[0], 0)

    def normal(self, *shape):
        drawn = super().normal(self.rows(shape[0]), *shape[1:])
        return drawn.repeat_interleave(shape[0] // drawn.shape[0], 0)

    def chance(self, p, *shape):
        return (self.uniform(0, 1, *shape) < p).float()


class Motion(Still):
    """Numbers that wander from one key to the next and back to the first over the frames of a film."""

    def __init__(self, seed, device, frames, keys):
        super().__init__(seed, device, frames)
        self.keys = keys

    def blend(self, draw, shape):
        rows = self.rows(shape[0])
        keys = torch.stack([draw(rows) for _ in range(self.keys)])
        time = torch.arange(self.frames, device=self.device) * self.keys / self.frames
        here, share = time.long() % self.keys, time - time.floor()
        share = (share * share * (3 - 2 * share)).reshape(1, -1, *[1] * (len(shape) - 1))
        a, b = keys[here].transpose(0, 1), keys[(here + 1) % self.keys].transpose(0, 1)
        return (a + (b - a) * share).reshape(shape)

    def uniform(self, lo, hi, *shape):
        return self.blend(lambda rows: Random.uniform(self, lo, hi, rows, *shape[1:]), shape)

    def normal(self, *shape):
        return self.blend(lambda rows: Random.normal(self, rows, *shape[1:]), shape)

    def chance(self, p, *shape):
        return (Still.uniform(self, 0, 1, *shape) < p).float()

    def pick(self, weights, *shape):
        edges = torch.tensor(weights).cumsum(0)
        edges = (edges / edges[-1])[:-1].to(self.device)
        return (Still.uniform(self, 0, 1, *shape)[..., None] > edges).sum(-1)


def colour(random, *shape):
    """Colours of cloth and paint: any hue, from grey to vivid, from dark to light."""
    hue = random.uniform(0, 1, *shape)
    saturation = random.uniform(0, 1, *shape) ** 1.3
    value = random.uniform(0.08, 1.0, *shape)
    k = torch.stack([(hue * 6 + n) % 6 for n in (5.0, 3.0, 1.0)], -1)
    return value[..., None] * (1 - saturation[..., None] * torch.minimum(k, 4 - k).clamp(0, 1))


def palette(random, colours, *shape):
    table = torch.tensor(colours, device=random.device)
    chosen = table[random.pick([1.0] * len(colours), *shape)]
    return (chosen * random.uniform(0.85, 1.12, *shape, 1) + 0.02 * random.normal(*shape, 3)).clamp(0.02, 1)


def turn(axis, angle):
    """Rotation matrices (B, 3, 3) about x, y or z by angles (B,) in radians."""
    c, s, one, zero = torch.cos(angle), torch.sin(angle), torch.ones_like(angle), torch.zeros_like(angle)
    rows = {
        "x": (one, zero, zero, zero, c, -s, zero, s, c),
        "y": (c, zero, s, zero, one, zero, -s, zero, c),
        "z": (c, -s, zero, s, c, zero, zero, zero, one),
    }[axis]
    return torch.stack(rows, -1).reshape(-1, 3, 3)


def degrees(random, ranges, chosen):
    """One angle per person, in radians, from the range of the row that was chosen."""
    table = torch.tensor(ranges, dtype=torch.float32, device=random.device)[chosen]
    return torch.deg2rad(table[:, 0] + (table[:, 1] - table[:, 0]) * random.uniform(0, 1, len(chosen)))


def unit(v):
    return v / v.norm(dim=-1, keepdim=True).clamp_min(1e-6)


def joints(build, random, count):
    """Joints of `count` people in their own frame: a dictionary of (B, 3), the head's axes, and the
    shape. `build` draws the shape, `random` the pose."""
    u = lambda lo, hi: build.uniform(lo, hi, count)
    down = torch.tensor([0.0, -1.0, 0.0], device=random.device).expand(count, 3)
    vec = lambda x, y, z: torch.stack([x, y, z], -1)
    zero = torch.zeros(count, device=random.device)

    shape = {
        "shoulder": u(0.100, 0.135), "hip": u(0.050, 0.066), "spine": u(0.275, 0.31), "neck": u(0.115, 0.135),
        "upper": u(0.150, 0.180), "fore": u(0.130, 0.155), "thigh": u(0.225, 0.260), "shin": u(0.220, 0.255),
        "foot": u(0.075, 0.10), "head": u(0.062, 0.078), "bulk": torch.exp(0.16 * build.normal(count)).clamp(0.7, 1.5),
    }
    # The chest against the pelvis, and the head against the chest.
    chest = turn("y", 0.25 * random.normal(count)) @ turn("x", (0.16 * random.normal(count) + 0.05).clamp(-0.3, 0.7))
    chest = chest @ turn("z", 0.12 * random.normal(count))
    head = chest @ turn("y", 0.45 * random.normal(count).clamp(-2, 2)) @ turn("x", 0.22 * random.normal(count) + 0.05)
    head = head @ turn("z", 0.13 * random.normal(count))
    left, up, forward = (lambda r: (r[:, :, 0], r[:, :, 1], r[:, :, 2])) (chest)

    j = {"pelvis": torch.zeros(count, 3, device=random.device)}
    j["chest"] = up * shape["spine"][:, None]
    j["neck"] = j["chest"] + up * 0.035
    j["head"] = j["neck"] + (0.35 * up + 0.65 * head[:, :, 1]) * (shape["neck"][:, None] - 0.03) + head[:, :, 2] * 0.008

    arm_rows = [random.pick([row[0] for row in ARMS], count) for _ in "lr"]
    same = random.chance(0.35, count).bool()  # both arms alike
    arm_rows[1] = torch.where(same, arm_rows[0], arm_rows[1])
    for side, sign, rows in (("l", 1.0, arm_rows[0]), ("r", -1.0, arm_rows[1])):
        out = degrees(random, [row[1] for row in ARMS], rows)
        swing = degrees(random, [row[2] for row in ARMS], rows)
        bend = degrees(random, [row[3] for row in ARMS], rows)
        local = vec(sign * torch.sin(out) * torch.cos(swing), -torch.cos(out), torch.sin(out) * torch.sin(swing))
        upper = unit((chest @ local[:, :, None])[:, :, 0])
        # The elbow bends towards the front, upwards or inwards.
        aim = forward + up * random.uniform(-0.2, 1.4, count, 1) - sign * left * random.uniform(-0.4, 0.9, count, 1)
        aim = unit(aim + 0.25 * random.normal(count, 3))
        aim = unit(aim - upper * (aim * upper).sum(-1, keepdim=True))
        fore = torch.cos(bend)[:, None] * upper + torch.sin(bend)[:, None] * aim
        shoulder = j["chest"] + sign * left * shape["shoulder"][:, None]
        # A raised arm lifts its shoulder.
        shoulder = shoulder + up * (0.03 * (1 - torch.cos(out)) / 2)[:, None]
        j["shoulder_" + side] = shoulder
        j["elbow_" + side] = shoulder + upper * shape["upper"][:, None]
        j["wrist_" + side] = j["elbow_" + side] + fore * shape["fore"][:, None]
        hand = unit(fore + 0.25 * random.normal(count, 3))
        j["hand_" + side] = j["wrist_" + side] + hand * 0.055

    stance = random.pick([row[0] for row in STANCES], count)
    swapped = random.chance(0.5, count).bool()
    angle = [degrees(random, [row[k] for row in STANCES], stance) for k in range(1, 7)]
    for side, sign, first in (("l", 1.0, ~swapped), ("r", -1.0, swapped)):
        flex, out, knee = (torch.where(first, angle[k], angle[k + 3]) for k in range(3))
        spread = sign * torch.tan(out)[:, None] * torch.tensor([1.0, 0, 0], device=random.device)
        thigh = unit(vec(zero, -torch.cos(flex), torch.sin(flex)) + spread)
        shin = unit(vec(zero, -torch.cos(flex - knee), torch.sin(flex - knee)) + spread * random.uniform(0.2, 1.0, count, 1))
        toe = unit(vec(sign * random.uniform(0.0, 0.6, count), -random.uniform(0.0, 0.35, count), torch.ones_like(zero)) + 0.8 * (shin - down))
        hip = sign * vec(shape["hip"], zero, zero)
        j["hip_" + side] = hip
        j["knee_" + side] = hip + thigh * shape["thigh"][:, None]
        j["ankle_" + side] = j["knee_" + side] + shin * shape["shin"][:, None]
        j["toe_" + side] = j["ankle_" + side] + toe * shape["foot"][:, None] + shin * 0.02

    r = shape["head"][:, None]
    hl, hu, hf = head[:, :, 0], head[:, :, 1], head[:, :, 2]
    j["nose"] = j["head"] + r * (0.95 * hf - 0.08 * hu)
    for side, sign in (("l", 1.0), ("r", -1.0)):
        j["eye_" + side] = j["head"] + r * (0.80 * hf + sign * 0.34 * hl + 0.14 * hu)
        j["brow_" + side] = j["head"] + r * (0.82 * hf + sign * 0.36 * hl + 0.34 * hu)
        j["ear_" + side] = j["head"] + r * (sign * 0.86 * hl + 0.02 * hu - 0.05 * hf)
    j["mouth"] = j["head"] + r * (0.86 * hf - 0.46 * hu)
    return j, head, shape


def view(random, count):
    """How people are turned before the camera: mostly towards it, and upright."""
    any_way = random.uniform(-math.pi, math.pi, count)
    facing = 0.75 * random.normal(count)
    yaw = torch.where(random.chance(0.38, count).bool(), any_way, facing)
    roll = torch.where(random.chance(0.15, count).bool(), 0.45 * random.normal(count), 0.08 * random.normal(count))
    # The camera looks from a little above, or from below.
    pitch = 0.05 + 0.13 * random.normal(count)
    return turn("z", roll.clamp(-1.2, 1.2)) @ turn("x", pitch) @ turn("y", yaw)


def people(random, count, motion=None):
    """`count` people, posed by `motion`: primitives (B, P, fields) and depths (B, P) of unit scale about (0, 0), the
    keypoints (B, 17, 2), whether the head's own side hides a keypoint (B, 17), and the feet's y (B,)."""
    j, head, shape = joints(random, motion or random, count)
    rotation = view(random, count)
    flip = torch.tensor([1.0, -1.0, 1.0], device=random.device)  # y down
    j = {name: (rotation @ at[:, :, None])[:, :, 0] * flip for name, at in j.items()}
    hl, hu, hf = (((rotation @ head)[:, :, k]) * flip for k in range(3))

    prims = torch.zeros(count, len(PRIMITIVES), len(FIELDS), device=random.device)
    depth = torch.zeros(count, len(PRIMITIVES), device=random.device)
    prims[..., F["rho"]] = 1.0
    prims[..., F["ext"]] = 1.0
    prims[..., F["soft"]] = 1.0
    prims[..., F["shade"]] = random.uniform(0.6, 1.0, count, 1)
    prims[..., F["shadow"]] = random.uniform(0.0, 0.55, count, 1)

    def bar(name, a, b, wa, wb, rgb, bulge=0.0, opacity=1.0, bias=0.0, rgb2=None, rho=1.0, ext=1.0, cloth=None, over=None):
        p = prims[:, P[name]]
        p[:, 0:2], p[:, 2:4] = a[:, :2], b[:, :2]
        p[:, F["wa"]], p[:, F["wb"]], p[:, F["bulge"]] = wa, wb, bulge
        p[:, F["rho"]], p[:, F["ext"]], p[:, F["opacity"]] = rho, ext, opacity
        p[:, F["r"]:F["r"] + 3] = rgb
        p[:, F["r2"]:F["r2"] + 3] = rgb if rgb2 is None else rgb2
        if cloth is not None:
            p[:, F["freq"]], p[:, F["pcos"]], p[:, F["psin"]], p[:, F["pamp"]] = cloth
        depth[:, P[name]] = (a[:, 2] + b[:, 2]) / 2 + bias if over is None else depth[:, P[over]] + 0.001

    u = lambda lo, hi: random.uniform(lo, hi, count)
    skin, hair = palette(random, SKIN, count), palette(random, HAIR, count)
    shirt, shirt2 = colour(random, count), colour(random, count)
    trousers, shoe = colour(random, count), colour(random, count) * 0.7
    # A dress, or overalls: one colour above and below.
    trousers = torch.where(random.chance(0.08, count)[:, None].bool(), shirt, trousers)
    kind = random.pick([0.5, 0.2, 0.1, 0.2], count)  # plain, rings, stripes along, slanted
    slant = torch.tensor([0.0, 0.0, math.pi / 2, 0.7], device=random.device)[kind]
    cloth = (u(40, 150), torch.cos(slant), torch.sin(slant), (kind > 0).float() * u(0.3, 1.0))
    long_sleeve, short_sleeve = random.chance(0.45, count), random.chance(0.85, count)
    long_trousers, shorts = random.chance(0.7, count), random.chance(0.9, count)
    sleeve = torch.where(long_sleeve[:, None].bool(), shirt, skin)
    leg = torch.where(long_trousers[:, None].bool(), trousers, skin)
    sleeve_cloth = (cloth[0], cloth[1], cloth[2], cloth[3] * long_sleeve)
    sleeve2 = torch.where(long_sleeve[:, None].bool(), shirt2, skin)

    k = shape["bulk"]
    sw, hw = shape["shoulder"], shape["hip"]
    # How wide the trunk looks depends on how far it is turned: its depth is about 0.6 of its width.
    across = j["shoulder_l"] - j["shoulder_r"]
    frontal = (across[:, :2].norm(dim=-1) / (2 * sw)).clamp(0, 1)
    wide = 0.62 + 0.38 * frontal
    waist = u(0.78, 1.02)
    top = torch.lerp(j["pelvis"], j["chest"], 1.0)
    bar("torso", top, j["pelvis"], (sw + 0.012 * k) * wide, (hw + 0.032 * k) * wide * waist * 1.05, shirt,
        bulge=-0.008, rho=0.55, ext=0.35, rgb2=shirt2, cloth=cloth, bias=0.012)
    bar("shoulders", j["shoulder_l"], j["shoulder_r"], 0.036 * k, 0.036 * k, shirt, rgb2=shirt2, bias=0.008,
        cloth=(cloth[0], cloth[2], cloth[1], cloth[3] * 0))
    low = j["hip_l"] * 0.5 + j["hip_r"] * 0.5
    bar("pelvis", torch.lerp(j["pelvis"], j["chest"], 0.17), low, (hw + 0.030 * k) * wide * waist, (hw + 0.036 * k) * wide,
        trousers, rho=0.7, ext=0.5, bias=0.004)
    bar("neck", j["neck"], torch.lerp(j["neck"], j["head"], 0.55), 0.030 * k ** 0.5, 0.028 * k ** 0.5, skin, bias=0.006)

    r = shape["head"]
    R = r[:, None]
    lean = 0.22 * R * hu
    bar("head", j["head"] + lean, j["head"] - 1.3 * lean, r * 0.82, r * u(0.66, 0.78), skin, bias=0.03)
    bald = random.chance(0.07, count)
    profile = (hf[:, 2] < 0.62).float()
    behind = torch.where(profile.bool(), 0.035, 0.0)  # from the side, hair lies over the head's back
    back = j["head"] - R * (0.48 * hf) + R * 0.20 * hu
    bar("hair", back + R * 0.1 * hu, back - R * 0.1 * hu, r * u(0.86, 1.06), r * u(0.84, 1.0), hair,
        opacity=1 - bald, bias=behind + 0.02)
    tress = back - R * hu * u(0.6, 2.2)[:, None] - R * 0.1 * hf
    bar("long_hair", back, tress, r * 0.9, r * u(0.7, 0.95), hair, opacity=random.chance(0.35, count) * (1 - bald), bias=behind - 0.005)
    hat = random.chance(0.12, count)[:, None].bool()
    cap = j["head"] + R * 0.68 * hu + R * 0.12 * hf
    bar("fringe", cap + R * 0.42 * hl, cap - R * 0.42 * hl, r * u(0.34, 0.46), r * u(0.34, 0.46), torch.where(hat, shirt2, hair),
        opacity=1 - bald * (1 - hat[:, 0].float()), bias=0.045)
    seen = lambda at: ((at[:, 2] - j["head"][:, 2]) / r > 0.12).float()
    dark = 0.10 + 0.5 * hair * random.chance(0.3, count)[:, None]
    for side, sign in (("l", 1.0), ("r", -1.0)):
        eye, brow, ear = j["eye_" + side], j["brow_" + side], j["ear_" + side]
        bar("eye_" + side, eye - R * 0.05 * hl, eye + R * 0.05 * hl, r * 0.12, r * 0.12, dark, opacity=seen(eye), bias=0.06)
        bar("brow_" + side, brow - R * 0.13 * hl, brow + R * 0.13 * hl, r * 0.05, r * 0.05, hair * 0.8, opacity=seen(brow) * u(0.3, 1), bias=0.06)
        near = (ear[:, 2] - j["head"][:, 2] > -0.35 * r).float()
        bar("ear_" + side, ear + R * 0.12 * hu, ear - R * 0.1 * hu, r * 0.16, r * 0.12, skin * 0.92, opacity=near, bias=0.032 + 0.02 * sign * hl[:, 2].sign())
    bridge = j["nose"] + R * 0.22 * hu - R * 0.12 * hf
    bar("nose", bridge, j["nose"], r * 0.09, r * 0.14, skin * 0.93, opacity=seen(j["nose"]), bias=0.062)
    lip = torch.stack([skin[:, 0] * 0.8, skin[:, 1] * 0.5, skin[:, 2] * 0.5], -1)
    bar("mouth", j["mouth"] - R * 0.2 * hl, j["mouth"] + R * 0.2 * hl, r * 0.06, r * 0.06, lip, opacity=seen(j["mouth"]), bias=0.06)

    kk = k ** 0.7
    for side in "lr":
        sho, elb, wri, hand = (j[name + side] for name in ("shoulder_", "elbow_", "wrist_", "hand_"))
        hip, knee, ankle, toe = (j[name + side] for name in ("hip_", "knee_", "ankle_", "toe_"))
        thick = 1 + 0.25 * long_sleeve
        bar("upper_" + side, sho, elb, 0.030 * kk * thick, 0.024 * kk * thick, sleeve, bulge=0.003, rgb2=sleeve2, cloth=sleeve_cloth, bias=0.01)
        bar("fore_" + side, elb, wri, 0.024 * kk * thick, 0.017 * kk * thick, sleeve, bulge=0.003, rgb2=sleeve2, cloth=sleeve_cloth, bias=0.012)
        bar("hand_" + side, torch.lerp(wri, hand, 0.15), hand, 0.019, 0.016, skin, bulge=0.004, bias=0.011)
        bar("sleeve_" + side, sho, torch.lerp(sho, elb, u(0.35, 0.75)[:, None]), 0.037 * kk, 0.033 * kk, shirt, rgb2=shirt2, cloth=cloth,
            opacity=short_sleeve * (1 - long_sleeve), over="upper_" + side, rho=0.8, ext=0.6)
        thick = 1 + 0.12 * long_trousers
        bar("thigh_" + side, hip, knee, 0.050 * kk * thick, 0.036 * kk * thick, leg, bulge=0.004)
        bar("shin_" + side, knee, ankle, 0.035 * kk * thick, 0.023 * kk * thick, leg, bulge=0.006, bias=-0.001)
        bar("foot_" + side, torch.lerp(ankle, toe, 0.05), toe, 0.026, 0.021, shoe, bias=0.004)
        bar("short_" + side, hip, torch.lerp(hip, knee, u(0.35, 0.9)[:, None]), 0.056 * kk, 0.049 * kk, trousers, opacity=shorts * (1 - long_trousers),
            over="thigh_" + side, rho=0.75, ext=0.6)

    order = ["nose", "eye_l", "eye_r", "ear_l", "ear_r", "shoulder_l", "shoulder_r", "elbow_l", "elbow_r", "wrist_l", "wrist_r",
             "hip_l", "hip_r", "knee_l", "knee_r", "ankle_l", "ankle_r"]
    at = torch.stack([j[name] for name in order], 1)
    turned = torch.zeros(count, PARTS, device=random.device)
    for part in (NOSE, LEYE, REYE):
        turned[:, part] = 1 - seen(at[:, part])
    for part in (LEAR, REAR):
        turned[:, part] = (at[:, part, 2] - j["head"][:, 2] < -0.3 * r).float()
    return prims, depth, at[:, :, :2], turned
