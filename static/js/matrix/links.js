// Which link a cell is, which is its reverse, and where it leads.
"use strict";

function ends({ row, column }) {
  const [one, other] = [matrix.rows.names[row], matrix.columns.names[column]];
  return matrix.pages.matrix.payload.transposed ? { from: other, to: one } : { from: one, to: other };
}

function reverseOf({ row, column }) {
  if (!isSquare()) return null;
  const [back, there] = [matrix.rows.byName.get(matrix.columns.names[column]), matrix.columns.byName.get(matrix.rows.names[row])];
  return back === undefined || there === undefined ? null : { row: back, column: there };
}

function isSquare() {
  const { kind, rows = [], columns = [] } = matrix.pages.matrix.payload.open;
  const kindOf = (filters) => filters.find(Boolean)?.split("=")[0].replace(/^(source|destination)_/, "");
  return kind === "link" || kindOf(rows) === kindOf(columns);
}

function urlOf(place) {
  const { kind, query, rows, columns } = matrix.pages.matrix.payload.open;
  const { from, to } = ends(place);
  if (kind === "link") {
    if (from === to || (cells && cells.states[cellOf(place).state].startsWith("not applicable"))) return null;
    return `/links/${encodeURIComponent(from)}/${encodeURIComponent(to)}/${query}`;
  }
  const narrowed = [query.replace(/^\?/, ""), rows[place.row], columns[place.column]].filter(Boolean);
  return `/?${narrowed.join("&")}`;
}

// The same view of one row and one column: this name at either end.
function urlOfLabel({ row, column }) {
  const { kind, rows, columns } = matrix.pages.matrix.payload.open;
  const name = row === undefined ? matrix.columns.names[column] : matrix.rows.names[row];
  const filter = kind === "link" ? `endpoint=${encodeURIComponent(name)}` : (row === undefined ? columns[column] : rows[row])?.replace(/^(source|destination)_/, "");
  return filter ? `/?${[location.search.slice(1), filter].filter(Boolean).join("&")}` : null;
}

function follow(place, inNewTab) {
  const isCell = place.row !== undefined && place.column !== undefined;
  const isLabel = (place.row === undefined) !== (place.column === undefined);
  const url = isCell ? urlOf(place) : isLabel ? urlOfLabel(place) : null;
  if (!url) return;
  if (inNewTab) window.open(url, "_blank", "noopener");
  else location.assign(url);
}
