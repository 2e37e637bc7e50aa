"use strict";
const nodes = JSON.parse(document.getElementById("data").textContent);
const svg = document.querySelector("svg");
const boxes = [...svg.querySelectorAll(".box")];
const edges = [...svg.querySelectorAll("#edges path")];
const panel = document.getElementById("node");
const search = document.getElementById("search");
const whole = svg.viewBox.baseVal;
const all = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };

// What of the drawing is seen: the view box has the window's shape, so that a pixel is a pixel either way.
let view = { ...all };
function show(next) {
    view = next;
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
}
function fit() {
    const { width, height } = svg.getBoundingClientRect();
    const scale = Math.max(all.width / width, all.height / height);
    const [w, h] = [width * scale, height * scale];
    show({ x: all.x - (w - all.width) / 2, y: all.y - (h - all.height) / 2, width: w, height: h });
}
function place(x, y) {
    const frame = svg.getBoundingClientRect();
    return [view.x + (x - frame.left) / frame.width * view.width, view.y + (y - frame.top) / frame.height * view.height];
}
function zoom(factor, x, y) {
    const frame = svg.getBoundingClientRect();
    const [cx, cy] = place(x ?? frame.left + frame.width / 2, y ?? frame.top + frame.height / 2);
    const width = Math.min(Math.max(view.width * factor, 150), 6 * Math.max(all.width, all.height));
    const by = width / view.width;
    show({ x: cx - (cx - view.x) * by, y: cy - (cy - view.y) * by, width, height: view.height * by });
}
function centre(index) {
    const { e, f } = boxes[index].transform.baseVal.consolidate().matrix;
    const frame = svg.getBoundingClientRect();
    // Near enough to be read.
    const width = Math.min(view.width, frame.width * 1.2);
    const height = width * frame.height / frame.width;
    show({ x: e + 100 - width / 2, y: f + 28 - height / 2, width, height });
}

svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 60) / 300), event.clientX, event.clientY);
}, { passive: false });
const pointers = new Map();
let moved = 0;
svg.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    moved = 0;
});
addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const now = [event.clientX, event.clientY];
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
        const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
        zoom(apart(last) / Math.max(apart(now), 1), ...other);
    } else {
        const [a, b] = [place(...last), place(...now)];
        show({ ...view, x: view.x + a[0] - b[0], y: view.y + a[1] - b[1] });
    }
    moved += Math.hypot(now[0] - last[0], now[1] - last[1]);
    pointers.set(event.pointerId, now);
});
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, (event) => pointers.delete(event.pointerId));

// What is known of a box, and the edges to and from it.
function element(name, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return made;
}
function links(row, others) {
    const cell = element("td");
    for (const other of others) {
        const link = element("a", `${nodes[other].lines[0]} ${nodes[other].lines[1]}`);
        link.href = `#${other}`;
        link.addEventListener("click", (event) => {
            event.preventDefault();
            choose(other);
            centre(other);
        });
        cell.append(link, element("br"));
    }
    row.append(cell);
}
function choose(index) {
    const node = nodes[index];
    boxes.forEach((box, at) => box.classList.toggle("chosen", at === index));
    for (const edge of edges) {
        const hot = Number(edge.dataset.from) === index || edge.dataset.to.split(" ").includes(String(index));
        edge.classList.toggle("hot", hot);
    }
    panel.replaceChildren();
    panel.hidden = !node;
    if (!node) return;
    panel.append(element("h2", `${node.lines[0]} ${node.lines[1]}`));
    const table = panel.appendChild(element("table"));
    for (const [what, text] of node.facts) {
        const row = table.appendChild(element("tr"));
        row.append(element("th", what), element("td", text));
    }
    for (const [what, others] of [["reads", node.reads], ["read by", node.readers]]) {
        if (others.length === 0) continue;
        const row = table.appendChild(element("tr"));
        row.append(element("th", what));
        links(row, others);
    }
    document.querySelector("aside").scrollTop = 0;
}
svg.addEventListener("click", (event) => {
    if (moved > 4) return;
    choose(Number(event.target.closest(".box")?.dataset.box ?? -1));
});

// Enter goes from match to match.
let matches = [];
let current = -1;
const texts = nodes.map((node) => [...node.lines, ...node.facts.flat()].join(" ").toLowerCase());
search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    matches = words.length === 0 ? [] : texts.flatMap((text, at) => words.every((word) => text.includes(word)) ? [at] : []);
    current = -1;
    boxes.forEach((box, at) => box.classList.toggle("match", matches.includes(at)));
    svg.classList.toggle("searching", words.length > 0);
    document.getElementById("matches").textContent = words.length === 0 ? "" : `${matches.length} found`;
});
search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || matches.length === 0) return;
    current = (current + (event.shiftKey ? matches.length - 1 : 1)) % matches.length;
    document.getElementById("matches").textContent = `${current + 1} of ${matches.length}`;
    choose(matches[current]);
    centre(matches[current]);
});

document.getElementById("in").addEventListener("click", () => zoom(1 / 1.4));
document.getElementById("out").addEventListener("click", () => zoom(1.4));
document.getElementById("fit").addEventListener("click", fit);
addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
        search.value = "";
        search.dispatchEvent(new Event("input"));
        search.blur();
        choose(-1);
    }
    if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = event.target.closest?.(".box");
    if (box && event.key === "Enter") choose(Number(box.dataset.box));
    if (event.key === "/") search.focus();
    else if (event.key === "+") zoom(1 / 1.4);
    else if (event.key === "-") zoom(1.4);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
});
// The middle stays where it is.
addEventListener("resize", () => {
    const frame = svg.getBoundingClientRect();
    const height = view.width * frame.height / frame.width;
    show({ ...view, y: view.y + (view.height - height) / 2, height });
});
fit();
