// The living map: origin in the middle, the levels as rings around it, proxies and
// viewers outside; who serves whom, who stands behind whom, and what travels.

import { state, proper } from "./wire.js";
import { draw, outline, traveller } from "./shapes.js";

const map = document.getElementById("map");
// Where the window is wide the rings are, too.
const wide = matchMedia("(min-width: 64.01rem)");
const RADIUS = { origin: 0, enh2: 130, enh1: 240, base: 355, proxy: 445 };
const BREADTH = 1.32;
const SIZE = { origin: 26, enh2: 23, enh1: 24, base: 25, proxy: 22, viewer: 24 };
const TURN = { enh2: -90, enh1: -45, base: -67.5, proxy: 90 };
// Where viewers sit, in degrees; those behind a proxy sit near it.
const SEATS = { direct: [-152, -28, 180, 0, -112, -68, 160, 20], behind: [130, 50, 146, 34, 112, 68, 165, 15] };
const OUTSIDE = 455;
const FLIGHT_MS = 650;
const MOST_FLIGHTS = 40;
// Twenty-five times a second is smooth enough, and leaves time for the film.
const FRAME_MS = 39;
const LAYERS = ["base", "enh1", "enh2"];

const layers = Object.fromEntries(["rings", "ways", "grips", "air", "places"].map((name) => [name, draw("g")]));
map.append(...Object.values(layers));
const places = new Map();
const seats = new Map();
const still = matchMedia("(prefers-reduced-motion: reduce)");
let open = () => {};
let flying = [];
let current = null;

/** Who is told that a node, viewer or link was chosen: `open(kind, name, element)`. */
export function onChoice(callback) {
  open = callback;
}

const at = (degrees, radius) => {
  const angle = (degrees * Math.PI) / 180;
  return { x: radius * Math.cos(angle) * (wide.matches ? BREADTH : 1), y: radius * Math.sin(angle) };
};
wide.addEventListener("change", () => { rebuild(); update(); });

/** Begins anew with the nodes of another run. */
export function rebuild() {
  for (const group of Object.values(layers)) group.replaceChildren();
  layers.ways.looks = layers.grips.key = null;
  places.clear();
  seats.clear();
  flying = [];
  current = null;
  map.setAttribute("viewBox", wide.matches ? "-680 -412 1360 892" : "-525 -412 1050 900");
  const levels = [...new Set(Object.values(state.nodes).map((node) => node.level))];
  for (const level of levels.filter((level) => RADIUS[level] && level !== "proxy")) {
    const { x } = at(0, RADIUS[level]);
    layers.rings.append(draw("ellipse", { class: "ring", rx: x, ry: RADIUS[level] }));
  }
  for (const level of levels) {
    const names = Object.keys(state.nodes).filter((name) => state.nodes[name].level === level).sort();
    names.forEach((name, n) => {
      const spot = at((TURN[level] ?? 0) + (n * 360) / names.length, RADIUS[level] ?? 0);
      place(name, level, spot, name.split("-")[1] ?? "");
    });
  }
  for (const level of levels.filter((level) => state.film.layers.includes(level))) {
    // Between two nodes of the ring, where it runs to the right.
    layers.rings.append(draw("text", { class: "caption", x: at(0, RADIUS[level]).x, y: 6 }, proper(level)));
  }
  layers.rings.append(draw("text", { class: "caption", x: 0, y: 58 }, "origin"));
}

function place(name, level, spot, label) {
  const kind = level === "viewer" ? "viewer" : "node";
  const size = SIZE[level] ?? 24;
  const inner = draw("g", { class: "inner" });
  const halo = outline(level, size + 9);
  halo.classList.add("halo");
  const body = outline(level, size);
  body.classList.add("body");
  const text = draw("text", { class: "number", y: 1 }, level === "origin" ? "★" : level === "proxy" ? "proxy" : label);
  const cross = draw("path", { class: "mark x", d: "M-17-17 17 17M17-17-17 17" });
  const pause = draw("path", { class: "mark pause", d: "M-7-12V12M7-12V12" });
  inner.append(halo, body, text, cross, pause);
  const group = draw("g", {
    transform: `translate(${spot.x.toFixed(1)} ${spot.y.toFixed(1)})`, tabindex: "-1", role: "button",
    [`data-${kind}`]: name,
  }, inner);
  group.addEventListener("click", () => { focus(name, false); open(kind, name, group); });
  layers.places.append(group);
  places.set(name, { kind, level, spot, group });
  if (!current) focus(name, false);
}

function focus(name, move = true) {
  if (places.has(current)) places.get(current).group.setAttribute("tabindex", "-1");
  current = name;
  const { group } = places.get(name);
  group.setAttribute("tabindex", "0");
  if (move) group.focus();
}

/** Arrow keys: to whatever lies nearest in that direction. */
map.addEventListener("keydown", (event) => {
  if (!places.has(current)) return;
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (step) {
    const from = places.get(current).spot;
    let best = null;
    for (const [name, { spot }] of places) {
      const [dx, dy] = [spot.x - from.x, spot.y - from.y];
      const ahead = dx * step[0] + dy * step[1];
      const aside = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
      const cost = ahead + 2 * aside;
      if (ahead > 8 && (!best || cost < best.cost)) best = { name, cost };
    }
    if (best) focus(best.name);
  } else if (event.key === "Enter" || event.key === " ") {
    const { kind, group } = places.get(current);
    open(kind, current, group);
  } else {
    return;
  }
  event.preventDefault();
});

/** Viewers come and go; each keeps its seat. */
function seat() {
  for (const name of [...places.keys()]) {
    if (places.get(name).kind === "viewer" && !state.viewers[name]) {
      places.get(name).group.remove();
      places.delete(name);
      seats.delete(name);
      if (current === name) { current = null; focus(places.keys().next().value, false); }
    }
  }
  for (const [name, viewer] of Object.entries(state.viewers)) {
    const row = viewer.proxy ? "behind" : "direct";
    if (places.has(name) && seats.get(name).row !== row) {
      places.get(name).group.remove();
      places.delete(name);
    }
    if (places.has(name)) continue;
    const taken = [...seats].filter(([other, seat]) => other !== name && seat.row === row).map(([, seat]) => seat.angle);
    const angle = SEATS[row].find((angle) => !taken.includes(angle)) ?? 0;
    seats.set(name, { row, angle });
    place(name, "viewer", at(angle, OUTSIDE), name);
  }
}

/** Draws everything as it stands now. */
export function update() {
  seat();
  const serving = new Set();
  const ways = [];
  const receivers = [
    ...Object.entries(state.viewers).map(([name, viewer]) => [name, viewer, viewer.vip]),
    ...Object.entries(state.nodes).filter(([, node]) => node.level === "proxy").map(([name, node]) => [name, node, false]),
  ];
  for (const [name, receiver, vip] of receivers) {
    for (const [layer, source] of Object.entries(receiver.sources)) {
      serving.add(source.node);
      ways.push({ from: source.node, to: name, kind: layer });
    }
    if (receiver.backup) ways.push({ from: receiver.backup, to: name, kind: vip ? "standby hot" : "standby" });
  }
  const shown = new Set(ways.map((way) => pair(way.from, way.to)));
  for (const { ends } of Object.values(state.links)) {
    if (!shown.has(pair(...ends))) ways.push({ from: ends[0], to: ends[1], kind: "bent" });
  }
  paint(ways);
  for (const [name, { group, kind, level }] of places) describe(name, group, kind, level, serving.has(name));
}

const pair = (one, other) => [one, other].sort().join("|");

function describe(name, group, kind, level, serves) {
  const node = state.nodes[name];
  const viewer = state.viewers[name];
  const words = kind === "node"
    ? [node.life, node.thought_dead ? "thought dead" : "", serves ? "serves" : "", node.holds ? "" : "empty"]
    : [viewer.vip ? "VIP" : "normal", viewer.shows || "opening"];
  const look = state.tour.look_at?.includes(name) ? "look" : "";
  const classes = ["place", kind, level, kind === "node" ? node.life : "", serves ? "serves" : "", look,
    kind === "node" && state.ready && !node.holds && level !== "proxy" ? "empty" : ""];
  set(group, "class", classes.filter(Boolean).join(" "));
  set(group, "aria-label", `${name}: ${words.filter(Boolean).join(", ")}`);
  if (viewer?.vip !== group.vip && kind === "viewer") {
    group.vip = viewer.vip;
    group.querySelector(".number").textContent = viewer.vip ? `★ ${name}` : name;
  }
}

function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** A way from one to another, bent a little to the side that its layer has. */
function course(from, to, kind) {
  const [a, b] = [places.get(from)?.spot, places.get(to)?.spot];
  if (!a || !b) return null;
  const side = { base: 0.06, enh1: -0.07, enh2: 0.12 }[kind] ?? -0.16;
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const bend = { x: (a.x + b.x) / 2 - dy * side, y: (a.y + b.y) / 2 + dx * side };
  return { a, b, bend, d: `M${a.x.toFixed(0)} ${a.y.toFixed(0)}Q${bend.x.toFixed(0)} ${bend.y.toFixed(0)} ${b.x.toFixed(0)} ${b.y.toFixed(0)}` };
}

function paint(ways) {
  const marks = new Set();
  const drawn = [];
  const grips = [];
  for (const { from, to, kind } of ways) {
    const way = course(from, to, kind);
    if (!way) continue;
    drawn.push(draw("path", { class: `way ${kind}`, d: way.d }));
    const link = pair(from, to);
    grips.push([link, way]);
    const bent = state.links[link];
    if (bent && !marks.has(link)) {
      marks.add(link);
      const middle = { x: (way.a.x + way.b.x) / 4 + way.bend.x / 2, y: (way.a.y + way.b.y) / 4 + way.bend.y / 2 };
      drawn.push(draw("text", { class: "knot", x: middle.x, y: middle.y }, { slow: "slow", narrow: "narrow", cut: "✕ cut" }[bent.condition]));
    }
  }
  // What looks the same is left alone: drawing costs more than comparing.
  const looks = drawn.map((element) => element.outerHTML).join();
  if (layers.ways.looks !== looks) {
    layers.ways.looks = looks;
    layers.ways.replaceChildren(...drawn);
  }
  // Handles stay while their way stays, or a click could fall between two of them.
  const key = grips.map(([link, way]) => link + way.d).join();
  if (layers.grips.key === key) return;
  layers.grips.key = key;
  layers.grips.replaceChildren(...grips.map(([link, way]) => {
    const grip = draw("path", { class: "grip", d: way.d, "data-link": link });
    grip.append(draw("title", {}, `link between ${link.replace("|", " and ")}`));
    grip.addEventListener("click", () => open("link", link, grip));
    return grip;
  }));
}

/** Shows what has travelled. */
export function fly(flights) {
  if (still.matches || document.hidden) return;
  for (const { from, to, what } of flights.slice(-MOST_FLIGHTS)) {
    const way = course(from, to, LAYERS.includes(what) ? what : "base");
    if (!way || flying.length >= MOST_FLIGHTS) continue;
    const element = traveller(what);
    // What came since the last look is spread over the time until the next.
    flying.push({ way, element, began: performance.now() + Math.random() * 200 });
    layers.air.append(element);
  }
  if (flying.length > 0) requestAnimationFrame(move);
}

let moving = false;
function move() {
  if (moving) return;
  moving = true;
  let last = 0;
  const frame = (now) => {
    if (now - last < FRAME_MS) { requestAnimationFrame(frame); return; }
    last = now;
    flying = flying.filter(({ way: { a, b, bend }, element, began }) => {
      const t = (now - began) / FLIGHT_MS;
      if (t > 1) { element.remove(); return false; }
      const s = Math.max(0, t);
      const u = s * s * (3 - 2 * s);
      const mix = (p, q, r) => (1 - u) * (1 - u) * p + 2 * u * (1 - u) * q + u * u * r;
      element.setAttribute("transform", `translate(${mix(a.x, bend.x, b.x).toFixed(1)} ${mix(a.y, bend.y, b.y).toFixed(1)})`);
      element.setAttribute("opacity", t < 0 ? "0" : "1");
      return true;
    });
    if (flying.length > 0) requestAnimationFrame(frame);
    else moving = false;
  };
  requestAnimationFrame(frame);
}

/** What links of somebody the map shows: names of the other ends. */
export function linksOf(name) {
  const others = new Set();
  for (const grip of layers.grips.children) {
    const ends = grip.getAttribute("data-link").split("|");
    if (ends.includes(name)) others.add(ends.find((end) => end !== name));
  }
  return [...others].sort();
}

/** What a node does, in a sentence. */
export function duties(name) {
  const serves = [];
  const behind = [];
  const all = [...Object.entries(state.viewers), ...Object.entries(state.nodes)];
  for (const [who, { sources, backup }] of all) {
    for (const [layer, source] of Object.entries(sources ?? {})) {
      if (source.node === name) serves.push(`${proper(layer)} to ${who}`);
    }
    if (backup === name) behind.push(who);
  }
  const parts = [];
  if (serves.length) parts.push(`serves ${serves.join(", ")}`);
  if (behind.length) parts.push(`stands behind for ${behind.join(", ")}`);
  return parts.join("; ") || "serves nobody now";
}
