// Marks that have their place in the corner of a cell, or go round it: the server names the cells,
// and here they get their size, in pixels of the screen.

const LARGEST = 11;
// In a cell without a number, which is small, a mark may take more of it.
const SHARE = { numbered: 0.22, bare: 0.45 };
// A line of a pixel round a small mark would be all there is of it.
const LEAST_LINED = 6;
const SHAPES = {
  frame: ({ left, top, right, bottom, x, y }) => [
    [left + x, top + y], [right - x, top + y], [right - x, bottom - y], [left + x, bottom - y],
  ],
  slower: ({ top, right, x, y, size }) => [
    [right - size * x, top], [right, top], [right, top + size * y],
  ],
  faster: ({ top, right, x, y, size }) => [
    [right - (size + 1) * x, top + (size + 1) * y], [right - x, top + (size + 1) * y],
    [right - (1 + size / 2) * x, top + y],
  ],
  partly: ({ left, bottom, x, y, size }) => [
    [left, bottom - 0.6 * size * y], [left + 0.6 * size * x, bottom - 0.6 * size * y],
    [left + 0.6 * size * x, bottom], [left, bottom],
  ],
};

// Draws the outlines of a trace for cells of this width and height, beside their numbers. All are
// one line with gaps; `factor` is how much larger the page's text is than that of figures.
export function outline(trace, { wide, high, factor, isBare }) {
  const share = isBare ? SHARE.bare : SHARE.numbered;
  const size = Math.min(LARGEST * factor, Math.max(2, Math.min(0.45 * high, share * wide)));
  const [xs, ys] = [[], []];
  trace.x.forEach((column, at) => {
    const row = trace.y[at];
    const cell = { left: column - 0.5, right: column + 0.5, top: row - 0.5, bottom: row + 0.5 };
    const points = SHAPES[trace.meta.outline]({ ...cell, x: 1 / wide, y: 1 / high, size });
    for (const [x, y] of [...points, points[0], [null, null]]) {
      xs.push(x);
      ys.push(y);
    }
  });
  Object.assign(trace, { x: xs, y: ys });
  if (size < LEAST_LINED) trace.line.width = trace.fill ? 0.5 : Math.min(2, high / 8);
}
