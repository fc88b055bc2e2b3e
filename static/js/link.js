// The page of a link: a point of the picture leads to its transfer.

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
