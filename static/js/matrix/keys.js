// The keyboard: a cursor that walks over the cells and brings them into view.

import { relayout } from "../picture.js";
import { hideCard, showCard, standing } from "./card.js";
import { ends, follow, reverseOf } from "./links.js";
import { DASH, cellOf, counted, inUnit } from "./numbers.js";
import { markCursor } from "./places.js";
import { view } from "./view.js";

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
  Enter: (event, all) => view.cursor && follow(view.cursor, all),
  " ": () => view.cursor && pin(),
  Escape: (event) => leave(event),
  r: () => view.cursor && reverse(),
  "?": () => document.getElementById("keys").showModal(),
  "+": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => zoom(Infinity),
};

export function listenToKeys(box) {
  box.addEventListener("keydown", keyed);
  box.addEventListener("focus", focused);
  box.addEventListener("blur", (event) => box.contains(event.relatedTarget) || leaveCursor());
}

function focused() {
  if (!view.box?.matches(":focus-visible")) return;
  go(view.cursor ?? { row: 0, column: 0 });
}

function leaveCursor() {
  [view.pinned, view.cursor] = [null, null];
  view.box.querySelector(".cursor").hidden = true;
  hideCard();
}

function keyed(event) {
  if (!view.plot || event.altKey) return;
  if (event.target.closest("#card")) return event.key === "Escape" && leave(event);
  const all = event.ctrlKey || event.metaKey;
  if (event.key in MOVES) move(event.key, all);
  else if (event.key in ACTS && (!all || event.key === "Enter")) ACTS[event.key](event, all);
  else return;
  event.preventDefault();
}

// The first key shows the cursor where it stands.
function move(key, all) {
  const last = { row: view.rows.names.length - 1, column: view.columns.names.length - 1 };
  const { row, column } = MOVES[key](view.cursor ?? { row: 0, column: 0 }, last, all);
  go(view.cursor ? { row: between(row, 0, last.row), column: between(column, 0, last.column) } : { row: 0, column: 0 });
}

function go(place) {
  view.cursor = place;
  if (view.pinned) view.pinned = place;
  bringIntoView(place);
  markCursor();
  showCard(place);
  tell(place);
}

function pin() {
  view.pinned = view.pinned ? null : view.cursor;
  showCard(view.cursor);
}

function leave(event) {
  event.preventDefault();
  if (view.pinned) {
    view.pinned = null;
    view.box.focus();
    if (view.cursor) showCard(view.cursor);
    else hideCard();
  } else {
    leaveCursor();
  }
}

function reverse() {
  const back = reverseOf(view.cursor);
  if (back) go(back);
  else document.getElementById("said").textContent = "The reverse direction is not in this view.";
}

export function tell(place) {
  const { from, to } = ends(place);
  const said = document.getElementById("said");
  if (!view.cells) {
    said.textContent = `from ${from} to ${to}`;
    return;
  }
  const cell = cellOf(place);
  const value = inUnit(cell.value);
  const tests = `${counted(cell.ok)} ok, ${counted(cell.failed)} failed`;
  said.textContent = `from ${from} to ${to}: ${value === DASH ? "no value" : value}, ${tests}, ${standing(cell)}`;
}

function bringIntoView(place) {
  relayout(view.plot, () => moved(place));
}

// Returns the ranges that hold a cell; none where it is in view.
function moved({ row, column }) {
  const changes = {};
  for (const [name, position] of [["xaxis", view.columns.at[column]], ["yaxis", view.rows.at[row]]]) {
    const range = shifted(view.plot.layout[name].range, position);
    if (range) changes[`${name}.range`] = range;
  }
  return changes;
}

// Returns a range moved just so far that it holds the whole of a cell, or null if it does.
function shifted(range, position) {
  const [low, high] = [Math.min(...range), Math.max(...range)];
  const [before, behind] = [position - 0.5 - low, position + 0.5 - high];
  const by = before < -1e-6 ? before : behind > 1e-6 ? behind : 0;
  return by ? range.map((end) => end + by) : null;
}

export function zoom(factor) {
  if (view.plot) relayout(view.plot, () => zoomed(factor));
}

function zoomed(factor) {
  const changes = {};
  const { rows, columns, cursor } = view;
  for (const [name, side, at] of [["xaxis", columns, cursor?.column], ["yaxis", rows, cursor?.row]]) {
    const [low, high] = [...view.plot.layout[name].range].sort((one, other) => one - other);
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
