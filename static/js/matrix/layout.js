// Where everything of a matrix stands in its box. It is worked out before anything is drawn, so
// that the first look and Plotly, which come one after the other, put the cells in the same place.

import { labelPixels, thinned, ticksOf, written } from "./ticks.js";
import { isNarrow } from "./view.js";

const LEAST_CELL_PIXELS = 12;
const EDGE = 8;
const ink = document.createElement("canvas").getContext("2d");

// Fits the layout of a figure, whose fonts have their size, to a box of this width and height.
export function fit(layout, payload, room) {
  const factor = layout.font.size / 12;
  if (isNarrow.matches) makeNarrow(layout);
  else {
    lay(layout, payload, room);
    for (const { title } of axesOf(layout)) title.standoff = 8 * factor + (factor > 1 ? 6 : 0);
  }
  if (room.height < 480 * factor && !isNarrow.matches) layout.yaxis.title.text = titleWord(layout.yaxis);
  layout.margin = marginsOf(layout, payload, room);
  for (const [name, { labels }] of [["xaxis", payload.columns], ["yaxis", payload.rows]]) {
    Object.assign(layout[name], { minallowed: -0.5, maxallowed: labels.length - 0.5 });
    const { start, length } = spanOf(layout, name, room);
    shorten(layout, name, start + length / 2, name === "xaxis" ? room.width : room.height);
    if (isNarrow.matches) startNear(layout[name], length);
    const cellPixels = length / Math.abs(layout[name].range[1] - layout[name].range[0]);
    Object.assign(layout[name], thinned(ticksOf(payload, name), labelPixels(name, layout) / cellPixels));
  }
}

// Heads of columns lie flat where all of them fit, and else slant.
function lay(layout, payload, room) {
  const { font, xaxis, xaxis2 } = layout;
  const each = (xaxis.domain[1] - xaxis.domain[0]) * (room.width - 2 * widest(font, payload.rows.labels));
  const isFlat = widest(font, payload.columns.labels) + font.size < each / payload.columns.labels.length;
  if (isFlat) xaxis.tickangle = xaxis2.tickangle = 0;
}

function axesOf({ xaxis, yaxis }) {
  return [xaxis, yaxis];
}

const NARROW_TEXT = 11;
const LEAST_TICK_SHARE = 0.22;

// A telephone has room for short labels, for both directions in one line, and for the colour bar below.
function makeNarrow(layout) {
  const [across, down] = axesOf(layout).map(titleWord);
  layout.font.size = Math.min(layout.font.size, NARROW_TEXT);
  const directions = { text: `${down} ↓ ${across} →`, standoff: 6 };
  Object.assign(layout.xaxis, { domain: [0, 0.93], tickangle: -90, title: directions });
  Object.assign(layout.yaxis, { domain: [0.06, 1], title: { text: "", standoff: 0 } });
  Object.assign(layout.xaxis2, { domain: [0.95, 1], tickangle: -90 });
  Object.assign(layout.yaxis2, { domain: [0, 0.045], ticktext: ["mean"] });
  const bar = layout.coloraxis.colorbar;
  const title = { ...bar.title, side: "right" };
  Object.assign(bar, { orientation: "h", y: -0.02, yanchor: "top", x: 0.4, xanchor: "center", thickness: 10, title });
  thinTicks(bar);
}

// Labels of the bar lie flat: those between both ends that would run into another one are left out.
function thinTicks(bar) {
  const [first, last] = [bar.tickvals[0], bar.tickvals.at(-1)];
  const least = LEAST_TICK_SHARE * (last - first);
  let before = first;
  const kept = bar.tickvals.map((value) => {
    if (value !== first && value !== last && (value - before < least || last - value < least)) return false;
    before = value;
    return true;
  });
  const [tickvals, ticktext] = [bar.tickvals, bar.ticktext].map((all) => all.filter((_, at) => kept[at]));
  Object.assign(bar, { tickangle: 0, tickvals, ticktext });
}

// It begins with as many cells as can be told apart: mostly all; the rest is a drag away.
function startNear(axis, length) {
  const count = Math.min(axis.maxallowed + 0.5, Math.max(3, Math.floor(length / LEAST_CELL_PIXELS)));
  axis.range = axis.range[0] < axis.range[1] ? [-0.5, count - 0.5] : [count - 0.5, -0.5];
}

// "from (source endpoint, all DATADISK)": the direction is what cannot be left out.
function titleWord(axis) {
  return axis.title.text.split(" ")[0];
}

// A title is in the middle of its axis, and may be as wide as leaves it in the box.
function shorten({ font, ...axes }, name, middle, end) {
  const axis = axes[name];
  const isWide = () => 1.2 * widest(font, [axis.title.text]) > 2 * Math.min(middle, end - middle) - EDGE;
  if (isWide()) axis.title.text = titleWord(axis);
}

function marginsOf(layout, payload, { width }) {
  const { font, xaxis, yaxis, xaxis2, yaxis2 } = layout;
  const line = 1.3 * font.size;
  const titles = 1.2 * line;
  const rows = widest(font, [...ticksOf(payload, "yaxis").ticktext, ...yaxis2.ticktext]);
  const columns = widest(font, [...ticksOf(payload, "xaxis").ticktext, ...xaxis2.ticktext]);
  const angle = (-xaxis.tickangle * Math.PI) / 180;
  const beside = columns * Math.cos(angle) + line;
  const l = EDGE + (yaxis.title.text ? titles : 0) + yaxis.title.standoff + rows + yaxis.ticklabelstandoff + 3;
  const t = EDGE + titles + xaxis.title.standoff + columns * Math.sin(angle) + line * Math.cos(angle) + 8;
  const bar = isNarrow.matches ? 0 : barWidth(layout);
  const share = 1 - (xaxis2.domain[0] + xaxis2.domain[1]) / 2;
  const r = Math.max(EDGE, bar, beside - share * (width - l));
  const b = isNarrow.matches ? 40 + 2 * line : EDGE;
  return { l: Math.ceil(l), r: Math.ceil(r), t: Math.ceil(t), b: Math.ceil(b), autoexpand: false };
}

function barWidth({ font, coloraxis: { colorbar: bar } }) {
  const ticks = bar.thickness + 6 + widest(font, bar.ticktext);
  const title = 1.1 * widest(font, bar.title.text.split("<br>"));
  return 2 * bar.xpad + Math.max(ticks, title);
}

// The width in pixels of the widest of some labels, the bold ones allowed for.
function widest(font, labels) {
  ink.font = `${font.size}px ${font.family}`;
  const widthOf = ({ text, isGroup }) => ink.measureText(text).width * (isGroup ? 1.1 : 1);
  return Math.max(0, ...labels.map(written).map(widthOf));
}

// Where an axis begins and how long it is, in pixels of the box, from its left or its top.
export function spanOf(layout, name, { width, height }) {
  const { l, r, t, b } = layout.margin;
  const [low, high] = layout[name].domain;
  const isAcross = name.startsWith("x");
  const whole = Math.max(1, isAcross ? width - l - r : height - t - b);
  const start = isAcross ? l + low * whole : t + (1 - high) * whole;
  return { start, length: (high - low) * whole };
}
