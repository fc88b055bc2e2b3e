// Labels of rows and columns: as many as there is room for, shorter on a telephone.

import { relayout } from "../picture.js";
import { sizeOf, span } from "./places.js";
import { isNarrow, view } from "./view.js";

// Room for one label: rows lie flat, columns stand at 40 degrees.
const LABEL_PIXELS = { yaxis: 15, xaxis: 23 };
const LEAST_CELL_PIXELS = 26;
const NARROW_LABEL = 12;
let isThinning = false;

// A thousand labels cost seconds to draw: leave most out before, by a guess at their room.
export function thinBefore(layout, plot, payload) {
  const room = { xaxis: plot.clientWidth - 360, yaxis: plot.clientHeight - 200 };
  for (const name of ["xaxis", "yaxis"]) {
    const cellPixels = Math.max(room[name], 50) / span(layout[name]);
    Object.assign(layout[name], thinned(ticksOf(payload, name), labelPixels(name, layout) / cellPixels));
  }
}

// Shows every label where there is room, else every second, third and so on, but names of
// groups before others.
export async function thinLabels() {
  if (isThinning) return;
  const changes = {};
  for (const name of ["xaxis", "yaxis"]) {
    const axis = view.plot._fullLayout[name];
    const cellsPerLabel = labelPixels(name, view.plot.layout) / sizeOf(axis);
    const { tickvals, ticktext } = thinned(ticksOf(view.payload, name), cellsPerLabel);
    if (view.plot.layout[name].tickvals.length === tickvals.length) continue;
    Object.assign(changes, { [`${name}.tickvals`]: tickvals, [`${name}.ticktext`]: ticktext });
  }
  if (!Object.keys(changes).length) return;
  // Other labels leave other margins, which may have room for others again: once is enough.
  isThinning = true;
  await relayout(view.plot, () => changes);
  isThinning = false;
}

// Returns the ticks of an axis of which one label needs the room of so many cells.
function thinned({ tickvals, ticktext }, cellsPerLabel) {
  const step = Math.max(1, Math.ceil(cellsPerLabel));
  const isGroup = (at) => ticktext[at].startsWith("<b>");
  const groups = tickvals.filter((_, at) => isGroup(at));
  const isFree = (place) => step === 1 || groups.every((group) => Math.abs(group - place) >= step);
  const kept = [...tickvals.keys()].filter((at) => isGroup(at) || (tickvals[at] % step === 0 && isFree(tickvals[at])));
  return { tickvals: kept.map((at) => tickvals[at]), ticktext: kept.map((at) => ticktext[at]) };
}

function labelPixels(name, layout) {
  return (LABEL_PIXELS[name] * layout.font.size) / 12;
}

// All ticks of an axis; in the payload itself nothing is changed, for the screen may be turned.
function ticksOf(payload, name) {
  const { tickvals, ticktext } = payload.figure.layout[name];
  if (!isNarrow.matches) return { tickvals, ticktext };
  payload.short ??= {};
  payload.short[name] ??= shortened(ticktext);
  return { tickvals, ticktext: payload.short[name] };
}

// Labels are cut in the middle, at the place that leaves most of them distinct. They are HTML of
// Plotly's kind.
function shortened(labels) {
  const cuts = [3, 5, 7, 9].map((tail) => labels.map((label) => shorter(label, tail)));
  const distinct = cuts.map((texts) => new Set(texts).size);
  return cuts[distinct.indexOf(Math.max(...distinct))];
}

function shorter(label, tail) {
  const [, before, html, behind] = label.match(/^(<b>)?(.*?)(<\/b>)?$/s);
  const text = unescaped(html);
  if (text.length <= NARROW_LABEL) return label;
  return `${before ?? ""}${escaped(`${text.slice(0, NARROW_LABEL - 1 - tail)}…${text.slice(-tail)}`)}${behind ?? ""}`;
}

function unescaped(html) {
  const marks = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" };
  return html.replaceAll(/&(lt|gt|quot|#x27|amp);/g, (entity) => marks[entity]);
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

// A telephone has room for short labels, and for the colour bar below.
export function makeNarrow({ data, layout }) {
  const [across, down] = [layout.xaxis, layout.yaxis].map(titleWord);
  Object.assign(layout.xaxis, { domain: [0, 0.86], tickangle: -90, title: { text: across, standoff: 6 } });
  Object.assign(layout.yaxis, { domain: [0.07, 1], title: { text: down, standoff: 2 } });
  Object.assign(layout.xaxis2, { domain: [0.88, 1], tickangle: -90 });
  Object.assign(layout.yaxis2, { domain: [0, 0.05], ticktext: ["mean"] });
  const bar = layout.coloraxis.colorbar;
  const title = { ...bar.title, side: "right" };
  Object.assign(bar, { orientation: "h", y: -0.02, yanchor: "top", x: 0.4, thickness: 10, title });
  for (const trace of data) if (trace.textfont) trace.textfont.size = 10;
}

// "from (source endpoint, all DATADISK)": the direction is what cannot be left out.
export function titleWord(axis) {
  return axis.title.text.split(" ")[0];
}

// It begins with as many cells as can be told apart; the rest is a drag away.
export function startNarrow(plot) {
  return relayout(plot, () => {
    const { xaxis, yaxis } = plot._fullLayout;
    const [across, down] = [xaxis, yaxis].map((axis) => Math.min(span(axis), cellsOnScreen(axis)));
    return { "xaxis.range": [-0.5, across - 0.5], "yaxis.range": [down - 0.5, -0.5] };
  });
}

function cellsOnScreen(axis) {
  return Math.max(3, Math.floor(axis._length / LEAST_CELL_PIXELS));
}
