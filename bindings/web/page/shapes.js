// What any network gives, shown by its shape: pictures, tables of scores, keypoints.

const SHOWN_CHANNELS = 8;
const SHOWN_ROWS = 10;
const MIN_SIDE = 8;
/** Pixels of a map's side that are shown at most: of larger ones every second, third and so on. */
const MAX_SIDE = 1024;

/** An extent without those of 1 before it. */
const plain = (dims) => dims.slice(dims.findIndex((extent) => extent !== 1 || dims.length === 1) === -1 ? -1 : dims.findIndex((extent) => extent !== 1));

const number = (value) => {
  const one = Number(value);
  return Number.isInteger(one) ? String(one) : Math.abs(one) >= 1e5 || Math.abs(one) < 1e-3 ? one.toExponential(2) : one.toPrecision(4);
};

const element = (name, attributes = {}, ...children) => {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
};

function range(data) {
  let [least, most] = [Infinity, -Infinity];
  for (const value of data) {
    least = Math.min(least, Number(value));
    most = Math.max(most, Number(value));
  }
  return [least, most];
}

/** What a tensor can be shown as: `{ kind, ... }`. */
export function kindOf(dims) {
  const own = plain(dims);
  const [a, b, c] = own;
  if (own.length === 3 && a >= MIN_SIDE && b >= MIN_SIDE && c <= 512) {
    return { kind: "maps", height: a, width: b, channels: c, planar: false };
  }
  if (own.length === 3 && b >= MIN_SIDE && c >= MIN_SIDE && a <= 512) {
    return { kind: "maps", height: b, width: c, channels: a, planar: true };
  }
  if (own.length === 2 && a >= MIN_SIDE && b >= MIN_SIDE && a / b < 8 && b / a < 8 && dims.length > 2) {
    return { kind: "maps", height: a, width: b, channels: 1, planar: true };
  }
  if (own.length === 2 && (b === 2 || b === 3) && a >= 5) {
    return { kind: "points", count: a, each: b };
  }
  if (own.length === 1 && dims.length <= 2 && a >= 30 && a <= 1500 && a % 3 === 0 && [17, 21, 33, 39, 68, 468, 478].includes(a / 3)) {
    return { kind: "points", count: a / 3, each: 3 };
  }
  return own.length <= 1 ? { kind: "scores", count: a ?? 1 } : { kind: "table", columns: own.at(-1) };
}

/** Of how many rows and columns of a map one is shown. */
const stepOf = ({ height, width }) => Math.ceil(Math.max(height, width) / MAX_SIDE);

/** One channel, or three as colours, from the least value to the most. */
function picture(data, kind, shown, [least, most]) {
  const { height, width, channels, planar } = kind;
  const step = stepOf(kind);
  const [rows, columns] = [Math.ceil(height / step), Math.ceil(width / step)];
  const canvas = element("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  const scale = most > least ? 255 / (most - least) : 0;
  for (let to = 0; to < rows * columns; to++) {
    const at = step * (Math.floor(to / columns) * width + (to % columns));
    for (let colour = 0; colour < 3; colour++) {
      const channel = shown[Math.min(colour, shown.length - 1)];
      const value = Number(planar ? data[channel * height * width + at] : data[at * channels + channel]);
      pixels.data[4 * to + colour] = (value - least) * scale;
    }
    pixels.data[4 * to + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

function maps(data, kind) {
  const ends = range(data);
  const figure = (shown, says) => element("figure", {}, picture(data, kind, shown, ends), element("figcaption", { textContent: says }));
  const all = kind.channels === 3 ? [figure([0, 1, 2], "as colours")] : [];
  for (let channel = 0; channel < Math.min(kind.channels, SHOWN_CHANNELS); channel++) {
    all.push(figure([channel], kind.channels === 1 ? "" : `channel ${channel}`));
  }
  const some = kind.channels > SHOWN_CHANNELS ? `, ${SHOWN_CHANNELS} of ${kind.channels} channels` : "";
  const more = stepOf(kind) > 1 ? `${some}, one of ${stepOf(kind)} rows and columns` : some;
  return [element("p", { textContent: `black ${number(ends[0])}, white ${number(ends[1])}${more}` }), element("div", { className: "maps" }, ...all)];
}

function points(data, { count, each }, source, size) {
  const side = 320;
  const canvas = element("canvas", { width: side, height: side });
  const context = canvas.getContext("2d");
  context.fillStyle = "#17181b";
  context.fillRect(0, 0, side, side);
  const axis = (axis) => Array.from({ length: count }, (_, at) => Number(data[at * each + axis]));
  const [x, y] = [axis(0), axis(1)];
  const [left, right] = range(x);
  const [top, bottom] = range(y);
  // Shares of the picture, pixels of the network's input, or anything else: then what there is fills the square.
  const within = (most) => most && left >= -0.05 * most && top >= -0.05 * most && right <= 1.2 * most && bottom <= 1.2 * most;
  const span = within(1) ? 1 : within(size) ? size : undefined;
  const [from, reach] = span ? [[0, 0], span] : [[left, top], Math.max(right - left, bottom - top, 1e-9) * 1.1];
  if (source && span) {
    context.globalAlpha = 0.6;
    context.drawImage(source, 0, 0, side, side);
    context.globalAlpha = 1;
  }
  context.fillStyle = "#4fc4b8";
  for (let at = 0; at < count; at++) {
    context.beginPath();
    context.arc((side * (x[at] - from[0])) / reach, (side * (y[at] - from[1])) / reach, count > 100 ? 1.5 : 4, 0, 2 * Math.PI);
    context.fill();
  }
  const says = span === 1 ? `${count} points, as shares of the picture` : span ? `${count} points, in pixels of the input` : `${count} points, x ${number(left)} to ${number(right)}, y ${number(top)} to ${number(bottom)}`;
  return [element("p", { textContent: says }), element("div", { className: "maps" }, element("figure", {}, canvas))];
}

function table(rows, heads) {
  const row = (cells, tag) => element("tr", {}, ...cells.map((textContent) => element(tag, { textContent })));
  return element("div", { className: "wide" }, element("table", {}, row(heads, "th"), ...rows.map((cells) => row(cells, "td"))));
}

/** The places of the largest elements, the largest first. */
export function largest(data, count) {
  const value = (at) => (Number.isNaN(Number(data[at])) ? -Infinity : Number(data[at]));
  const places = [];
  for (let at = 0; at < data.length; at++) {
    if (places.length < count || value(at) > value(places.at(-1))) {
      const before = places.findIndex((place) => value(at) > value(place));
      places.splice(before < 0 ? places.length : before, 0, at);
      places.splice(count);
    }
  }
  return places;
}

function scores(data, { count }, labels) {
  const order = largest(data, SHOWN_ROWS);
  const says = count > SHOWN_ROWS ? `the ${SHOWN_ROWS} largest of ${count}` : "";
  return [element("p", { textContent: says }), table(order.map((at) => [labels?.[at] ?? `element ${at}`, number(data[at])]), ["what", "value"])];
}

function rows(data, { columns }) {
  const shown = Math.min(columns, SHOWN_ROWS);
  const count = data.length / columns;
  const lines = Array.from({ length: Math.min(count, SHOWN_ROWS) }, (_, row) => [String(row), ...Array.from({ length: shown }, (_, at) => number(data[row * columns + at]))]);
  const heads = ["row", ...Array.from({ length: shown }, (_, at) => String(at))];
  return [element("p", { textContent: `${lines.length} of ${count} rows, ${shown} of ${columns} columns` }), table(lines, heads)];
}

/**
 * The outputs of a run, each as its shape suggests. `source` is the picture that went in, if it was one, and `size` the width of
 * that input.
 */
export function show(place, outputs, labels, source, size) {
  const cards = Object.entries(outputs).map(([name, { data, dims }], at) => {
    const kind = kindOf(dims);
    const empty = data.length === 0;
    const own = empty ? [element("p", { textContent: "nothing was found" })]
      : kind.kind === "maps" ? maps(data, kind)
      : kind.kind === "points" ? points(data, kind, source, size)
      : kind.kind === "scores" ? scores(data, kind, labels[at])
      : rows(data, kind);
    const card = element("section", { className: "output" }, element("h3", { textContent: `${name} · ${dims.join("×")}` }), ...own);
    card.dataset.kind = empty ? "empty" : kind.kind;
    return card;
  });
  place.replaceChildren(...cards);
}
