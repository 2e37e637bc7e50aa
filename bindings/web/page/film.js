// A moving picture of our own: two drawn people who dance in a room.

const [WIDTH, HEIGHT] = [640, 480];

const SKIN = ["#e0ac8c", "#8d5a3c"];
const HAIR = ["#3e281e", "#1d1614"];
const SHIRT = ["#be342e", "#3b7f5c"];
const TROUSERS = ["#2c3e6e", "#54483e"];
const SHOE = "#322c2a";

/** A colour made lighter or darker. */
function shade(colour, factor) {
  const of = (from) => Math.min(255, Math.round(parseInt(colour.slice(from, from + 2), 16) * factor));
  return `rgb(${of(1)} ${of(3)} ${of(5)})`;
}

/** The shade of a round body between two edges, lit from the left. */
function round(context, left, right, colour) {
  const shaded = context.createLinearGradient(...left, ...right);
  for (const [place, factor] of [[0, 0.8], [0.3, 1.12], [0.6, 1], [1, 0.62]]) {
    shaded.addColorStop(place, shade(colour, factor));
  }
  return shaded;
}

/** A round limb, as thick at its ends as `radii` say. */
function limb(context, from, to, radii, colour) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.max(Math.hypot(dx, dy), 1e-3);
  const across = [-dy / length, dx / length];
  const at = (end, radius) => [end[0] + radius * across[0], end[1] + radius * across[1]];
  const [left, right] = [at(from, -radii[0]), at(from, radii[0])];
  context.fillStyle = across[0] > 0 ? round(context, left, right, colour) : round(context, right, left, colour);
  context.beginPath();
  context.moveTo(...at(from, radii[0]));
  context.lineTo(...at(to, radii[1]));
  context.lineTo(...at(to, -radii[1]));
  context.lineTo(...left);
  context.fill();
  for (const [end, radius] of [[from, radii[0]], [to, radii[1]]]) {
    context.beginPath();
    context.arc(...end, radius, 0, 2 * Math.PI);
    context.fill();
  }
}

function ellipse(context, x, y, rx, ry, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.ellipse(x, y, rx, ry, 0, 0, 2 * Math.PI);
  context.fill();
}

function room(context) {
  const wall = context.createLinearGradient(0, 0, 0, 400);
  wall.addColorStop(0, "#ced4d6");
  wall.addColorStop(1, "#e2e2dc");
  context.fillStyle = wall;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  const floor = context.createLinearGradient(0, 390, 0, HEIGHT);
  floor.addColorStop(0, "#968068");
  floor.addColorStop(1, "#b0987c");
  context.fillStyle = floor;
  context.fillRect(0, 390, WIDTH, HEIGHT - 390);
  context.fillStyle = "#f0f0ec";
  context.fillRect(0, 384, WIDTH, 6);
}

const from = ([x, y], length, angle) => [x + length * Math.sin(angle), y + length * Math.cos(angle)];

/** One person at `x`, `s` times as large as drawn, in the pose of the time `t`. */
function person(context, x, s, t, look) {
  const sway = Math.sin(t);
  const hop = 6 * Math.abs(Math.sin(t));
  context.save();
  context.translate(x + 14 * sway, 432 - hop);
  context.scale(s, s);
  const hips = [[-19, -160], [19, -160]];
  const shoulders = [[-41, -274 + 3 * sway], [41, -274 - 3 * sway]];
  for (let step = 0; step < 6; step++) {
    ellipse(context, -14 * sway, hop, 74 - 8 * step, 11 - step, "#281e140c");
  }
  hips.forEach((hip, side) => {
    const out = side ? 1 : -1;
    const lift = Math.max(0, Math.sin(t + side * Math.PI));
    const knee = from(hip, 78, out * (0.12 + 0.35 * lift));
    const ankle = from(knee, 76, out * (0.12 - 0.3 * lift));
    const toe = [ankle[0] + 12 * out, ankle[1] + 14];
    limb(context, [ankle[0], toe[1]], toe, [9, 8], SHOE);
    limb(context, ankle, [ankle[0], toe[1]], [8, 8], SKIN[look]);
    limb(context, knee, ankle, [17, 11], TROUSERS[look]);
    limb(context, hip, knee, [24, 17], TROUSERS[look]);
  });
  shoulders.forEach((shoulder, side) => {
    const out = side ? 1 : -1;
    const upper = out * (1 + 0.75 * Math.sin(t * 0.7 + side * 1.9 + look));
    const elbow = from(shoulder, 66, upper);
    const wrist = from(elbow, 60, upper + out * (0.75 + 0.7 * Math.sin(t * 1.3 + side + 2 * look)));
    const hand = [wrist[0] + (wrist[0] - elbow[0]) * 0.2, wrist[1] + (wrist[1] - elbow[1]) * 0.2];
    limb(context, wrist, hand, [8, 9], SKIN[look]);
    limb(context, elbow, wrist, [12, 8], SKIN[look]);
    limb(context, shoulder, elbow, [16, 12], SKIN[look]);
    const cuff = [0, 1].map((axis) => shoulder[axis] + 0.6 * (elbow[axis] - shoulder[axis]));
    limb(context, shoulder, cuff, [17, 16], SHIRT[look]);
  });
  limb(context, [0, -322], [0, -296], [13, 15], SKIN[look]);
  context.fillStyle = round(context, [-54, 0], [54, 0], SHIRT[look]);
  context.beginPath();
  context.moveTo(-18, -298);
  context.bezierCurveTo(-34, -292, -48, -290, -56, -278);
  context.bezierCurveTo(-44, -248, -34, -218, -38, -192);
  context.lineTo(-43, -150);
  context.bezierCurveTo(-20, -142, 20, -142, 43, -150);
  context.lineTo(38, -192);
  context.bezierCurveTo(34, -218, 44, -248, 56, -278);
  context.bezierCurveTo(48, -290, 34, -292, 18, -298);
  context.bezierCurveTo(12, -286, -12, -286, -18, -298);
  context.fill();
  head(context, sway, look);
  context.restore();
}

function head(context, sway, look) {
  context.translate(2 * sway, 0);
  for (const x of [-29, 29]) {
    ellipse(context, x, -344, 5, 9, shade(SKIN[look], 0.9));
  }
  ellipse(context, 0, -362, 33, 33, HAIR[look]);
  ellipse(context, 0, -346, 28, 36, round(context, [-32, 0], [32, 0], SKIN[look]));
  context.fillStyle = HAIR[look];
  context.beginPath();
  context.moveTo(-32, -350);
  context.bezierCurveTo(-34, -400, 34, -400, 32, -350);
  context.bezierCurveTo(26, -368, 6, -364, -8, -372);
  context.bezierCurveTo(-18, -368, -26, -364, -32, -350);
  context.fill();
  for (const x of [-12, 12]) {
    ellipse(context, x, -349, 5.2, 3, "#f6f2ee");
    ellipse(context, x, -349, 2.6, 2.8, "#34241c");
  }
  const line = (points, width, colour) => {
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(...points[0]);
    context.quadraticCurveTo(...points[1], ...points[2]);
    context.stroke();
  };
  for (const x of [-12, 12]) {
    line([[x - 6, -356], [x, -358], [x + 6, -356]], 2.2, HAIR[look]);
  }
  line([[-1, -346], [-4, -334], [3, -333]], 1.8, shade(SKIN[look], 0.8));
  line([[-10, -325], [0, -320], [10, -325]], 2.6, "#a84e4a");
}

export class Film {
  constructor() {
    this.canvas = new OffscreenCanvas(WIDTH, HEIGHT);
    this.context = this.canvas.getContext("2d");
  }

  /** The picture at a time in seconds. */
  frame(seconds) {
    room(this.context);
    person(this.context, 205, 0.92, 2.6 * seconds, 0);
    person(this.context, 455, 0.86, 2.2 * seconds + 1.3, 1);
    return this.canvas;
  }
}
