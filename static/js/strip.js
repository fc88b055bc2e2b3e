// The strip of time: how many links failed or were slower than usual in each hour or day, and the
// window of the page, which is chosen on it. Times are Unix ms.

import { passBy, passing, show } from "./page.js";
import { between, fullOf, picture } from "./strip-picture.js";
import { bucketName, momentName, windowName } from "./time.js";

const strip = {
  // The element of this page, and which of its two lengths is shown.
  part: null,
  span: "",
  // What was fetched from where, or why it did not come.
  url: "",
  counts: null,
  trouble: "",
  // Downtimes of its links that the API names, and how many more there are.
  downtimes: [],
  unnamed: 0,
  // The buckets that the reader is choosing, the first and one past the last, and how it began.
  pending: null,
  drag: null,
  // The page before a window was chosen: its address, and its window in words.
  before: null,
};

const LEAST_HOURS = 24;
const LEAST_TESTED = 3;
const MOST_NAMED = 2;
const observer = new ResizeObserver(draw);
update();
document.addEventListener("htmx:after:swap", update);

function update() {
  const part = document.getElementById("strip");
  if (part && part !== strip.part) furnish(part);
  if (!part) return;
  const { preset, words, size } = part.dataset;
  part.querySelector(".size").textContent = `${size} files`;
  if (!preset) strip.before = { url: location.href, words };
  load();
  draw();
}

function furnish(part) {
  Object.assign(strip, { part, span: part.dataset.span, url: "", counts: null, pending: null, before: null });
  const hours = hoursOf(part);
  observer.observe(hours);
  hours.addEventListener("keydown", keyed);
  hours.addEventListener("blur", () => choose(null));
  hours.addEventListener("pointerdown", pressed);
  hours.addEventListener("pointermove", pointed);
  hours.addEventListener("pointerup", released);
  hours.addEventListener("pointercancel", () => strip.drag && giveUp());
  hours.addEventListener("pointerleave", () => strip.drag || tell(null));
  part.addEventListener("click", clicked);
}

function hoursOf(part = strip.part) {
  return part.querySelector(".hours");
}

// Counts come behind the page, which does not wait for them; whoever has them gets a 304.
async function load() {
  const { week, month } = strip.part.dataset;
  const url = strip.span === "7d" ? week : month;
  if (strip.drag && url === strip.url) return;
  strip.url = url;
  try {
    const response = await fetch(url, { cache: "no-cache" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const { buckets, bucket_seconds: seconds, ...others } = await response.json();
    if (url !== strip.url) return;
    strip.counts = begun({ ...buckets, first: Date.parse(buckets.start[0]), width: seconds * 1000 });
    strip.downtimes = others.downtimes.map(withTimes);
    strip.unnamed = others.downtime_count - strip.downtimes.length;
    strip.trouble = troubleOf(buckets.links.filter(Boolean).length);
    performance.mark("strip-loaded");
  } catch (error) {
    if (url === strip.url) strip.trouble = `The chart of failures over time did not load: ${error.message}.`;
  }
  draw();
}

function withTimes(downtime) {
  return { ...downtime, start: Date.parse(downtime.starts_at), end: Date.parse(downtime.ends_at) };
}

// A strip by the hour begins with the first tests: before them there is nothing to see.
function begun(counts) {
  if (strip.span !== "7d") return counts;
  const from = between(counts.links.findIndex(Boolean), 0, counts.links.length - LEAST_HOURS);
  const parts = Object.entries(counts).map(([key, part]) => [key, Array.isArray(part) ? part.slice(from) : part]);
  return { ...Object.fromEntries(parts), first: counts.first + from * counts.width };
}

// A bar at the end of an empty strip says nothing that the page does not.
function troubleOf(tested) {
  const { single } = strip.part.dataset;
  if (!tested) return "No tests in this period.";
  if (single || tested >= LEAST_TESTED) return "";
  return "After a few hours of tests, this chart shows how many links were failing or slower in each hour.";
}

// What is drawn and said.

function draw() {
  const { part, counts, trouble, span } = strip;
  const hours = hoursOf();
  const isReady = counts && !trouble;
  hours.replaceChildren(isReady ? picture(counts, chosen(), hours.clientWidth) : trouble);
  hours.setAttribute("aria-disabled", String(!isReady));
  // Of one link there is nothing to count.
  const full = isReady && !part.dataset.single ? fullOf(counts) : null;
  part.querySelector(".scale").replaceChildren(...(full ? [linksOf(full), "0"].map(line) : []));
  part.querySelector(".declared").hidden = !isReady || ![...counts.down_links, ...counts.at_risk_links].some(Boolean);
  for (const button of part.querySelectorAll("[data-strip]"))
    button.setAttribute("aria-pressed", String(button.dataset.strip === span));
  const back = part.querySelector(".aside .back");
  back.hidden = !part.dataset.preset;
  back.href = strip.before?.url ?? part.dataset.preset;
  if (strip.before) back.textContent = `back to ${strip.before.words}`;
  const around = part.querySelector(".aside .around");
  around.hidden = !part.dataset.preset;
  around.href = aroundUrl();
  around.title = `Compare before and after ${momentName(chosen()[0])} UTC`;
  if (isReady) say(hours);
}

function linksOf(number) {
  return `${number} ${number === 1 ? "link" : "links"}`;
}

function line(text) {
  return Object.assign(document.createElement("span"), { textContent: text });
}

// The page that compares the time since the beginning of the window with as much before it.
function aroundUrl() {
  const { aroundUrl: url, fromText } = strip.part.dataset;
  return url.replace(fromText, iso(chosen()[0]));
}

function iso(time) {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}

function say(hours) {
  const [low, high] = strip.pending ?? bucketsOf(chosen());
  hours.setAttribute("aria-valuemax", String(last()));
  hours.setAttribute("aria-valuenow", String(between(low, 0, last())));
  hours.setAttribute("aria-valuetext", high - low === 1 ? words(low) : windowName(...chosen()));
}

// The window of the page, or the one that is being chosen.
function chosen() {
  const { start, end } = strip.part.dataset;
  return strip.pending ? strip.pending.map(timeOf) : [Date.parse(start), Date.parse(end)];
}

function timeOf(at) {
  return strip.counts.first + at * strip.counts.width;
}

function bucketsOf([from, to]) {
  const { first, width } = strip.counts;
  return [Math.floor((from - first) / width), Math.ceil((to - first) / width)];
}

function last() {
  return strip.counts.links.length - 1;
}

// A strip of one link speaks of its tests, all others of links. What lasts goes on in an hour without a test.
function words(at) {
  const { counts, part } = strip;
  const name = bucketName(timeOf(at), counts.width);
  const [links, failing, slower, failed, failedLinks] = [
    "links", "failing_links", "slower_links", "failed", "failed_links",
  ].map((count) => counts[count][at]);
  const tests = failed + counts.ok[at];
  const declared = declaredAt(at);
  if (part.dataset.single) {
    const measured = tests ? `${tests} ${tests === 1 ? "test" : "tests"}, ${failed} failed` : "no test";
    return `${name}: ${measured}${failing ? "; failing" : slower ? "; slower than usual" : ""}${declared}`;
  }
  const failures = failedLinks ? `, ${failedLinks} with a failed test` : "";
  const tested = links ? `${linksOf(links)} tested${failures}` : "no test";
  const judged = links || failing || slower ? `${linksOf(failing)} failing, ${slower} slower than usual; ` : "";
  return `${name}: ${judged}${tested}${declared}`;
}

// What is declared down and at risk: how many links, and by whom.
function declaredAt(at) {
  const { down_links: down, at_risk_links: atRisk } = strip.counts;
  const kinds = [
    ["outage", "down", down[at]],
    ["warning", "at risk", atRisk[at]],
  ];
  return kinds
    .filter(([, , number]) => number)
    .map(([severity, word, number]) => {
      const who = namesAt(at, severity);
      const links = strip.part.dataset.single ? "" : `${linksOf(number)} `;
      return `; ${links}${word}${who && ` (${who})`}`;
    })
    .join("");
}

function namesAt(at, severity) {
  const [from, to] = [timeOf(at), timeOf(at + 1)];
  const isThen = (each) => each.severity === severity && each.start < to && each.end > from;
  const names = [...new Set(strip.downtimes.filter(isThen).map(({ subject }) => subject))];
  const rest = names.length - MOST_NAMED;
  const others = rest > 0 ? ` and ${rest} more` : strip.unnamed ? " and others" : "";
  return names.length ? `${names.slice(0, MOST_NAMED).join(", ")}${others}` : "";
}

function tell(at, x = 0) {
  const tip = strip.part.querySelector(".tip");
  tip.hidden = at === null;
  if (tip.hidden) return;
  const { pending } = strip;
  tip.textContent = pending && pending[1] - pending[0] > 1 ? windowName(...chosen()) : words(pending?.[0] ?? at);
  tip.style.left = `${between(x - tip.offsetWidth / 2, 0, Math.max(strip.part.clientWidth - tip.offsetWidth, 0))}px`;
}

// What is chosen. The picture of the page follows while it is being dragged, one step at a time.

function choose(pending) {
  strip.pending = pending;
  if (strip.counts) draw();
}

const follow = { url: "", isLast: false, busy: false };

function go(isLast) {
  const { windowUrl, fromText, toText } = strip.part.dataset;
  const [from, to] = chosen().map(iso);
  visit(windowUrl.replace(fromText, from).replace(toText, to), isLast);
}

async function visit(url, isLast) {
  Object.assign(follow, { url, isLast });
  if (follow.busy) return;
  follow.busy = true;
  try {
    while (follow.url) {
      const next = { ...follow };
      follow.url = "";
      passing.isOn = Boolean(strip.drag);
      if (!passing.isOn || !(await passBy(next.url))) await show(next.url, strip.part, next.isLast);
      performance.mark("strip-followed");
    }
  } finally {
    passing.isOn = Boolean(strip.drag);
    follow.busy = false;
    if (!strip.drag) {
      choose(null);
      passing.leave();
    }
  }
}

function clicked(event) {
  const button = event.target.closest("[data-strip]");
  if (button) {
    strip.span = button.dataset.strip;
    load();
  }
  if (!event.target.closest(".aside .back") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  goBack();
}

function goBack() {
  const { preset } = strip.part.dataset;
  if (preset) visit(strip.before?.url ?? preset, true);
}

// The pointer: a click is an hour, a drag all that it passes; a window that was chosen is moved.

function pressed(event) {
  if (event.button || !strip.counts || strip.trouble) return;
  const at = bucketAt(event);
  const own = bucketsOf(chosen());
  const isInside = strip.part.dataset.preset && at >= own[0] && at < own[1];
  strip.drag = { at, own: isInside ? own : null, hasMoved: false };
  hoursOf().setPointerCapture(event.pointerId);
  if (!isInside) choose([at, at + 1]);
  tell(at, xOf(event));
}

function pointed(event) {
  if (!strip.counts || strip.trouble) return;
  const at = bucketAt(event);
  const { drag } = strip;
  if (drag && (drag.hasMoved || at !== drag.at)) {
    drag.hasMoved = true;
    const pending = drag.own ? shifted(drag.own, at - drag.at) : [Math.min(at, drag.at), Math.max(at, drag.at) + 1];
    if (String(pending) !== String(strip.pending)) {
      choose(pending);
      go(false);
    }
  }
  tell(at, xOf(event));
}

function released(event) {
  if (!strip.drag) return;
  const { at, hasMoved } = strip.drag;
  strip.drag = null;
  if (!hasMoved) choose([at, at + 1]);
  go(true);
  if (event.pointerType !== "mouse") tell(null);
}

// The page may have followed already.
function giveUp() {
  const { hasMoved } = strip.drag;
  strip.drag = null;
  choose(null);
  tell(null);
  if (hasMoved) visit(location.href, false);
}

function xOf(event) {
  return event.clientX - hoursOf().getBoundingClientRect().left;
}

function bucketAt(event) {
  return between(Math.floor((xOf(event) / hoursOf().clientWidth) * (last() + 1)), 0, last());
}

// A window keeps its length at either end.
function shifted([low, high], by) {
  const start = between(low + by, 0, Math.max(last() + 1 - (high - low), 0));
  return [start, start + high - low];
}

// The keys choose, too; the first one begins with the window of the page, or the last hour.

const MOVES = {
  ArrowLeft: ([low, high], isShift) => (isShift ? [low, Math.max(high - 1, low + 1)] : shifted([low, high], -1)),
  ArrowRight: ([low, high], isShift) => (isShift ? [low, Math.min(high + 1, last() + 1)] : shifted([low, high], 1)),
  PageUp: ([low, high]) => shifted([low, high], high - low),
  PageDown: ([low, high]) => shifted([low, high], low - high),
  Home: ([low, high]) => shifted([low, high], -Infinity),
  End: ([low, high]) => shifted([low, high], Infinity),
};

function keyed(event) {
  if (!strip.counts || strip.trouble || event.altKey || event.ctrlKey || event.metaKey) return;
  const { key } = event;
  if (key in MOVES) choose(strip.pending || !isAll() ? MOVES[key](current(), event.shiftKey) : [last(), last() + 1]);
  else if (key === "Enter" && strip.pending) go(true);
  else if (key.toLowerCase() === "b" && (strip.pending || strip.part.dataset.preset)) location.assign(aroundUrl());
  else if (key === "Escape" && strip.pending) choose(null);
  else if (key === "Escape") goBack();
  else return;
  event.preventDefault();
  if (strip.pending) tell(strip.pending[0], ((strip.pending[0] + 0.5) / (last() + 1)) * hoursOf().clientWidth);
  else tell(null);
}

function isAll() {
  const [low, high] = bucketsOf(chosen());
  return (low <= 0 && high > last()) || high <= 0 || low > last();
}

function current() {
  const [low, high] = bucketsOf(chosen());
  return [between(low, 0, last()), between(high, 1, last() + 1)];
}
