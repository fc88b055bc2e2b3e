// Which link a cell is, which is its reverse, and where it leads.

import { cellOf } from "./numbers.js";
import { isWall, view } from "./view.js";

export function ends(place) {
  const [one, other] = [view.rows.names[place.row], view.columns.names[place.column]];
  return rowSends(place) ? { from: one, to: other } : { from: other, to: one };
}

// In strips the own side says who sends: the first of its lines do.
function rowSends(place) {
  const { transposed } = view.payload;
  return isStrips() ? ownSends(ownAt(place)) !== transposed : !transposed;
}

export function isStrips() {
  return view.payload.sending !== null;
}

export function ownSends(at) {
  return at < view.payload.sending;
}

// The place of a cell, row or column on the own side of strips; undefined for a partner's.
export function ownAt({ row, column }) {
  return view.payload.transposed ? column : row;
}

export function reverseOf(place) {
  const { row, column } = place;
  if (isStrips()) return acrossFrom(place);
  if (!view.payload.square) return null;
  const back = view.rows.byName.get(view.columns.names[column]);
  const there = view.columns.byName.get(view.rows.names[row]);
  return back === undefined || there === undefined ? null : { row: back, column: there };
}

// The reverse direction stands in the other strip, at the same partner.
function acrossFrom(place) {
  const { transposed } = view.payload;
  const [name, { names }] = [transposed ? "column" : "row", transposed ? view.columns : view.rows];
  const at = place[name];
  const back = names.findIndex((other, index) => other === names[at] && ownSends(index) !== ownSends(at));
  return back < 0 ? null : { ...place, [name]: back };
}

export function urlOf(place) {
  const { kind, query, source, destination } = view.payload.open;
  const { from, to } = ends(place);
  if (kind === "link") return leadsNowhere(place) ? null : linkUrl({ from, to }) + query;
  return sameView(query, source[from], destination[to]);
}

function leadsNowhere(place) {
  const { from, to } = ends(place);
  return from === to || (view.cells && cellOf(place).state === view.cells.leads_nowhere);
}

// The page gives the address of a link with names for its ends.
function linkUrl({ from, to }) {
  const names = { ":source": from, ":destination": to };
  return view.payload.link_url.replace(/:source|:destination/g, (name) => encodeURIComponent(names[name]));
}

function sameView(query, ...filters) {
  return `${location.pathname}?${[query.replace("?", ""), ...filters].filter(Boolean).join("&")}`;
}

// The same view of one row and one column: this name at either end.
function urlOfLabel({ row, column }) {
  const { kind, source, destination, labels } = view.payload.open;
  // A wall has the parameters of several views.
  if (isWall()) return null;
  const name = row === undefined ? view.columns.names[column] : view.rows.names[row];
  const isSource = (row !== undefined) !== view.payload.transposed;
  if (labels && !isStrips()) return labels[isSource ? "source" : "destination"][name];
  if (kind === "link") return sameView(location.search, `endpoint=${encodeURIComponent(name)}`);
  const ofEnd = source[name] ?? destination[name];
  return ofEnd ? sameView(location.search, ofEnd.replaceAll(/(^|&)(source|destination)_/g, "$1")) : null;
}

export function follow(place, inNewTab) {
  const isCell = place.row !== undefined && place.column !== undefined;
  const isLabel = (place.row === undefined) !== (place.column === undefined);
  const url = isCell ? urlOf(place) : isLabel ? urlOfLabel(place) : null;
  if (!url) return;
  if (inNewTab) open(url, "_blank", "noopener");
  else location.assign(url);
}
