// The matrix is drawn by static/js/picture.js; this is what is particular to it: it keeps the place
// that the reader looks at, fits text to cells, and has marks and a card on top.
"use strict";

// What is drawn: the payload of the page, its places by position and name, and Plotly's element.
let matrix = null;
// The numbers of the cells, or null while they are on their way.
let cells = null;
// The cell of the keyboard, the cell whose card is held, what the card is about, and where a
// button went down.
let cursor = null;
let pinned = null;
let hovered = null;
let pressed = null;
const isNarrow = matchMedia("(max-width: 600px)");
const isTouched = matchMedia("(pointer: coarse)");

special.picture = { prepare, after, config: { displayModeBar: false, doubleClick: false } };
isNarrow.addEventListener("change", async () => {
  // A colour bar that comes to lie where it stood leaves its ticks and its margin behind: it goes first.
  if (matrix) await relayout(matrix.plot, () => ({ "coloraxis.showscale": false }));
  redrawPictures();
});

function prepare(figure, plot, payload) {
  const layout = figure.layout;
  layout.meta = layout.uirevision = payload.arrangement;
  layout.hovermode = false;
  layout.dragmode = isNarrow.matches || isTouched.matches ? "pan" : "zoom";
  for (const [name, places] of [["xaxis", payload.columns], ["yaxis", payload.rows]]) {
    Object.assign(layout[name], { minallowed: -0.5, maxallowed: places.labels.length - 0.5 });
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
  const before = matrix;
  matrix = { plot, payload, box, rows: places(payload.rows), columns: places(payload.columns) };
  if (!box.querySelector("#card")) furnish(box);
  const isOther = before?.box !== box || before.payload.arrangement !== payload.arrangement;
  if (isOther) leaveAll();
  if (isOther && isNarrow.matches) startNarrow(plot);
  placed();
  performance.mark("picture-drawn");
  if (!cells || before.payload.version !== payload.version || before.payload.cells_url !== payload.cells_url) loadCells(payload);
}

// What stands on the picture beside what Plotly draws: marks, card, and what is said aloud.
function furnish(box) {
  const extra = document.createElement("template");
  extra.innerHTML = '<div class="band" hidden></div><div class="band" hidden></div><div class="cursor" hidden></div><div id="card" hidden></div><p id="said" class="visually-hidden" aria-live="polite"></p>';
  box.append(extra.content);
  matrix.plot.on("plotly_relayout", placed);
  matrix.plot.on("plotly_afterplot", placed);
  listenToPointer(box);
  listenToKeys(box);
}

// Other rows and columns: what was pointed at is no more.
function leaveAll() {
  [cells, cursor, pinned] = [null, null, null];
  matrix.box.querySelector(".cursor").hidden = true;
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
  if (matrix.plot.layout.meta !== matrix.pages.matrix.payload.arrangement) return; // being drawn anew
  thinLabels();
  if (cursor) markCursor();
  if (pinned) markHot(pinned);
  const whole = document.getElementById("whole");
  if (whole) whole.disabled = !isZoomed();
}

function isZoomed() {
  const { xaxis, yaxis } = matrix.plot.layout;
  return span(xaxis) < matrix.pages.matrix.payload.columns.labels.length - 0.01 || span(yaxis) < matrix.pages.matrix.payload.rows.labels.length - 0.01;
}

function span(axis) {
  return Math.abs(axis.range[1] - axis.range[0]);
}
