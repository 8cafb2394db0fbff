// The guided tour: six steps. The server does each and says what came of it; here
// stands what they tell.

import { state, act, make } from "./wire.js";

const STEPS = [
  ["Layers fade outwards", "The film is split into Base, which is enough to watch, and two enhancements. The origin has everything; each ring outwards stores one layer less, on more nodes. A node joins with an empty disk, and an agent brings the name of what it is to store.",
    "the squares that travel from the origin outwards, and the dashed node that fills."],
  ["A search, and slots", "A viewer knows one address and knocks. An agent goes from Base node to Base node until one has a free slot, then inwards for each enhancement. At once another agent looks for a node to stand behind.",
    "the triangles that go from node to node, then the coloured lines to bert, then the dashed one."],
  ["A Base node dies", "The node that sends anna her Base layer is killed. Its neighbours miss its signals, the news is passed on, and the node that stood behind steps in. The buffer is deeper than that takes.",
    "the red crosses that spread, the solid line that moves, and a freeze counter that stays 0."],
  ["A layer with two sources", "One of the two nodes with the finest layer is killed. The other has a slot to spare, and the picture stays as it was.",
    "the thinnest line to anna, which moves; her quality strip, which shows no step."],
  ["A layer lost, and regained", "Now the last one dies. The finest layer is gone from the network, and the picture goes down one step, but does not stop. Then the node is started again.",
    "the top row of anna's strip: it ends, and begins again."],
  ["The proxy filters", "Two viewers watch through one proxy; both want gold. The line to dario is narrow. The proxy leaves layers out for him, chunk by chunk, and fetches everything only once.",
    "the pictures of carla and dario, and the mark on dario's line."],
];

const by = (id) => document.getElementById(id);
let here = 1;
let seen = "";

STEPS.forEach(([title], n) => {
  const button = make("button", { "aria-label": `Step ${n + 1}: ${title}`, onclick: () => go(n + 1) }, String(n + 1));
  by("tour-steps").append(make("li", {}, button));
});
by("tour-go").addEventListener("click", () => act({ deed: "tour", step: here }));
by("tour-next").addEventListener("click", () => go((here % STEPS.length) + 1));
by("tour-steps").addEventListener("keydown", (event) => {
  const to = { ArrowRight: here + 1, ArrowLeft: here - 1 }[event.key];
  if (to >= 1 && to <= STEPS.length) {
    go(to);
    by("tour-steps").children[to - 1].firstChild.focus();
    event.preventDefault();
  }
});

function go(step) {
  here = step;
  update();
}

/** Begins anew. */
export function reset() {
  here = Math.max(1, state.tour.step);
  seen = "";
}

/** Shows the step that was chosen, and how far it is. */
export function update(online = true) {
  const { step, busy, done, says } = state.tour;
  // Whatever begins elsewhere is shown here too.
  const key = `${step} ${busy}`;
  if (busy && key !== seen) here = step;
  seen = key;
  const [title, text, look] = STEPS[here - 1];
  put("tour-title", title);
  put("tour-text", text);
  put("tour-look", look);
  const mine = step === here;
  put("tour-says", mine ? says ?? "" : "");
  const missed = mine && !busy && (says ?? "").startsWith("this did not go");
  by("tour-says").className = !mine || !says ? "" : busy ? "busy" : missed ? "missed" : "seen";
  by("tour-go").disabled = busy || !state.ready || !online;
  put("tour-go", busy && mine ? "Under way" : done.includes(here) ? "Show me again" : "Show me");
  const onwards = !busy && mine && done.includes(here) && here < STEPS.length;
  by("tour-next").classList.toggle("main", onwards);
  by("tour-go").classList.toggle("main", !onwards);
  [...by("tour-steps").children].forEach(({ firstChild: button }, n) => {
    button.classList.toggle("done", done.includes(n + 1));
    if (n + 1 === here) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  });
}

function put(id, text) {
  if (by(id).textContent !== text) by(id).textContent = text;
}
