// The page's bars, lines and tables.

const SVG = "http://www.w3.org/2000/svg";

export const ms = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(1)) + " ms";

export const us = (value) => (value >= 1000 ? ms(value / 1000) : `${value.toFixed(value >= 100 ? 0 : 1)} µs`);

/** Rows of a name, a bar and a time; the first call makes them, the next ones change them. */
export function bars(list, rows) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-9);
  if (list.children.length !== 3 * rows.length) {
    list.replaceChildren(
      ...rows.flatMap(([, , kind]) => {
        const bar = document.createElement("dd");
        bar.className = `bar ${kind ?? ""}`;
        bar.append(document.createElement("i"));
        return [document.createElement("dt"), bar, document.createElement("dd")];
      }),
    );
  }
  rows.forEach(([name, value], row) => {
    const [term, bar, number] = [0, 1, 2].map((part) => list.children[3 * row + part]);
    term.textContent = name;
    bar.firstChild.style.width = `${(100 * value) / most}%`;
    number.textContent = ms(value);
  });
}

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  if (text !== undefined) {
    made.textContent = text;
  }
  return made;
}

/** What the kernels timed so far take as they are tuned, as a share of what they take untuned, over the time spent. */
export function tuning(svg, points, budget) {
  const [left, right, top, bottom] = [36, 312, 8, 100];
  const seconds = Math.max(budget, points.at(-1)?.seconds ?? 0);
  const share = ({ untuned, tuned }) => tuned / untuned;
  const x = (value) => left + ((right - left) * value) / seconds;
  const y = (value) => bottom - (bottom - top) * Math.min(value, 1);
  const line = points.map((point) => `${x(point.seconds).toFixed(1)},${y(share(point)).toFixed(1)}`).join(" ");
  const last = points.at(-1);
  const text = (at, [left, top], anchor = "start") => element("text", { x: left, y: top, "text-anchor": anchor }, at);
  svg.replaceChildren(
    element("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }),
    element("path", { class: "untuned", d: `M${left} ${y(1)}H${right}` }),
    text("100 %", [left - 4, y(1) + 4], "end"),
    text("50 %", [left - 4, y(0.5) + 3], "end"),
    text("0", [left - 4, bottom], "end"),
    text("time of the kernels timed so far, of untuned (dashed)", [left, bottom + 13]),
    text(`${seconds.toFixed(0)} s`, [right, bottom + 13], "end"),
    element("polyline", { class: "tuned", points: line }),
    ...(last ? [element("circle", { class: "now", cx: x(last.seconds), cy: y(share(last)), r: 3 })] : []),
  );
}

/** The slowest steps of a profile. */
export function steps(table, profile, count = 12) {
  const slowest = [...profile.steps].sort((a, b) => b.us - a.us).slice(0, count);
  const row = (cells, tag) => {
    const made = document.createElement("tr");
    made.append(
      ...cells.map((text) => {
        const cell = document.createElement(tag);
        cell.textContent = cell.title = text;
        return cell;
      }),
    );
    return made;
  };
  table.replaceChildren(
    row(["step", "op", "time"], "th"),
    ...slowest.map(({ name, op, us: time }) => row([name, op, us(time)], "td")),
    row([`all ${profile.steps.length} (${profile.clock})`, "", us(profile.us)], "th"),
  );
}
