// What every page does with a script: says that it works or failed, refreshes itself,
// and finds what the reader wants to jump to.

import "./copy.js";
import { clock, utc } from "./time.js";

// The library hangs on the window; nothing else reads it there.
const { htmx } = window;

const REFRESH_MS = 60000;
// An answer that takes longer than this is said to be on its way, and can be given up.
const PATIENCE_MS = 400;
const trouble = document.getElementById("trouble");
const working = document.getElementById("working");

// A wall may lie behind another window and is to be right when it comes to the front.
setInterval(() => isSeen() && refresh(), REFRESH_MS);

function isSeen() {
  return !document.hidden || document.body.classList.contains("wall");
}

// Back was pressed before htmx listened: the address has changed, the page has not.
const loaded = performance.getEntriesByType("navigation")[0]?.name.split("#")[0];
if (history.state?.htmx && loaded && loaded !== location.href.split("#")[0]) location.reload();

// The part of a page that shows data has hx-get and hx-trigger="refresh": it is fetched anew and
// morphed, so that scroll, focus and what was opened stay. What the reader asks for goes first.
export function refresh() {
  if (asked.size || passing.isOn) return;
  for (const part of document.querySelectorAll(REFRESHED)) htmx.trigger(part, "refresh");
}

// Whether views are shown that the reader only passes by, on the way to one that is to stay. `paint(url)` may show
// one without its page, and says whether it did; `leave` takes that away where no page has come.
export const passing = { isOn: false, paint: async () => false, leave: () => {} };

export async function passBy(url) {
  for (const other of refreshing) other.request.abort();
  return passing.paint(url);
}

// Shows another view of this page in its place, as a link among its controls does; `source` is what
// the reader used for it. The address follows unless more is to come.
export async function show(url, source, isLast = true) {
  const how = { source, target: "#page", select: "#page", swap: "outerMorph show:none" };
  await htmx.ajax("GET", url, isLast ? { ...how, push: "true" } : how);
}

// Requests: what the reader asked for, and what goes on beside it. The newest question counts;
// an answer to an older one would put old data under a new heading.

const REFRESHED = "[hx-trigger~=refresh]";
const asked = new Map();
const refreshing = new Set();
let lateSince = null;

document.addEventListener("htmx:before:request", (event) => {
  const request = event.detail.ctx;
  if (isSearch(request)) return;
  if (leadsAway(request)) {
    event.preventDefault();
    location.assign(request.sourceElement.href);
    return;
  }
  if (isRefresh(request)) {
    if (performance.now() < leftUntil) event.preventDefault();
    else refreshing.add(request);
    return;
  }
  for (const other of [...refreshing, ...asked.keys()]) other.request.abort();
  const timer = setTimeout(() => (working.hidden = false), PATIENCE_MS);
  asked.set(request, { timer, menus: new Set(openMenus()) });
});

// Another page has scripts, a body and a place in the navigation of its own: it is not put into this one.
function leadsAway({ sourceElement: link }) {
  return link.matches("a[href]") && link.pathname !== location.pathname;
}

// A form that is sent leads to another page, and may end what this one is about. Where it does not, as for a file, this
// page lives on.
const LEAVING_MS = 10000;
let leftUntil = 0;

document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  leftUntil = performance.now() + LEAVING_MS;
  for (const other of refreshing) other.request.abort();
});

document.addEventListener("htmx:finally:request", (event) => {
  const request = event.detail.ctx;
  refreshing.delete(request);
  if (!asked.has(request)) return;
  clearTimeout(asked.get(request).timer);
  asked.delete(request);
  if (!asked.size) working.hidden = true;
});

working.querySelector("button").addEventListener("click", () => {
  for (const request of asked.keys()) request.request.abort();
});

export function isRefresh(request) {
  return request.sourceElement.matches(REFRESHED);
}

// What a menu fetches when it is opened.
function isOfMenu(request) {
  return request.sourceElement.matches("[hx-trigger=opened]");
}

function isSearch(request) {
  return request.sourceElement.id === "jump";
}

// What went wrong is said, and what was not affected.

document.addEventListener("htmx:error", (event) => {
  if (event.detail.ctx) say(event.detail.ctx, "the server did not answer");
});

document.addEventListener("htmx:response:error", (event) => {
  const status = event.detail.ctx.response.status;
  if (status < 500 && !isRefresh(event.detail.ctx)) return;
  say(event.detail.ctx, `the server answered with status ${status}`);
});

// An answer without the part that was asked for is another page, the login for one.
document.addEventListener("htmx:before:swap", (event) => {
  const { ctx, tasks } = event.detail;
  if (isSearch(ctx) || ctx.response.status >= (isRefresh(ctx) ? 400 : 500)) return;
  if (tasks.some((task) => task.fragment.firstElementChild)) return;
  event.preventDefault();
  say(ctx, "the server answered with another page; you may have to log in again");
});

document.addEventListener("htmx:after:swap", (event) => {
  const request = event.detail.ctx;
  if (isSearch(request) || request.response?.status >= 400) return;
  if (!isRefresh(request)) {
    const menus = asked.get(request)?.menus ?? new Set();
    followHeader(request.text);
    settleForms(menus);
    if (!isOfMenu(request) && closeMenus(menus)) showAnswer();
  }
  trouble.hidden = true;
  lateSince = null;
  sayUpdated(`updated ${clock()}`, false);
});

// The links of the header may have the address of the view in them, as that of the log-in does.
function followHeader(text) {
  const [header] = text.match(/<header class="head[^]*?<\/header>/) ?? [""];
  const links = ":is(.places, .pages) a[href]";
  const next = new DOMParser().parseFromString(header, "text/html").querySelectorAll(links);
  const shown = document.querySelectorAll(links);
  if (next.length !== shown.length) return;
  shown.forEach((link, at) => link.setAttribute("href", next[at].getAttribute("href")));
}

// A morph leaves in the fields what the reader chose; what the page shows now counts, except for
// what is just being typed, and for menus that were opened while the answer was on its way.
function settleForms(menus) {
  const { activeElement: active } = document;
  const typing = active?.matches("input:not([type=checkbox])") ? active : null;
  const since = openMenus().filter((menu) => !menus.has(menu));
  for (const form of document.querySelectorAll("#page .controls form")) {
    if (!form.contains(typing) && !since.some((menu) => menu.contains(form))) form.reset();
  }
}

function openMenus() {
  return [...document.querySelectorAll(".sheet:popover-open")];
}

// What was chosen in a menu is answered by the page, which it would cover; but not while one ticks
// boxes. A menu that was opened while the answer was on its way stays. The focus goes back to where the menu was
// opened. Returns whether one was closed.
function closeMenus(menus) {
  const { activeElement: active } = document;
  const done = openMenus().filter((menu) => (
    menus.has(menu) && (!menu.contains(active) || !active.matches("[type=checkbox]"))
  ));
  for (const menu of done) menu.hidePopover();
  return done.length > 0;
}

document.addEventListener("toggle", ({ target, newState }) => {
  if (newState !== "open" || !target.matches?.(".sheet")) return;
  for (const { menus } of asked.values()) menus.delete(target);
}, true);

// The answer stands above the menus, on a narrow screen often out of sight.
function showAnswer() {
  const answer = document.querySelector("#comparison:not([hidden])") ?? document.getElementById("answer");
  answer?.scrollIntoView({ block: "nearest", behavior: "instant" });
}

function say(request, what) {
  trouble.hidden = false;
  if (!isRefresh(request)) {
    trouble.textContent =
      `The request failed: ${what}. The page is unchanged; try again, or contact an administrator.`;
    return;
  }
  lateSince ??= clock();
  trouble.textContent =
    `This page has not been refreshed since ${lateSince}: ${what}. ` +
    "The page shows earlier results; trying again every minute.";
  sayUpdated(`not updated since ${lateSince}`, true);
}

function sayUpdated(text, isLate) {
  const updated = document.getElementById("updated");
  if (!updated) return;
  updated.textContent = text;
  updated.classList.toggle("late", isLate);
}

// What is typed or chosen in a field with data-chooses="length=until" selects that choice, too.
document.addEventListener("input", ({ target }) => {
  const [name, value] = target.dataset.chooses?.split("=") ?? [];
  if (name && target.value.trim()) target.form.elements.namedItem(name).value = value;
});

// Forms with data-autosubmit need no button: a choice is enough.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-autosubmit]");
  if (form && event.target.matches("select, input")) form.requestSubmit();
});

// What the address had besides the view is said once, and is not handed on.
const ignored = document.getElementById("ignored");
if (ignored) history.replaceState(history.state, "", ignored.dataset.canonical);

// A printed page says where it is from.
addEventListener("beforeprint", () => {
  let from = document.getElementById("printed-from");
  if (!from) {
    from = Object.assign(document.createElement("p"), { id: "printed-from" });
    document.body.append(from);
  }
  from.textContent = `Printed from ${location.href} at ${utc()}`;
});

// The jump box: arrows walk through what was found while the caret stays where it is.

const jump = document.getElementById("jump");
const found = document.getElementById("found");

document.addEventListener("keydown", (event) => {
  const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey;
  const isCtrlK = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
  if (!(isSlash || isCtrlK) || event.altKey || !jump?.offsetParent) return;
  if (isSlash && event.target.closest("input, select, textarea, [contenteditable]")) return;
  event.preventDefault();
  jump.focus();
  jump.select();
});

if (jump) {
  jump.addEventListener("keydown", walk);
  jump.addEventListener("input", () => jump.value.trim() || closeFound());
  document.addEventListener("click", (event) => event.target.closest(".jump") || closeFound());
  jump.form.addEventListener("focusout", ({ relatedTarget: to }) => !to || to.closest(".jump") || closeFound());
  document.addEventListener("htmx:after:swap", (event) => isSearch(event.detail.ctx) && openFound());
}

function options() {
  return [...found.querySelectorAll("a")];
}

function openFound() {
  if (!jump.value.trim() || !found.firstElementChild) return closeFound();
  const list = found.firstElementChild;
  const links = options();
  list.id = "found-now"; // the search page has a list of its own
  if (links.length) list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Found");
  links.forEach((link, at) => {
    Object.assign(link, { id: `found-${at}`, tabIndex: -1 });
    link.setAttribute("role", "option");
    link.setAttribute("aria-selected", "false");
    link.closest("li")?.setAttribute("role", "none");
  });
  jump.setAttribute("aria-expanded", "true");
}

function closeFound() {
  found.replaceChildren();
  jump.setAttribute("aria-expanded", "false");
  jump.removeAttribute("aria-activedescendant");
}

function walk(event) {
  const links = options();
  const at = links.findIndex((link) => link.getAttribute("aria-selected") === "true");
  const steps = { ArrowDown: at + 1, ArrowUp: at < 0 ? links.length - 1 : at - 1 };
  if (event.key === "Escape") {
    event.preventDefault();
    closeFound();
  } else if (event.key in steps && links.length) {
    event.preventDefault();
    choose(links, steps[event.key]);
  } else if (event.key === "Enter" && at >= 0) {
    event.preventDefault();
    links[at].click();
  }
}

// One step beyond either end no link is chosen: Enter searches for the text again.
function choose(links, at) {
  links.forEach((link, number) => link.setAttribute("aria-selected", String(number === at)));
  if (links[at]) {
    links[at].scrollIntoView({ block: "nearest" });
    jump.setAttribute("aria-activedescendant", links[at].id);
  } else {
    jump.removeAttribute("aria-activedescendant");
  }
}
