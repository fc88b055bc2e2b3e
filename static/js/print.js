// A button that prints the page: its style sheet says what is on paper.

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) print();
});
