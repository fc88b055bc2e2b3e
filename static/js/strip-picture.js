// The picture of the strip: bars by the hour or day, ticks by the day, and the chosen window.

import { dayName } from "./time.js";

const NAMES = "http://www.w3.org/2000/svg";
const DAY = 86400e3;
const BARS = 42; // px, above the line of ticks
// Above the bars: where links were down, thick, and below it where they were at risk, thin.
const LANES = [
  { name: "down", y: 0, height: 4 },
  { name: "at-risk", y: 5, height: 2 },
];
const LANE = 8;
const LEAST_LANE = 3;
const TICKS = 16;
const FOOT = 4;
const LEAST_BAR = 2;
const LEAST_MARK = 8;
// A bar of so many of the links that were tested fills the height, so that few failures stay small.
const LEAST_SHARE = 0.05;
const TICK_WIDTH = 52;
const LONG_TICK_WIDTH = 1.5 * TICK_WIDTH;

// `counts` are those of the API, with `first` and `width` in ms; `chosen` is the window, from and to.
export function picture(counts, chosen, width) {
  const step = width / counts.links.length;
  const svg = element("svg", { width, height: BARS + TICKS, "aria-hidden": "true" });
  svg.append(hatch(), ...ticks(counts, step, width), ...lanes(counts, step));
  svg.append(...bars(counts, step), ...mark(counts, chosen, step));
  return svg;
}

function lanes({ down_links: down, at_risk_links: atRisk }, step) {
  const numbers = { down, "at-risk": atRisk };
  return LANES.map(({ name, y, height }) => {
    const rows = rowsOf(numbers[name]).map(([first, past]) => {
      const wide = Math.max((past - first) * step, LEAST_LANE);
      return `M${(first * step).toFixed(2)} ${y}h${wide.toFixed(2)}v${height}h-${wide.toFixed(2)}z`;
    });
    return element("path", { class: name, d: rows.join("") });
  });
}

// The first and one past the last of each row of buckets that have a number.
function rowsOf(numbers) {
  const rows = [];
  for (const [at, number] of numbers.entries()) {
    if (!number) continue;
    if (rows.at(-1)?.[1] === at) rows.at(-1)[1] = at + 1;
    else rows.push([at, at + 1]);
  }
  return rows;
}

function element(name, attributes) {
  const made = document.createElementNS(NAMES, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Slower is told from failed without colour, too.
function hatch() {
  const pattern = element("pattern", { id: "hatch", width: 4, height: 4, patternUnits: "userSpaceOnUse" });
  pattern.append(element("rect", { width: 4, height: 4 }), element("path", { d: "M-1 1 1-1M0 4 4 0M3 5 5 3" }));
  return pattern;
}

// A window that holds all of the strip needs no mark.
function mark({ first, width, links }, [from, to], step) {
  const [low, high] = [from, to].map((time) => between((time - first) / width, 0, links.length) * step);
  if (high <= low || high - low > (links.length - 1) * step) return [];
  const middle = (low + high) / 2;
  const wide = Math.max(high - low, LEAST_MARK);
  const foot = element("rect", { class: "foot", x: middle - wide / 2, y: BARS, width: wide, height: FOOT });
  return [element("rect", { class: "chosen", x: low, y: 0, width: high - low, height: BARS }), foot];
}

export function between(value, least, most) {
  return Math.max(least, Math.min(value, most));
}

// How many links fill the height.
export function fullOf({ links, failing_links: failing, slower_links: slower }) {
  return Math.ceil(Math.max(1, LEAST_SHARE * Math.max(...links), ...failing.map((number, at) => number + slower[at])));
}

// From below: links of conditions, those that were failing and those that were slower.
function bars(counts, step) {
  const { links, failing_links: failing, slower_links: slower } = counts;
  const scale = (BARS - LANE) / fullOf(counts);
  const zeros = links.map(() => 0);
  const tested = links.map((number, at) => (number ? `M${at * step} ${BARS + 0.5}h${step}` : ""));
  return [
    element("path", { class: "tested", d: tested.join("") }),
    element("path", { class: "failing", d: stack(zeros, failing, scale, step) }),
    element("path", { class: "slower", d: stack(failing, slower, scale, step) }),
  ];
}

// `numbers` stand on what is `below`, each `scale` px high.
function stack(below, numbers, scale, step) {
  const wide = Math.max(step - (step > 4 ? 1 : 0), 1).toFixed(2);
  return numbers
    .map((number, at) => {
      if (!number) return "";
      const height = Math.max(number * scale, LEAST_BAR);
      const top = BARS - below[at] * scale - height;
      return `M${(at * step).toFixed(2)} ${top.toFixed(2)}h${wide}v${height.toFixed(2)}h-${wide}z`;
    })
    .join("");
}

// As many days are named as there is room for.
function ticks({ first, width, links }, step, room) {
  const midnight = Math.ceil(first / DAY) * DAY;
  const wide = (DAY / width) * step;
  const every = Math.ceil(TICK_WIDTH / wide);
  const names = [];
  for (let day = 0; midnight + day * DAY < first + width * links.length; day += every) {
    const x = ((midnight - first) / width) * step + day * wide;
    names.push(element("path", { class: "tick", d: `M${x} 0V${BARS + TICKS}` }));
    if (x + TICK_WIDTH > room) break;
    const text = element("text", { x: x + 3, y: BARS + TICKS - 3 });
    text.textContent = dayName(midnight + day * DAY, Math.min(wide * every, room - x) > LONG_TICK_WIDTH);
    names.push(text);
  }
  return names;
}
