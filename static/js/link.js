// The page of a link: a point of the picture leads to its transfer, and its parts are tabs.

import { extend } from "./picture.js";

// Where there is no room for words, what they belong to is named; the page lists them below.
const NARROW = 600;

extend("rates", {
  prepare(figure, plot) {
    if (plot.clientWidth >= NARROW) return;
    for (const words of figure.layout.annotations) if (words.name && words.name !== "usual") words.text = words.name;
  },
  after(plot) {
    if (plot.dataset.leads) return;
    plot.dataset.leads = "yes";
    plot.on("plotly_click", (event) => {
      const id = event.points[0].customdata;
      if (typeof id === "string") location.assign(addressOf(id, plot.parentElement.dataset.transfer));
    });
  },
});

// The page gives the address of the transfer whose id is nothing but zeros.
function addressOf(id, address) {
  return address.replace(/[0-]{36}/, id.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
}

// The hash of the address names the part that is seen, or what stands in it; a morph leaves it as it is.
const FIRST = "overview";
let chosen = FIRST;

document.addEventListener("DOMContentLoaded", follow);
addEventListener("hashchange", follow);
document.addEventListener("htmx:after:swap", () => {
  choose(chosen);
  if (!location.hash) keepInAddress();
});
document.addEventListener("click", (event) => {
  const tab = event.target.closest(".tabs a");
  if (!tab || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(tab.hash.slice(1));
  keepInAddress();
});
// On paper all parts stand below each other; pictures are measured as they are seen, so they come first.
addEventListener("beforeprint", () => partsBox()?.setAttribute("data-chosen", "all"), { capture: true });
addEventListener("afterprint", () => choose(chosen));

function partsBox() {
  return document.getElementById("parts");
}

function follow() {
  const target = document.getElementById(location.hash.slice(1));
  const part = target?.closest(".part");
  choose(part?.id ?? chosen);
  if (part) (part === target ? partsBox() : target).scrollIntoView();
  if (target?.id === "test-now") document.getElementById("order")?.showPopover();
}

// A part that is there no longer, such as failures in another window, gives way to the first.
function choose(id) {
  const box = partsBox();
  if (!box) return;
  const tabs = [...box.querySelectorAll(".tabs a")];
  chosen = tabs.some((tab) => tab.hash === `#${id}`) ? id : FIRST;
  box.dataset.chosen = chosen;
  for (const tab of tabs) {
    if (tab.hash === `#${chosen}`) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
}

function keepInAddress() {
  const hash = chosen === FIRST ? "" : `#${chosen}`;
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

// Who asks for more streams wants to know what they do: the same with 1 stream is ticked, and can be unticked.
document.addEventListener("input", ({ target }) => {
  if (target.matches("#order [name=streams]")) target.form.elements.compare.checked = Number(target.value) > 1;
});

// What was ordered is followed on the page, which may have it out of sight.
document.addEventListener("htmx:after:swap", ({ detail }) => {
  const { ctx } = detail;
  if (ctx.sourceElement.matches("#order form") && ctx.response?.status < 400) {
    document.getElementById("test-now").scrollIntoView({ block: "nearest" });
  }
});
