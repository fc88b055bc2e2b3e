// Which link a cell is, which is its reverse, and where it leads.

import { cellOf } from "./numbers.js";
import { view } from "./view.js";

export function ends({ row, column }) {
  const [one, other] = [view.rows.names[row], view.columns.names[column]];
  return view.payload.transposed ? { from: other, to: one } : { from: one, to: other };
}

export function reverseOf({ row, column }) {
  if (!view.payload.square) return null;
  const back = view.rows.byName.get(view.columns.names[column]);
  const there = view.columns.byName.get(view.rows.names[row]);
  return back === undefined || there === undefined ? null : { row: back, column: there };
}

export function urlOf(place) {
  const { kind, query, rows, columns } = view.payload.open;
  if (kind === "link") return leadsNowhere(place) ? null : linkUrl(ends(place)) + query;
  return sameView(query, rows[place.row], columns[place.column]);
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
  const { kind, rows, columns } = view.payload.open;
  const name = row === undefined ? view.columns.names[column] : view.rows.names[row];
  if (kind === "link") return sameView(location.search, `endpoint=${encodeURIComponent(name)}`);
  const ofEnd = row === undefined ? columns[column] : rows[row];
  return ofEnd ? sameView(location.search, ofEnd.replace(/^(source|destination)_/, "")) : null;
}

export function follow(place, inNewTab) {
  const isCell = place.row !== undefined && place.column !== undefined;
  const isLabel = (place.row === undefined) !== (place.column === undefined);
  const url = isCell ? urlOf(place) : isLabel ? urlOfLabel(place) : null;
  if (!url) return;
  if (inNewTab) open(url, "_blank", "noopener");
  else location.assign(url);
}
