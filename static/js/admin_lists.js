// On a phone a change list is a list, not a table: each cell says which column it is of.
document.querySelectorAll("#result_list").forEach((table) => {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.querySelector(".text")?.textContent.trim());
  for (const row of table.tBodies[0].rows)
    [...row.cells].forEach((cell, column) => { if (names[column]) cell.dataset.label = names[column]; });
});
