// Which labels of rows and columns are shown, and how they are written. They are HTML of Plotly's kind.

import { isNarrow } from "./view.js";

// Room for one label: rows lie flat, columns stand at 40 degrees, or upright on a telephone.
const LABEL_PIXELS = { yaxis: 15, xaxis: 23 };
const UPRIGHT = 13;
const NARROW_LABEL = 10;

// Returns the ticks of an axis of which one label needs the room of so many cells: every label where
// there is room, else every second, third and so on, but those with the name of a group before others.
export function thinned({ tickvals, ticktext }, cellsPerLabel) {
  const step = Math.max(1, Math.ceil(cellsPerLabel));
  const isGroup = (at) => ticktext[at].includes("<b>");
  const groups = tickvals.filter((_, at) => isGroup(at));
  const isFree = (place) => step === 1 || groups.every((group) => Math.abs(group - place) >= step);
  const kept = [...tickvals.keys()].filter((at) => isGroup(at) || (tickvals[at] % step === 0 && isFree(tickvals[at])));
  return { tickvals: kept.map((at) => tickvals[at]), ticktext: kept.map((at) => ticktext[at]) };
}

export function labelPixels(name, layout) {
  const pixels = isNarrow.matches ? UPRIGHT : LABEL_PIXELS[name];
  return (pixels * layout.font.size) / 12;
}

// All ticks of an axis; in the payload itself nothing is changed, for the screen may be turned.
export function ticksOf(payload, name) {
  const { tickvals, ticktext } = payload.figure.layout[name];
  if (!isNarrow.matches) return { tickvals, ticktext };
  payload.short ??= {};
  payload.short[name] ??= shortened(ticktext);
  return { tickvals, ticktext: payload.short[name] };
}

// Labels are cut in the middle, at the place that leaves most of them distinct.
function shortened(labels) {
  const cuts = [3, 5, 7].map((tail) => labels.map((label) => shorter(label, tail)));
  const distinct = cuts.map((texts) => new Set(texts).size);
  return cuts[distinct.indexOf(Math.max(...distinct))];
}

function shorter(label, tail) {
  const [, before, html, behind] = label.match(/^(<b>.*<\/b> )?(.*?)( <b>.*<\/b>)?$/s);
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

// A label as it is read: its text, and whether it has the name of a group.
export function written(label) {
  return { isGroup: label.includes("<b>"), text: unescaped(label.replaceAll(/<\/?b>/g, "")) };
}
