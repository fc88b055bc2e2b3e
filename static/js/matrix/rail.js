// A refresh moves nothing under the reader's eyes, as far as that is possible: what stands above the
// picture gets no shorter until the reader asks for something. On a narrow screen the lists of what is
// wrong stand there too: all keeps its height, a list that is empty stays, and one that is new comes
// below the picture.

import { isRefresh } from "../page.js";

const NARROW = matchMedia("(max-width: 600px)");
const ANSWER = "#answer";
const LISTS = "#rail > section";
const ABOVE = ":is(.failing, .silent, .changed, .slower):not(.late)";
const NOTHING_YET = "#rail .nothing";

document.addEventListener("htmx:before:swap", (event) => {
  const { ctx, tasks } = event.detail;
  if (!isRefresh(ctx)) return;
  for (const { fragment } of tasks) {
    keepRoom(fragment);
    for (const answer of fragment.querySelectorAll(ANSWER)) keepAnswer(answer);
    if (!NARROW.matches) continue;
    for (const list of fragment.querySelectorAll(LISTS)) keepPlace(list);
    for (const rail of fragment.querySelectorAll("#rail")) keepLists(rail);
  }
});

// The words of an answer are all to be seen at first; later the last may be below an edge.
function keepAnswer(next) {
  const mayGrow = !NARROW.matches || document.querySelector(NOTHING_YET);
  keepHeight(next, document.querySelector(ANSWER), mayGrow ? "min-height" : "height");
}

// Notices that go leave their room, as the first results of an empty Sonar make them do; nobody
// reads a wall so closely.
function keepRoom(fragment) {
  const [next, shown] = [fragment, document].map((part) => part.querySelector("#live > #picture"));
  if (!next || !shown || fragment.querySelector("#live > .notice")) return;
  if (document.body.classList.contains("wall")) return;
  const room = shown.getBoundingClientRect().top - shown.parentElement.getBoundingClientRect().top;
  next.style.marginTop = `${room}px`;
}

function keepPlace(list) {
  const shown = document.querySelector(sameAs(list));
  list.classList.toggle("late", !shown || shown.classList.contains("late"));
  if (shown) keepHeight(list.querySelector("ol"), shown.querySelector("ol"), "height");
}

function keepLists(rail) {
  for (const shown of document.querySelectorAll(LISTS)) {
    if (shown.matches(ABOVE) && !rail.querySelector(sameAs(shown))) rail.append(emptied(shown));
  }
}

function emptied(shown) {
  const list = shown.cloneNode(true);
  const [count, items] = [list.querySelector("h2 > *"), list.querySelector("ol")];
  count.replaceWith(Object.assign(document.createElement("span"), { textContent: "0" }));
  items.replaceChildren(Object.assign(document.createElement("li"), { textContent: "None now." }));
  keepHeight(items, shown.querySelector("ol"), "height");
  return list;
}

function sameAs(list) {
  return `section[aria-labelledby=${list.getAttribute("aria-labelledby")}]`;
}

function keepHeight(next, shown, property) {
  next.style.setProperty(property, `${shown.getBoundingClientRect().height}px`);
}
