// PoseNet's heads to people: the greedy decoding published with it (Papandreou et al., "PersonLab", ECCV 2018).

export const PARTS = [
  "nose", "leftEye", "rightEye", "leftEar", "rightEar", "leftShoulder", "rightShoulder", "leftElbow", "rightElbow",
  "leftWrist", "rightWrist", "leftHip", "rightHip", "leftKnee", "rightKnee", "leftAnkle", "rightAnkle",
];

/** Parent and child of each edge; edge `e` is channel `e` (y) and `16 + e` (x) of both displacements. */
const TREE = [
  [0, 1], [1, 3], [0, 2], [2, 4], [0, 5], [5, 7], [7, 9], [5, 11], [11, 13], [13, 15],
  [0, 6], [6, 8], [8, 10], [6, 12], [12, 14], [14, 16],
];

const LIMBS = [
  [5, 6], [11, 12], [5, 11], [6, 12], [5, 7], [7, 9], [6, 8], [8, 10], [11, 13], [13, 15], [12, 14], [14, 16],
];

/** Two of the same part this close, in input pixels, are one. */
const RADIUS = 20;
const [MIN_ROOT, MIN_POSE, MAX_POSES] = [0.5, 0.15, 10];

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** One output as a grid of vectors. */
function map({ dims }, values) {
  const [h, w, c] = dims.slice(-3);
  return {
    h,
    w,
    at: (y, x, k) => values[(y * w + x) * c + k],
    /** The y in channel `k`, the x in the second half. */
    vector: (y, x, k) => [values[(y * w + x) * c + c / 2 + k], values[(y * w + x) * c + k]],
  };
}

/** The heads among a session's outputs: by name, or else by their channels. */
export function heads(session, outputs) {
  const named = (part) => session.outputs.find(({ name }) => name.toLowerCase().replaceAll("-", "_").includes(part));
  const wide = (channels) => session.outputs.filter(({ dims }) => dims.at(-1) === channels);
  const take = (part, channels, place = 0) => {
    const port = named(part) ?? wide(channels)[place];
    if (!port || port.dims.at(-1) !== channels) {
      const found = session.outputs.map(({ name, dims }) => `${name} ${dims.join("x")}`).join(", ");
      throw new Error(`not a PoseNet: wanted an output "${part}" of ${channels} channels, found ${found}`);
    }
    return map(port, outputs[port.name]);
  };
  const heatmap = take("heatmap", 17);
  const size = session.inputs[0].dims.slice(-3, -1);
  const stride = [8, 16, 32].find((stride) => Math.ceil(size[0] / stride) === heatmap.h);
  return {
    heatmap,
    stride,
    offset: take("offset", 34),
    forward: take("displacement_fwd", 32),
    backward: take("displacement_bwd", 32, 1),
  };
}

const position = ({ offset, stride }, y, x, part) => {
  const [dx, dy] = offset.vector(y, x, part);
  return [x * stride + dx, y * stride + dy];
};

const cell = ({ heatmap, stride }, [x, y]) => {
  const near = (v, count) => Math.min(Math.max(Math.round(v / stride), 0), count - 1);
  return [near(y, heatmap.h), near(x, heatmap.w)];
};

function highest({ heatmap }, y, x, part) {
  const logit = heatmap.at(y, x, part);
  for (let row = Math.max(y - 1, 0); row < Math.min(y + 2, heatmap.h); row++) {
    for (let column = Math.max(x - 1, 0); column < Math.min(x + 2, heatmap.w); column++) {
      if (heatmap.at(row, column, part) > logit) {
        return false;
      }
    }
  }
  return true;
}

function roots(all) {
  const found = [];
  const least = Math.log(MIN_ROOT / (1 - MIN_ROOT));
  for (let y = 0; y < all.heatmap.h; y++) {
    for (let x = 0; x < all.heatmap.w; x++) {
      for (let part = 0; part < PARTS.length; part++) {
        const logit = all.heatmap.at(y, x, part);
        if (logit >= least && highest(all, y, x, part)) {
          found.push({ y, x, part, score: sigmoid(logit) });
        }
      }
    }
  }
  return found.sort((a, b) => b.score - a.score);
}

const claimed = (poses, part, [x, y]) =>
  poses.some(({ keypoints }) => (keypoints[part].x - x) ** 2 + (keypoints[part].y - y) ** 2 <= RADIUS ** 2);

/** From one part along an edge to another, moved twice to where the offsets there point. */
function step(all, displacement, edge, source, target) {
  const [row, column] = cell(all, [source.x, source.y]);
  const [dx, dy] = displacement.vector(row, column, edge);
  let at = [source.x + dx, source.y + dy];
  for (let again = 0; again < 2; again++) {
    at = position(all, ...cell(all, at), target);
  }
  const [y, x] = cell(all, at);
  return { x: at[0], y: at[1], score: sigmoid(all.heatmap.at(y, x, target)) };
}

function grow(all, part, root) {
  const found = new Array(PARTS.length);
  found[part] = root;
  for (let edge = TREE.length - 1; edge >= 0; edge--) {
    const [parent, child] = TREE[edge];
    if (found[child] && !found[parent]) {
      found[parent] = step(all, all.backward, edge, found[child], parent);
    }
  }
  TREE.forEach(([parent, child], edge) => {
    if (found[parent] && !found[child]) {
      found[child] = step(all, all.forward, edge, found[parent], child);
    }
  });
  return found;
}

/** The people in input pixels, the surest first. */
export function people(all) {
  const poses = [];
  for (const { y, x, part, score } of roots(all)) {
    if (poses.length >= MAX_POSES) {
      break;
    }
    const at = position(all, y, x, part);
    if (claimed(poses, part, at)) {
      continue;
    }
    const keypoints = grow(all, part, { x: at[0], y: at[1], score });
    const own = keypoints.filter((keypoint, part) => !claimed(poses, part, [keypoint.x, keypoint.y]));
    const total = own.reduce((sum, keypoint) => sum + keypoint.score, 0) / PARTS.length;
    if (total >= MIN_POSE) {
      poses.push({ keypoints, score: total });
    }
  }
  return poses.sort((a, b) => b.score - a.score);
}

const COLOURS = { left: "#ff8f4d", right: "#35c9d6", trunk: "#f7f3e8" };

const side = (part) => (part === 0 ? "trunk" : part % 2 ? "left" : "right");

/** The colour of a limb: a flank, and what joins both sides, is of the trunk. */
const colourOf = (a, b) => COLOURS[side(a) === side(b) && b !== a + 6 ? side(a) : "trunk"];

/** Draws people whose positions `back` turns into those of the canvas. */
export function draw(context, poses, back) {
  const thick = Math.max(2, context.canvas.width / 160);
  context.lineCap = "round";
  for (const { keypoints } of poses) {
    const points = keypoints.map(({ x, y }) => back([x, y]));
    for (const [a, b] of LIMBS) {
      const sure = Math.min(keypoints[a].score, keypoints[b].score);
      if (sure < 0.1) {
        continue;
      }
      context.globalAlpha = Math.min(1, 0.25 + sure);
      for (const [width, colour] of [
        [1.8 * thick, "#0008"],
        [thick, colourOf(a, b)],
      ]) {
        context.lineWidth = width;
        context.strokeStyle = colour;
        context.beginPath();
        context.moveTo(...points[a]);
        context.lineTo(...points[b]);
        context.stroke();
      }
    }
    points.forEach(([x, y], part) => {
      if (keypoints[part].score < 0.1) {
        return;
      }
      context.globalAlpha = Math.min(1, 0.25 + keypoints[part].score);
      context.fillStyle = COLOURS[side(part)];
      context.strokeStyle = "#000a";
      context.lineWidth = 0.3 * thick;
      context.beginPath();
      context.arc(x, y, part < 5 ? 0.7 * thick : thick, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    });
  }
  context.globalAlpha = 1;
}
