// The page of a link: a point of the picture leads to its transfer.
"use strict";

special.rates = {
  after(plot) {
    if (plot.dataset.leads) return;
    plot.dataset.leads = "yes";
    plot.on("plotly_click", (event) => {
      const id = event.points[0].customdata;
      if (typeof id === "string") location.assign(`/transfers/${id.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}/`);
    });
  },
};
