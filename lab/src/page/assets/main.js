// The page: whatever comes by the wire goes to the parts that show it.

import { state, listen, act, make, seconds } from "./wire.js";
import * as map from "./map.js";
import * as viewers from "./viewers.js";
import * as tour from "./tour.js";
import { openMenu } from "./menu.js";
import { legend } from "./shapes.js";

const by = (id) => document.getElementById(id);
const log = by("log");
const MAX_LINES = 120;
let online = false;

// What is shown, for whoever drives the page by a program.
window.lamina = state;

legend(by("legend"));
map.onChoice(openMenu);
listen({ line, change, picture: viewers.show });
tour.update(false);

function line(up) {
  online = up;
  by("line").classList.toggle("on", up && state.ready);
  by("line").textContent = up ? "connected" : "the demonstration is not there; waiting for it";
  tour.update(online);
}

function change({ anew, flights, lines }) {
  if (anew) begin();
  by("line").classList.toggle("on", online && state.ready);
  by("line").textContent = state.ready ? counted() : "the network is being started";
  map.update();
  viewers.update();
  tour.update(online);
  write(lines);
  map.fly(flights);
}

function begin() {
  log.replaceChildren();
  map.rebuild();
  viewers.reset();
  tour.reset();
  const { title, attribution } = state.film;
  by("film").textContent = attribution ?? title;
}

function counted() {
  const all = Object.values(state.nodes);
  const up = all.filter((node) => node.life === "up").length;
  return `${up} of ${all.length} nodes run`;
}

function write(lines) {
  if (lines.length === 0) return;
  const below = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  for (const { at_ms, tone, text } of lines) {
    log.append(make("li", { class: tone }, make("time", {}, `${seconds(at_ms)} s`), " ", text));
  }
  while (log.children.length > MAX_LINES) log.firstChild.remove();
  if (below) log.scrollTop = log.scrollHeight;
}

by("mend").addEventListener("click", () => act({ deed: "mend" }));
by("add").addEventListener("submit", (event) => {
  event.preventDefault();
  act({
    deed: "add_viewer", quality: by("add-quality").value,
    vip: by("add-class").value === "vip", proxy: by("add-way").value === "proxy",
  });
});
