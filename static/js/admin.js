// On a phone a change list is a list, not a table: each cell says which column it is of.
document.querySelectorAll("#result_list").forEach((table) => {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.querySelector(".text")?.textContent.trim());
  for (const row of table.tBodies[0].rows)
    [...row.cells].forEach((cell, column) => { if (names[column]) cell.dataset.label = names[column]; });
});

// There the box that selects every row stands alone, and says in words what it does.
document.querySelectorAll("#action-toggle").forEach((box) => {
  const label = Object.assign(document.createElement("label"), { htmlFor: box.id, className: "select-all", textContent: "Select all" });
  box.after(label);
});

// Filters stand beside a list; where they come before it, as admin.css has it, they stay folded.
if (matchMedia("(min-width: 72.01rem)").matches)
  document.querySelectorAll("#changelist-filter [data-folds]").forEach((filters) => { filters.open = true; });
