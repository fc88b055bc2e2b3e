// What the reader has before the eyes, for all scripts of the matrix.

export const view = {
  // What is drawn: Plotly's element and the box around it, the payload of the page, and its rows
  // and columns by position and name.
  plot: null,
  box: null,
  payload: null,
  rows: null,
  columns: null,
  // The numbers of the cells, or null while they are on their way; and why they do not come.
  cells: null,
  trouble: null,
  // What is painted in the place of the picture while a window is dragged, or null: the payload of its page and, where
  // that is of another window, the codes of the cells. No number here is of that window.
  glimpse: null,
  // The cell of the keyboard, the cell whose card is held, and what the card is about.
  cursor: null,
  pinned: null,
  hovered: null,
};
export const isWall = () => document.body.classList.contains("wall");
export const isNarrow = matchMedia("(max-width: 600px)");
export const isTouched = matchMedia("(pointer: coarse)");
