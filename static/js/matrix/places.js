// From pixels to cells and back, and the marks of row, column and cursor.
"use strict";

const SLANT = Math.tan((40 * Math.PI) / 180);

function pixelsOf({ row, column }) {
  const { xaxis, yaxis } = matrix.plot._fullLayout;
  const box = matrix.plot.getBoundingClientRect();
  const [x, y] = [matrix.columns.at[column], matrix.rows.at[row]];
  const left = xaxis.l2p(x - 0.5);
  const top = yaxis.l2p(y - 0.5);
  return { left: box.left + xaxis._offset + left, top: box.top + yaxis._offset + top, width: xaxis.l2p(x + 0.5) - left, height: yaxis.l2p(y + 0.5) - top };
}

// Returns the cell under a point, or only its row or column on a label or an average, {} on the
// average of all, or null.
function placeAt(event) {
  const { xaxis, yaxis, xaxis2, yaxis2 } = matrix.plot._fullLayout;
  const box = matrix.plot.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const above = yaxis._offset - y;
  const inRows = above <= 0 && -above <= yaxis._length;
  const inColumns = x >= xaxis._offset && x <= xaxis._offset + xaxis._length;
  const row = inRows ? indexAt(matrix.rows, yaxis, y) : undefined;
  if (inRows && inColumns) return cellIn(row, indexAt(matrix.columns, xaxis, x));
  if (inRows && (x < xaxis._offset || within(xaxis2, x))) return row === undefined ? null : { row };
  if (above > 0) return labelled(indexAt(matrix.columns, xaxis, x - above / SLANT));
  if (within(yaxis2, y) && inColumns) return labelled(indexAt(matrix.columns, xaxis, x));
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

function markHot(place) {
  const [across, down] = matrix.box.querySelectorAll(".band");
  const { xaxis, yaxis, xaxis2, yaxis2 } = matrix.plot._fullLayout;
  across.hidden = place?.row === undefined;
  down.hidden = place?.column === undefined;
  if (place?.row !== undefined) band(across, xaxis._offset, offsetOf(yaxis, matrix.rows.at[place.row]), endOf(xaxis2) - xaxis._offset, sizeOf(yaxis));
  if (place?.column !== undefined) band(down, offsetOf(xaxis, matrix.columns.at[place.column]), yaxis._offset, sizeOf(xaxis), endOf(yaxis2) - yaxis._offset);
  markLabel("x", place?.column === undefined ? null : matrix.columns.at[place.column]);
  markLabel("y", place?.row === undefined ? null : matrix.rows.at[place.row]);
}

function offsetOf(axis, position) {
  return axis._offset + axis.l2p(position - 0.5);
}

function endOf(axis) {
  return axis._offset + axis._length;
}

function sizeOf(axis) {
  return axis._length / span(axis);
}

function band(element, left, top, width, height) {
  Object.assign(element.style, { transform: `translate(${left}px, ${top}px)`, width: `${width}px`, height: `${height}px` });
}

function markLabel(letter, position) {
  for (const text of matrix.plot.querySelectorAll(`.${letter}axislayer-above text.hot`)) text.classList.remove("hot");
  if (position === null) return;
  for (const tick of matrix.plot.querySelectorAll(`.${letter}axislayer-above .${letter}tick`)) {
    if (tick.__data__?.x === position) tick.querySelector("text")?.classList.add("hot");
  }
}

function markCursor() {
  const mark = matrix.box.querySelector(".cursor");
  mark.hidden = !cursor;
  if (!cursor) return;
  const { xaxis, yaxis } = matrix.plot._fullLayout;
  band(mark, offsetOf(xaxis, matrix.columns.at[cursor.column]), offsetOf(yaxis, matrix.rows.at[cursor.row]), sizeOf(xaxis), sizeOf(yaxis));
  markHot(cursor);
}
