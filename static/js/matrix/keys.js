// The keyboard: a cursor that walks over the cells and brings them into view.
"use strict";

const PAGE = 10;
const MOVES = {
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  Home: ({ row }, last, all) => ({ row: all ? 0 : row, column: 0 }),
  End: ({ row }, last, all) => ({ row: all ? last.row : row, column: last.column }),
  PageUp: ({ row, column }) => ({ row: row - PAGE, column }),
  PageDown: ({ row, column }) => ({ row: row + PAGE, column }),
};
const ACTS = {
  Enter: (event, all) => cursor && follow(cursor, all),
  " ": () => cursor && pin(),
  Escape: (event) => leave(event),
  r: () => cursor && reverse(),
  "?": () => document.getElementById("keys").showModal(),
  "+": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => zoom(Infinity),
};

function listenToKeys(box) {
  box.addEventListener("keydown", keyed);
  box.addEventListener("focus", focused);
  box.addEventListener("blur", (event) => box.contains(event.relatedTarget) || leaveCursor());
}

function focused() {
  if (!matrix || !matrix.box.matches(":focus-visible")) return;
  go(cursor ?? { row: 0, column: 0 });
}

function leaveCursor() {
  [pinned, cursor] = [null, null];
  matrix.box.querySelector(".cursor").hidden = true;
  hideCard();
}

function keyed(event) {
  if (!matrix || event.altKey) return;
  if (event.target.closest("#card")) return event.key === "Escape" && leave(event);
  const all = event.ctrlKey || event.metaKey;
  if (event.key in MOVES) move(event.key, all);
  else if (event.key in ACTS && (!all || event.key === "Enter")) ACTS[event.key](event, all);
  else return;
  event.preventDefault();
}

// The first key shows the cursor where it stands.
function move(key, all) {
  const last = { row: matrix.rows.names.length - 1, column: matrix.columns.names.length - 1 };
  const { row, column } = MOVES[key](cursor ?? { row: 0, column: 0 }, last, all);
  go(cursor ? { row: between(row, 0, last.row), column: between(column, 0, last.column) } : { row: 0, column: 0 });
}

function go(place) {
  cursor = place;
  if (pinned) pinned = place;
  bringIntoView(place);
  markCursor();
  showCard(place);
  tell(place);
}

function pin() {
  pinned = pinned ? null : cursor;
  showCard(cursor);
}

function leave(event) {
  event.preventDefault();
  if (pinned) {
    pinned = null;
    matrix.box.focus();
    if (cursor) showCard(cursor);
    else hideCard();
  } else {
    leaveCursor();
  }
}

function reverse() {
  const back = reverseOf(cursor);
  if (back) go(back);
  else document.getElementById("said").textContent = "The reverse direction is not in this view.";
}

function tell(place) {
  const { from, to } = ends(place);
  const said = document.getElementById("said");
  if (!cells) {
    said.textContent = `from ${from} to ${to}`;
    return;
  }
  const cell = cellOf(place);
  const value = matrix.pages.matrix.payload.stat === "mean" ? rate(cell.mean, NaN) : inUnit(cell.value);
  const state = cells.states[cell.state].split(":")[0];
  said.textContent = `from ${from} to ${to}: ${[value === DASH ? "no value" : value, `${counted(cell.ok)} ok`, `${counted(cell.failed)} failed`, state].join(", ")}`;
}

function bringIntoView(place) {
  relayout(matrix.plot, () => moved(place));
}

// Returns the ranges that hold a cell; none where it is in view.
function moved({ row, column }) {
  const changes = {};
  for (const [name, position] of [["xaxis", matrix.columns.at[column]], ["yaxis", matrix.rows.at[row]]]) {
    const range = shifted(matrix.plot.layout[name].range, position);
    if (range) changes[`${name}.range`] = range;
  }
  return changes;
}

// Returns a range moved just so far that it holds the whole of a cell, or null if it does.
function shifted(range, position) {
  const [low, high] = [Math.min(...range), Math.max(...range)];
  const by = position - 0.5 < low - 1e-6 ? position - 0.5 - low : position + 0.5 > high + 1e-6 ? position + 0.5 - high : 0;
  return by ? range.map((end) => end + by) : null;
}

function zoom(factor) {
  if (matrix) relayout(matrix.plot, () => zoomed(factor));
}

function zoomed(factor) {
  const changes = {};
  for (const [name, side, at] of [["xaxis", matrix.columns, cursor?.column], ["yaxis", matrix.rows, cursor?.row]]) {
    const [low, high] = [...matrix.plot.layout[name].range].sort((one, other) => one - other);
    const length = side.labels.length;
    const wide = Math.max(Math.min(3, length), Math.min(length, (high - low) * factor));
    const middle = at === undefined ? (low + high) / 2 : side.at[at];
    const start = between(middle - wide / 2, -0.5, length - 0.5 - wide);
    changes[`${name}.range`] = name === "xaxis" ? [start, start + wide] : [start + wide, start];
  }
  return changes;
}

function between(value, least, most) {
  return Math.max(least, Math.min(value, most));
}
