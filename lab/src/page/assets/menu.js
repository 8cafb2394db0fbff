// The menu of what can be done to a node, a viewer or a link.

import { state, act, make } from "./wire.js";
import { duties, linksOf } from "./map.js";

const menu = document.getElementById("menu");
let back = null;
let within = false;

const CONDITIONS = [["open", "Open"], ["slow", "Slow: 150 ms each way"], ["narrow", "Narrow: little more than Base"], ["cut", "Cut"]];

/** Opens the menu of something beside its element. */
export function openMenu(kind, name, element) {
  back = element;
  const lines = { node: nodeLines, viewer: viewerLines, link: linkLines }[kind](name);
  menu.replaceChildren(...lines);
  menu.hidden = false;
  const box = element.getBoundingClientRect();
  const [x, y] = kind === "link"
    ? [box.left + box.width / 2, box.top + box.height / 2]
    : [box.right + 8, box.top - 8];
  menu.style.left = `${Math.max(8, Math.min(x, innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(y, innerHeight - menu.offsetHeight - 8))}px`;
  menu.querySelector("button")?.focus();
  within = true;
}

function close(giveBack) {
  if (menu.hidden) return;
  menu.hidden = true;
  if (giveBack && back?.isConnected) back.focus?.();
}

const line = (text, attributes, run) =>
  make("button", { role: "menuitem", ...attributes, onclick: () => { close(true); run(); } }, text);

function head(title, text) {
  return [make("h3", {}, title), make("p", {}, text)];
}

function nodeLines(name) {
  const node = state.nodes[name];
  const life = { up: "runs", hung: "hangs", dead: "is dead", starting: "is being started" }[node.life];
  const lines = head(name, `${life}; ${duties(name)}`);
  if (node.life === "up") {
    lines.push(line("Kill (power cut)", { "data-do": "kill" }, () => act({ deed: "kill", node: name })));
    lines.push(line("Hang (says nothing)", { "data-do": "hang" }, () => act({ deed: "hang", node: name })));
  }
  if (node.life === "hung" || node.life === "dead") {
    lines.push(line("Revive", { "data-do": "revive" }, () => act({ deed: "revive", node: name })));
  }
  return [...lines, ...links(name)];
}

function viewerLines(name) {
  const viewer = state.viewers[name];
  const lines = head(name, `${viewer.vip ? "a VIP" : "a normal viewer"} who wants ${viewer.wants}`);
  lines.push(line(viewer.vip ? "Make a normal viewer" : "Make a VIP", { "data-do": "vip" },
    () => act({ deed: "change_viewer", viewer: name, vip: !viewer.vip })));
  lines.push(line("Leaves", { "data-do": "leave" }, () => act({ deed: "remove_viewer", viewer: name })));
  return [...lines, ...links(name)];
}

function links(name) {
  return linksOf(name).map((other) => {
    const link = [name, other].sort().join("|");
    return line(`Link to ${other} …`, {}, () => openMenu("link", link, back));
  });
}

function linkLines(link) {
  const [one, other] = link.split("|");
  const now = state.links[link]?.condition ?? "open";
  return [
    ...head("Link", `between ${one} and ${other}`),
    ...CONDITIONS.map(([condition, text]) => line(text, { class: condition === now ? "now" : "", "data-do": condition },
      () => act({ deed: "link", one, other, condition }))),
  ];
}

menu.addEventListener("keydown", (event) => {
  const all = [...menu.querySelectorAll("button")];
  const here = all.indexOf(document.activeElement);
  const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to !== undefined) {
    all.at(to % all.length).focus();
    event.preventDefault();
  }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(true); });
document.addEventListener("click", (event) => {
  // The click that opened it comes here too.
  if (!within && !menu.contains(event.target)) close(false);
  within = false;
});
