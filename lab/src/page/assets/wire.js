// What the page knows: the snapshot, kept up to date by changes, and deeds.

export const state = { run: "", at_ms: 0, ready: false, film: { layers: [] }, nodes: {}, viewers: {}, links: {}, log: [], tour: { done: [] } };
const MAX_LINES = 120;
const worker = new Worker("/socket.js");
let told = null;

/** Calls back with each change: `line`, `change` and `picture`. */
export function listen({ line, change, picture }) {
  worker.onmessage = ({ data }) => {
    if ("line" in data) line(data.line);
    else if ("delta" in data) change(apply(data.delta));
    else picture(data.name, data.picture);
  };
}

/** Whose pictures are wanted. */
export function watch(names) {
  worker.postMessage(names);
}

function apply(delta) {
  if (delta.whole) {
    Object.assign(state, delta.whole);
    return { anew: true, flights: [], lines: state.log };
  }
  state.at_ms = delta.at_ms;
  state.ready = delta.ready;
  for (const kind of ["nodes", "viewers", "links"]) {
    for (const [name, value] of Object.entries(delta[kind])) {
      if (value === null) delete state[kind][name];
      else state[kind][name] = value;
    }
  }
  state.log.push(...delta.log);
  state.log.splice(0, Math.max(0, state.log.length - MAX_LINES));
  if (delta.tour) state.tour = delta.tour;
  return { anew: false, flights: delta.flights, lines: delta.log };
}

/** Asks for a deed; what speaks against it is shown for a moment. */
export async function act(deed) {
  let why = "";
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/deed", { method: "POST", headers, body: JSON.stringify(deed) });
    if (!answer.ok) why = (await answer.text()).trim();
  } catch {
    why = "the demonstration is not there";
  }
  if (why) tell(why);
  return why === "";
}

function tell(text) {
  const place = document.getElementById("told");
  place.textContent = text;
  clearTimeout(told);
  told = setTimeout(() => { place.textContent = ""; }, 4000);
}

/** An element with attributes and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Seconds with one digit. */
export const seconds = (ms) => (ms / 1000).toFixed(1);
/** A layer's name in a sentence. */
export const proper = (name) => name.charAt(0).toUpperCase() + name.slice(1);
