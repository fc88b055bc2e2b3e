// Copies what a page offers: a line of text, or a table as HTML and as TSV at once, which a document
// and a spreadsheet each take in their own way.

const TEXT = "text/plain";
const HTML = "text/html";
const SAID_MS = 2000;
// What only helps to read or to use a table on the page.
const BESIDES = ".visually-hidden, [aria-hidden=true], input, button, script";
// What a spreadsheet would take for a formula has an apostrophe before it, as in CSV (sonar/csv_text.py).
const RISKY = /^'*[=+@\t\r-]/;
// Cells of a matrix in these states may have no result.
const EMPTY = ".untested, .stale, .down, .not_applicable";
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

document.addEventListener("click", (event) => {
  const offer = event.target.closest("[data-copy], [data-copy-table], [data-copy-csv]");
  // A link that is opened elsewhere is a link.
  if (!offer || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  copyFor(offer);
});

// Each table of the page is offered where the rest is, as they are now: a refresh may bring others.
const LISTED_IN = "details[open] [data-tables]";
document.addEventListener("toggle", ({ target }) => target.querySelector(LISTED_IN) && listTables(), true);
document.addEventListener("htmx:after:swap", () => document.querySelector(LISTED_IN) && listTables());

let listed = "";

function listTables() {
  const list = document.querySelector("[data-tables]");
  const names = [...document.querySelectorAll("main table")].map((table) => shortened(nameOf(table)));
  if (!list || (list.firstChild && names.join() === listed)) return;
  listed = names.join();
  list.replaceChildren(...(names.length > 1 ? names : []).map(offerOf));
}

function offerOf(name, at) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: `Copy table: ${name}` });
  button.dataset.copyTable = at;
  return button;
}

// What a table is: its own caption, else the heading of the part that it stands in, or the page's.
function nameOf(table) {
  return worded(table.caption ?? table.closest("section")?.querySelector("h2, h3") ?? document.querySelector("h1"));
}

function shortened(name) {
  return name.length > 60 ? `${name.slice(0, 59)}…` : name;
}

// Above a table that is named by a heading stands whose it is.
function titleOf(table) {
  const [page, name] = [worded(document.querySelector("h1")), nameOf(table)];
  return table.caption || name === page ? name : `${page} – ${name}`;
}

const labels = new WeakMap();

async function copyFor(offer) {
  const label = labels.get(offer) ?? [...offer.childNodes];
  labels.set(offer, label);
  offer.style.minWidth = `${offer.offsetWidth}px`;
  const kinds = offer.dataset.copy === undefined ? [TEXT, HTML] : [TEXT];
  const isCopied = await copied(textsOf(offer), kinds).catch(() => false);
  offer.textContent = isCopied ? "Copied" : (offer.dataset.failed ?? "Not copied: the browser did not allow it");
  setTimeout(() => offer.replaceChildren(...label), SAID_MS);
}

// The texts to copy, by their types.
async function textsOf({ dataset }) {
  if (dataset.copy !== undefined) return { [TEXT]: dataset.copy };
  const tables = document.querySelectorAll("main table");
  if (dataset.copyTable) return ofTable(tables[dataset.copyTable]);
  // A page with several tables marks the one that it is about.
  const main = document.querySelector("main table[data-main]");
  if (main || !dataset.copyCsv) return ofTable(main ?? tables[0]);
  // A matrix that is too large to stand on the page as a table is fetched as one.
  const answer = await fetch(dataset.copyCsv);
  if (!answer.ok) throw new Error(answer.status);
  const rows = fieldsOf(await answer.text()).map((row, at) => row.map((text) => ({ text, isHead: !at, span: 1 })));
  return written([worded(document.querySelector("h1"))], rows);
}

function ofTable(table) {
  const rows = [...table.rows].filter((row) => !row.querySelector("input")).map(({ cells }) => [...cells]);
  const { kept, note } = table.closest("#table") && table.dataset.main !== undefined ? measured(rows) : { kept: rows };
  return written([titleOf(table), note], kept.map((cells) => cells.map(cellOf)));
}

// A matrix without its rows and columns that have no result, unless none has any.
function measured(rows) {
  const inner = rows.slice(1, -1).map((cells) => cells.slice(1, -1));
  const hasResult = (cell) => !cell.matches(EMPTY) || /\d/.test(cell.firstChild?.data);
  const withResults = inner.map((cells) => cells.map(hasResult));
  const [lines, columns] = [withResults, (inner[0] ?? []).map((_, at) => withResults.map((line) => line[at]))].map(
    (sides) => sides.map((side) => side.includes(true)),
  );
  const left = [[lines, "row"], [columns, "column"]]
    .map(([sides, noun]) => [sides.filter((has) => !has).length, noun])
    .filter(([count]) => count)
    .map(([count, noun]) => `${count} ${noun}${count > 1 ? "s" : ""}`);
  if (!left.length || !lines.includes(true)) return { kept: rows };
  const isKept = (sides, at, length) => !at || at === length - 1 || sides[at - 1];
  const kept = rows
    .filter((_, at) => isKept(lines, at, rows.length))
    .map((cells) => cells.filter((_, at) => isKept(columns, at, cells.length)));
  return { kept, note: `Not copied because they have no results: ${left.join(" and ")}` };
}

function cellOf(cell) {
  return { text: safe(worded(cell)), isHead: cell.tagName === "TH", span: cell.colSpan };
}

function safe(text) {
  return RISKY.test(text) && !NUMBER.test(text) ? `'${text}` : text;
}

function worded(element) {
  const copy = element.cloneNode(true);
  for (const part of copy.querySelectorAll(BESIDES)) part.remove();
  return copy.textContent.replace(/[ \t\r\n]+/g, " ").trim();
}

// The line above the table says what it is and of when, and what is made up.
function written(names, rows) {
  const fromTo = document.querySelector(".from-to")?.textContent.trim();
  const texts = [...names, fromTo, isSimulated() && "Simulated endpoints"];
  const caption = texts.filter(Boolean).map((text) => text.replace(/\.$/, "")).join(". ");
  const html = rows.map((row) => `<tr>${row.map(htmlOf).join("")}</tr>`).join("\n");
  return {
    [HTML]: `<p>${escaped(caption)}</p>\n<table>\n${html}\n</table>`,
    [TEXT]: [caption, ...rows.map((row) => row.flatMap(tsvOf).join("\t"))].join("\n"),
  };
}

function isSimulated() {
  return Boolean(document.querySelector("#page .simulated"));
}

function htmlOf({ text, isHead, span }) {
  const tag = isHead ? "th" : "td";
  return `<${tag}${span > 1 ? ` colspan="${span}"` : ""}>${escaped(text)}</${tag}>`;
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.codePointAt()};`);
}

// Thousands are set apart on the page; for a spreadsheet that would be no number.
function tsvOf({ text, span }) {
  const plain = text.replace(/(?<=\d)\u202f(?=\d)/g, "");
  return [plain.includes('"') ? `"${plain.replaceAll('"', '""')}"` : plain, ...Array(span - 1).fill("")];
}

function fieldsOf(csv) {
  const rows = [[]];
  for (const [, field, end] of csv.trimEnd().matchAll(/("(?:[^"]|"")*"|[^",\n]*)(,|\n|$)/g)) {
    rows.at(-1).push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (end === "\n") rows.push([]);
    if (!end) break;
  }
  return rows;
}

// The clipboard needs https or localhost, and may be refused; a selection that is copied needs neither.
async function copied(texts, kinds) {
  return (await byClipboard(texts, kinds)) || bySelection(await texts);
}

async function byClipboard(texts, kinds) {
  if (!navigator.clipboard?.write) return false;
  const parts = kinds.map((kind) => [kind, texts.then((text) => new Blob([text[kind]], { type: kind }))]);
  return navigator.clipboard.write([new ClipboardItem(Object.fromEntries(parts))]).then(() => true, () => false);
}

function bySelection(texts) {
  const active = document.activeElement;
  const field = document.body.appendChild(document.createElement("textarea"));
  field.value = texts[TEXT];
  field.select();
  document.addEventListener("copy", fill, { once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", fill);
  field.remove();
  active?.focus({ preventScroll: true });
  return done;

  function fill(event) {
    for (const [kind, text] of Object.entries(texts)) event.clipboardData.setData(kind, text);
    event.preventDefault();
  }
}
