// The viewers: what each sees, how deep its buffer is, how often it froze, and the
// strip of its quality over the last minute.

import { state, act, make, seconds, watch } from "./wire.js";
import { draw } from "./shapes.js";

const room = document.getElementById("cards");
const SPAN_MS = 60000;
const FULL_MS = 4000;
const SHOWN_AT_FIRST = 4;
const LAYERS = ["base", "enh1", "enh2"];
const QUALITIES = ["bronze", "silver", "gold"];
const cards = new Map();
let asked = "";

/** Makes cards for who came, takes away those of who left, and fills all. */
export function update() {
  for (const [name, card] of cards) {
    if (!state.viewers[name]) { card.root.remove(); cards.delete(name); }
  }
  for (const name of Object.keys(state.viewers)) {
    if (!cards.has(name)) cards.set(name, build(name));
    fill(cards.get(name), name, state.viewers[name]);
  }
  const wanted = [...cards].filter(([, card]) => card.on).map(([name]) => name);
  if (asked !== wanted.join()) { asked = wanted.join(); watch(wanted); }
}

/** Begins anew. */
export function reset() {
  room.replaceChildren();
  cards.clear();
  asked = "";
}

function build(name) {
  const canvas = make("canvas", { width: 480, height: 270, role: "img", "aria-label": `What ${name} sees` });
  const shows = make("span");
  const place = make("span");
  const figure = make("figure", {}, canvas, make("div", { class: "over" }, shows, place));
  const chip = make("span", { class: "chip" });
  const way = make("small");
  const facts = make("p", { class: "facts" });
  const depth = make("i");
  const strip = draw("svg", { class: "strip", viewBox: "0 0 600 30", preserveAspectRatio: "none", role: "img" });
  const quality = make("select", { "aria-label": `Quality that ${name} wants` },
    ...[...QUALITIES].reverse().map((quality) => make("option", { value: quality }, quality)));
  quality.addEventListener("change", () => act({ deed: "change_viewer", viewer: name, quality: quality.value }));
  const vip = make("button", { onclick: () => act({ deed: "change_viewer", viewer: name, vip: !state.viewers[name].vip }) }, "VIP");
  const card = { on: cards.size < SHOWN_AT_FIRST, canvas, shows, place, figure, chip, way, facts, depth, strip, quality, vip };
  card.eye = make("button", { onclick: () => { card.on = !card.on; update(); } }, "Picture");
  const again = make("button", { onclick: () => act({ deed: "change_viewer", viewer: name, vip: state.viewers[name].vip }) }, "Watch again");
  const leave = make("button", { class: "end", onclick: () => act({ deed: "remove_viewer", viewer: name }), "aria-label": `${name} leaves` }, "Leaves");
  card.again = again;
  card.root = make("article", { class: "card", "data-viewer": name, "aria-label": `Viewer ${name}` }, figure,
    make("div", { class: "inside" }, make("h3", {}, name, chip, way), facts,
      make("div", { class: "depth", "aria-hidden": "true" }, depth), strip,
      make("p", { class: "row" }, quality, vip, card.eye, again, leave)));
  room.append(card.root);
  return card;
}

function fill(card, name, viewer) {
  const shows = { opening: "looking for service …", over: "cannot go on" }[viewer.viewing] ?? viewer.shows;
  card.shows.textContent = viewer.viewing === "playing" ? `${viewer.shows} ${"▮".repeat(QUALITIES.indexOf(viewer.shows) + 1)}` : shows;
  card.place.textContent = `${seconds(viewer.position_ms)} s`;
  card.chip.textContent = viewer.shows || "…";
  card.chip.className = `chip ${viewer.shows}`;
  card.way.textContent = [viewer.vip ? "★ VIP" : "normal", viewer.proxy ? "by proxy" : ""].filter(Boolean).join(", ");
  facts(card, viewer);
  card.depth.style.width = `${Math.min(100, (viewer.buffer_ms / FULL_MS) * 100)}%`;
  if (document.activeElement !== card.quality) card.quality.value = viewer.wants;
  card.vip.setAttribute("aria-pressed", viewer.vip);
  card.eye.setAttribute("aria-pressed", card.on);
  card.figure.classList.toggle("off", !card.on);
  card.again.hidden = viewer.viewing !== "over";
  card.root.classList.toggle("look", Boolean(state.tour.look_at?.includes(name)));
  card.root.dataset.freezes = viewer.freezes;
  card.root.dataset.shows = viewer.shows;
  // It moves by ten pixels a second, and at once when there is something new.
  const key = `${Math.floor(state.at_ms / 1000)} ${viewer.steps.length} ${viewer.stops.length}`;
  if (card.drawn !== key) {
    card.drawn = key;
    strip(card.strip, name, viewer);
  }
}

function facts(card, viewer) {
  const from = LAYERS.filter((layer) => viewer.sources[layer]).map((layer) => viewer.sources[layer].node);
  const text = [`${seconds(viewer.buffer_ms)} s`, String(viewer.freezes), [...new Set(from)].join(" ") || "nobody"].join();
  if (card.told === text) return;
  card.told = text;
  card.facts.replaceChildren(
    make("span", {}, "buffer ", make("b", {}, `${seconds(viewer.buffer_ms)} s`)),
    make("span", { class: viewer.freezes ? "bad" : "" }, "freezes ", make("b", {}, String(viewer.freezes))),
    make("span", {}, "from ", make("b", {}, [...new Set(from)].join(" ") || "nobody")));
}

/** The last minute: one row for each layer that was on screen, and a bar for each freeze. */
function strip(svg, name, viewer) {
  const begin = state.at_ms - SPAN_MS;
  const x = (ms) => ((Math.max(ms, begin) - begin) / SPAN_MS) * 600;
  const parts = [];
  viewer.steps.forEach(([from, layers], n) => {
    const until = viewer.steps[n + 1]?.[0] ?? state.at_ms;
    if (until < begin) return;
    LAYERS.forEach((layer, row) => {
      const kind = row < layers ? layer : "gap";
      const height = row < layers ? 8 : 2;
      parts.push(draw("rect", { class: kind, x: x(from).toFixed(1), width: Math.max(0.5, x(until) - x(from)).toFixed(1), y: 29 - row * 10 - height, height }));
    });
  });
  for (const [from, length] of viewer.stops) {
    if (from + length > begin) parts.push(draw("rect", { class: "stop", x: x(from).toFixed(1), width: Math.max(3, (length / SPAN_MS) * 600), y: 0, height: 30 }));
  }
  svg.replaceChildren(...parts);
  const now = QUALITIES[(viewer.steps.at(-1)?.[1] ?? 0) - 1] ?? "nothing";
  svg.setAttribute("aria-label", `Quality of ${name} in the last minute: ${now} now, ${Math.max(0, viewer.steps.length - 1)} steps`);
  svg.dataset.steps = viewer.steps.map(([, layers]) => layers).join(" ");
}

/** A picture came. */
export function show(name, picture) {
  const canvas = cards.get(name)?.canvas;
  if (canvas) {
    if (canvas.width !== picture.width || canvas.height !== picture.height) {
      canvas.width = picture.width;
      canvas.height = picture.height;
    }
    canvas.getContext("2d").drawImage(picture, 0, 0);
  }
  picture.close();
}
