// Shapes: each level and each traveller has one of its own, so that nothing is said
// by colour alone.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and children. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function polygon(corners, radius, turn) {
  const points = Array.from({ length: corners }, (_, n) => {
    const angle = turn + (n * 2 * Math.PI) / corners;
    return `${(radius * Math.cos(angle)).toFixed(1)},${(radius * Math.sin(angle)).toFixed(1)}`;
  });
  return draw("polygon", { points: points.join(" "), "stroke-linejoin": "round" });
}

/** The outline of a level at this size. */
export function outline(level, size) {
  switch (level) {
    case "origin": return draw("rect", { x: -size, y: -size, width: 2 * size, height: 2 * size, rx: size / 3 });
    case "base": return draw("circle", { r: size });
    case "enh1": return polygon(6, size * 1.12, 0);
    case "proxy": return draw("rect", { x: -size * 1.9, y: -size * 0.85, width: size * 3.8, height: size * 1.7, rx: size * 0.85 });
    case "viewer": return draw("rect", { x: -size * 1.9, y: -size * 0.9, width: size * 3.8, height: size * 1.8, rx: size * 0.3 });
    default: return polygon(4, size * 1.25, 0);
  }
}

/** What travels: chunks as small signs of their level, agents as signs of their own. */
export function traveller(what) {
  const sign = {
    search: () => polygon(3, 11, -Math.PI / 2),
    placement: () => draw("rect", { x: -8, y: -8, width: 16, height: 16 }),
    discovery: () => draw("path", { d: "M0-10a10 10 0 1 0 .01 0zM0-4a4 4 0 1 1-.01 0z", "fill-rule": "evenodd" }),
    failure: () => draw("path", { d: "M-9-5-5-9 0-4 5-9 9-5 4 0 9 5 5 9 0 4-5 9-9 5-4 0z" }),
    return: () => draw("path", { d: "M-3-10h6v7h7v6h-7v7h-6v-7h-7v-6h7z" }),
  }[what] ?? (() => outline(what, 7));
  const element = sign();
  element.classList.add("flight", what);
  return element;
}

const LEGEND = [
  ["way base", "Base"], ["way enh1", "Enh1"], ["way enh2", "Enh2"], ["way standby", "stands behind"],
  ["way standby hot", "behind a VIP"], ["search", "search for slots"], ["discovery", "search for a backup"],
  ["placement", "placement"], ["failure", "news of a death"],
];

/** The legend's lines. */
export function legend(list) {
  for (const [kind, text] of LEGEND) {
    const picture = draw("svg", { viewBox: "-13 -7 26 14", "aria-hidden": "true" });
    picture.append(kind.startsWith("way")
      ? draw("path", { class: kind, d: "M-13 0H13" })
      : traveller(kind));
    const item = document.createElement("li");
    item.append(picture, text);
    list.append(item);
  }
}
