// The matrix is drawn by static/js/picture.js; this is what is particular to it: it keeps the place
// that the reader looks at, fits text to cells, and has marks and a card on top.

import { passing } from "../page.js";
import { extend, redrawPictures, relayout } from "../picture.js";
import { hideCard } from "./card.js";
import { isPaintable, paint } from "./glimpse.js";
import { listenToKeys } from "./keys.js";
import { thinLabels } from "./labels.js";
import { fit, spanOf } from "./layout.js";
import { loadCells } from "./loading.js";
import { outline } from "./outlines.js";
import { isZoomed, markCursor, markHot, span } from "./places.js";
import { listenToPointer } from "./pointer.js";
import { isNarrow, isTouched, isWall, view } from "./view.js";

extend("picture", { prepare, after, instead, config: { displayModeBar: false, doubleClick: false } });
isNarrow.addEventListener("change", async () => {
  // A colour bar that comes to lie where it stood leaves its ticks and its margin behind: it goes
  // first.
  if (view.plot) await relayout(view.plot, () => ({ "coloraxis.showscale": false }));
  redrawPictures();
});

// What the numbers of the cells were asked for.
let numbersOf = "";

// While a window is dragged, a large matrix is painted as at first; Plotly draws what stays.
function instead(box, payload) {
  if (!passing.isOn || !isPaintable(box, payload)) return false;
  paint(box, payload, view.glimpse?.payload === payload ? view.glimpse.codes : null);
  return true;
}

function prepare(figure, plot, payload) {
  const { layout } = figure;
  layout.meta = layout.uirevision = payload.arrangement;
  layout.hovermode = false;
  layout.dragmode = isNarrow.matches || isTouched.matches ? "pan" : "zoom";
  const room = { width: plot.clientWidth, height: plot.clientHeight };
  fit(layout, payload, room);
  fitText(figure, room);
  keepPlace(layout, plot);
}

// New data for the same rows and columns are drawn in the part that the reader looks at.
function keepPlace(layout, plot) {
  if (!plot.layout || plot.layout.meta !== layout.meta) return;
  for (const name of ["xaxis", "yaxis"]) {
    const { range, tickvals, ticktext } = plot.layout[name];
    Object.assign(layout[name], { range: [...range], tickvals, ticktext });
  }
}

// Numbers grow with their cells: five digits fit. Where they would be too small to read, cells are
// left without; on a wall are all that would be smaller than the labels.
function fitText({ data, layout }, room) {
  const factor = layout.font.size / 12;
  const [across, down] = ["xaxis", "yaxis"].map((name) => spanOf(layout, name, room).length / span(layout[name]));
  const least = isWall() ? layout.font.size : isNarrow.matches ? LEAST_NARROW : LEAST_TEXT * factor;
  const size = Math.min(15 * factor, across / DIGITS_WIDE, 0.75 * down);
  const isBare = size < least || !data.some(({ texttemplate }) => texttemplate);
  for (const trace of data) {
    if (trace.marker) {
      const { size: given } = trace.marker;
      trace.marker.size = Array.isArray(given) ? given.map((each) => each * factor) : given * factor;
      if (trace.textfont) trace.textfont.size *= factor;
      continue;
    }
    if (trace.textfont) trace.textfont.size = size;
    // The strip of means of rows is as narrow as a label there.
    if (trace.textfont && (isBare || (isNarrow.matches && trace.xaxis === "x2"))) delete trace.texttemplate;
    if (trace.meta?.outline) outline(trace, { wide: across, high: down, factor, isBare });
  }
}

// Four digits and a point are so many times as wide as they are high.
const DIGITS_WIDE = 3.3;
const [LEAST_TEXT, LEAST_NARROW] = [9, 8];

function after(plot, payload) {
  const box = plot.parentElement;
  const before = { ...view };
  const [rows, columns] = [places(payload.rows), places(payload.columns)];
  Object.assign(view, { plot, box, payload, rows, columns, trouble: null, glimpse: null });
  if (!box.querySelector("#card")) furnish(box);
  const isOther = before.box !== box || before.payload.arrangement !== payload.arrangement;
  if (isOther) leaveAll();
  placed();
  box.querySelector(".first-look")?.remove();
  performance.mark("picture-drawn");
  // The numbers of what only passes by are never read.
  if (passing.isOn) return;
  const numbers = `${payload.version} ${payload.cells_url}`;
  if (view.cells && numbersOf === numbers) return;
  numbersOf = numbers;
  loadCells(payload);
}

// What stands on the picture beside what Plotly draws: marks, card, and what is said aloud.
function furnish(box) {
  const extra = document.createElement("template");
  extra.innerHTML =
    '<div class="band" hidden></div><div class="band" hidden></div><div class="cursor" hidden></div>' +
    '<div id="card" hidden></div><p id="said" class="visually-hidden" aria-live="polite"></p>';
  box.append(extra.content);
  view.plot.on("plotly_relayout", placed);
  view.plot.on("plotly_afterplot", placed);
  listenToPointer(box);
  listenToKeys(box);
}

// Other rows and columns: what was pointed at is no more.
function leaveAll() {
  [view.cells, view.cursor, view.pinned] = [null, null, null];
  view.box.querySelector(".cursor").hidden = true;
  hideCard();
}

// Where each row (or column) stands, and which one stands where: -1 for a gap.
function places(side) {
  const byPosition = new Int32Array(side.labels.length).fill(-1);
  side.at.forEach((position, index) => (byPosition[position] = index));
  return { ...side, byPosition, byName: new Map(side.names.map((name, index) => [name, index])) };
}

// After each draw: as many labels as there is room for, and the marks at their cells again.
function placed() {
  if (view.plot.layout.meta !== view.payload.arrangement) return; // being drawn anew
  thinLabels();
  if (view.cursor) markCursor();
  if (view.pinned) markHot(view.pinned);
  const whole = document.getElementById("whole");
  if (whole) whole.disabled = !isZoomed();
}

