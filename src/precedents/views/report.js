"use strict";
// The columns of the table of verdicts sort by a click on their heading: best first, then worst first.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, place) => parseFloat(row.cells[place].dataset.value ?? "-Infinity");
  headings.forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const reverse = heading.getAttribute("aria-sort") === "descending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", reverse ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      const apart = (a, b) => (a === b ? 0 : a < b ? 1 : -1);
      rows.sort((a, b) => (reverse ? -1 : 1) * apart(key(a, place), key(b, place)));
      table.tBodies[0].append(...rows);
    });
  });
}
