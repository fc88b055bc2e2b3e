// The matrix is drawn by static/js/picture.js; this is what is particular to it: it keeps the place
// that the reader looks at, fits text to cells, and has marks and a card on top.

import { extend, redrawPictures, relayout } from "../picture.js";
import { hideCard } from "./card.js";
import { listenToKeys } from "./keys.js";
import { makeNarrow, startNarrow, thinBefore, thinLabels, titleWord } from "./labels.js";
import { loadCells } from "./loading.js";
import { markCursor, markHot, span } from "./places.js";
import { listenToPointer } from "./pointer.js";
import { isNarrow, isTouched, view } from "./view.js";

extend("picture", { prepare, after, config: { displayModeBar: false, doubleClick: false } });
isNarrow.addEventListener("change", async () => {
  // A colour bar that comes to lie where it stood leaves its ticks and its margin behind: it goes
  // first.
  if (view.plot) await relayout(view.plot, () => ({ "coloraxis.showscale": false }));
  redrawPictures();
});

function prepare(figure, plot, payload) {
  const layout = figure.layout;
  layout.meta = layout.uirevision = payload.arrangement;
  layout.hovermode = false;
  layout.dragmode = isNarrow.matches || isTouched.matches ? "pan" : "zoom";
  for (const [name, { labels }] of [["xaxis", payload.columns], ["yaxis", payload.rows]]) {
    Object.assign(layout[name], { minallowed: -0.5, maxallowed: labels.length - 0.5 });
  }
  thinBefore(layout, plot, payload);
  fitText(figure, plot, payload);
  if (isNarrow.matches) makeNarrow(figure);
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

// Numbers grow with their cells: five digits fit. Rows too low for any are left without.
function fitText(figure, plot, payload) {
  const factor = figure.layout.font.size / 12;
  const across = (plot.clientWidth - 300 * factor) / (payload.columns.labels.length + 1);
  const down = (plot.clientHeight - 170 * factor) / (payload.rows.labels.length + 1);
  const size = Math.min(15 * factor, Math.max(10 * factor, across / 4.3), 0.8 * down);
  for (const trace of figure.data) {
    if (trace.textfont) trace.textfont.size = size;
    if (trace.textfont && size < LEAST_TEXT) delete trace.texttemplate;
    if (trace.marker) trace.marker.size *= factor;
  }
  const { xaxis, yaxis } = figure.layout;
  for (const { title } of [xaxis, yaxis]) title.standoff = 8 * factor + (factor > 1 ? 6 : 0);
  if (plot.clientHeight < 480 * factor) yaxis.title.text = titleWord(yaxis);
}

const LEAST_TEXT = 8;

function after(plot, payload) {
  const box = plot.parentElement;
  const before = { ...view };
  const [rows, columns] = [places(payload.rows), places(payload.columns)];
  Object.assign(view, { plot, box, payload, rows, columns, trouble: null });
  if (!box.querySelector("#card")) furnish(box);
  const isOther = before.box !== box || before.payload.arrangement !== payload.arrangement;
  if (isOther) leaveAll();
  if (isOther && isNarrow.matches) startNarrow(plot);
  placed();
  performance.mark("picture-drawn");
  const { version, cells_url } = before.payload ?? {};
  if (!view.cells || version !== payload.version || cells_url !== payload.cells_url) loadCells(payload);
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

function isZoomed() {
  const { xaxis, yaxis } = view.plot.layout;
  const [across, down] = [view.payload.columns, view.payload.rows].map((side) => side.labels.length);
  return span(xaxis) < across - 0.01 || span(yaxis) < down - 0.01;
}
