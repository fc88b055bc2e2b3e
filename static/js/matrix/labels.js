// After each draw: as many labels of rows and columns as there is room for.

import { relayout } from "../picture.js";
import { sizeOf } from "./places.js";
import { labelPixels, thinned, ticksOf } from "./ticks.js";
import { view } from "./view.js";

export function thinLabels() {
  const changes = {};
  for (const name of ["xaxis", "yaxis"]) {
    const axis = view.plot._fullLayout[name];
    const cellsPerLabel = labelPixels(name, view.plot.layout) / sizeOf(axis);
    const { tickvals, ticktext } = thinned(ticksOf(view.payload, name), cellsPerLabel);
    if (view.plot.layout[name].tickvals.length === tickvals.length) continue;
    Object.assign(changes, { [`${name}.tickvals`]: tickvals, [`${name}.ticktext`]: ticktext });
  }
  if (Object.keys(changes).length) relayout(view.plot, () => changes);
}
