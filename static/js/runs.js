// The list of runs: filters apply as they are chosen, and Compare waits for two ticked rows.
(() => {
  const compare = document.querySelector("[data-needs-two]");
  const filters = document.querySelector("[data-filters]");

  function update() {
    if (!compare) return;
    compare.disabled = document.querySelectorAll("[data-select]:checked").length !== 2;
    compare.title = compare.disabled ? "Select two runs to compare them (x)" : "Compare the two (c)";
  }

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-select]")) update();
    if (filters?.contains(target) && target.matches("select, input[type=date]")) filters.requestSubmit();
  });

  // An address with only the filters that are set is one that people can read and send.
  filters?.addEventListener("submit", () => {
    for (const field of filters.elements) if (field.name && !field.value) field.disabled = true;
  });
  window.addEventListener("pageshow", () => {
    for (const field of filters?.elements ?? []) field.disabled = false;
    update();
  });
  update();
})();
