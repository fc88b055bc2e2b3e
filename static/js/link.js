// The page of a link: a point of the picture leads to its transfer, and tests are ordered.

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

// The address of what was ordered has the form as well, which lies in a menu.
document.addEventListener("DOMContentLoaded", openOrder);
addEventListener("hashchange", openOrder);

function openOrder() {
  if (location.hash === "#test-now") document.getElementById("order")?.showPopover();
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
