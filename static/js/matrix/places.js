// From pixels to cells and back, and the marks of row, column and cursor.

import { view } from "./view.js";

// How far a head of a column reaches to the right for each pixel up.
function slantOf({ tickangle }) {
  return tickangle ? 1 / Math.tan((-tickangle * Math.PI) / 180) : 0;
}

export function pixelsOf({ row, column }) {
  const { xaxis, yaxis } = view.plot._fullLayout;
  const box = view.plot.getBoundingClientRect();
  const [x, y] = [view.columns.at[column], view.rows.at[row]];
  const left = xaxis.l2p(x - 0.5);
  const top = yaxis.l2p(y - 0.5);
  return {
    left: box.left + xaxis._offset + left,
    top: box.top + yaxis._offset + top,
    width: xaxis.l2p(x + 0.5) - left,
    height: yaxis.l2p(y + 0.5) - top,
  };
}

// Returns the cell under a point, or only its row or column on a label or an average, {} on the
// average of all, or null.
export function placeAt(event) {
  const { xaxis, yaxis, xaxis2, yaxis2 } = view.plot._fullLayout;
  const box = view.plot.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const above = yaxis._offset - y;
  const inRows = above <= 0 && -above <= yaxis._length;
  const inColumns = x >= xaxis._offset && x <= xaxis._offset + xaxis._length;
  const row = inRows ? indexAt(view.rows, yaxis, y) : undefined;
  if (inRows && inColumns) return cellIn(row, indexAt(view.columns, xaxis, x));
  if (inRows && (x < xaxis._offset || within(xaxis2, x))) return row === undefined ? null : { row };
  if (above > 0) return labelled(indexAt(view.columns, xaxis, x - above * slantOf(xaxis)));
  if (within(yaxis2, y) && inColumns) return labelled(indexAt(view.columns, xaxis, x));
  return within(yaxis2, y) && within(xaxis2, x) ? {} : null;
}

function cellIn(row, column) {
  return row === undefined || column === undefined ? null : { row, column };
}

function labelled(column) {
  return column === undefined ? null : { column };
}

function within(axis, pixels) {
  return pixels >= axis._offset && pixels <= axis._offset + axis._length;
}

function indexAt(side, axis, pixels) {
  const index = within(axis, pixels) ? side.byPosition[Math.round(axis.p2l(pixels - axis._offset))] : undefined;
  return index === -1 ? undefined : index;
}

export function markHot(place) {
  const [across, down] = view.box.querySelectorAll(".band");
  const { xaxis, yaxis, xaxis2, yaxis2 } = view.plot._fullLayout;
  const [x, y] = [view.columns.at[place?.column], view.rows.at[place?.row]];
  across.hidden = y === undefined;
  down.hidden = x === undefined;
  const { _offset: left } = xaxis;
  const { _offset: top } = yaxis;
  if (y !== undefined) lay(across, left, offsetOf(yaxis, y), endOf(xaxis2) - left, sizeOf(yaxis));
  if (x !== undefined) lay(down, offsetOf(xaxis, x), top, sizeOf(xaxis), endOf(yaxis2) - top);
  markLabel("x", x);
  markLabel("y", y);
}

function offsetOf(axis, position) {
  return axis._offset + axis.l2p(position - 0.5);
}

function endOf(axis) {
  return axis._offset + axis._length;
}

export function sizeOf(axis) {
  return axis._length / span(axis);
}

function lay(mark, left, top, width, height) {
  const transform = `translate(${left}px, ${top}px)`;
  Object.assign(mark.style, { transform, width: `${width}px`, height: `${height}px` });
}

function markLabel(letter, position) {
  for (const text of view.plot.querySelectorAll(`.${letter}axislayer-above text.hot`)) text.classList.remove("hot");
  if (position === undefined) return;
  for (const tick of view.plot.querySelectorAll(`.${letter}axislayer-above .${letter}tick`)) {
    if (tick.__data__?.x === position) tick.querySelector("text")?.classList.add("hot");
  }
}

export function markCursor() {
  const mark = view.box.querySelector(".cursor");
  mark.hidden = !view.cursor;
  if (!view.cursor) return;
  const { xaxis, yaxis } = view.plot._fullLayout;
  const [x, y] = [view.columns.at[view.cursor.column], view.rows.at[view.cursor.row]];
  lay(mark, offsetOf(xaxis, x), offsetOf(yaxis, y), sizeOf(xaxis), sizeOf(yaxis));
  markHot(view.cursor);
}

// How many cells an axis shows.
export function span(axis) {
  return Math.abs(axis.range[1] - axis.range[0]);
}

export function isZoomed() {
  const { xaxis, yaxis } = view.plot.layout;
  const [across, down] = [view.payload.columns, view.payload.rows].map((side) => side.labels.length);
  return span(xaxis) < across - 0.01 || span(yaxis) < down - 0.01;
}
