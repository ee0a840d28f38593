// The list of runs: filters apply as they are chosen, Compare waits for two ticked rows.
(() => {
  const compare = document.querySelector("[data-needs-two]");
  const ticked = () => document.querySelectorAll("[data-select]:checked").length;

  function tell() {
    if (!compare) return;
    compare.disabled = ticked() !== 2;
    compare.title = compare.disabled ? "Select two runs to compare them (x)" : "Compare the two (c)";
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select]")) tell();
    const filters = event.target.closest("[data-filters]");
    if (filters && event.target.matches("select, input[type=date]")) filters.requestSubmit();
  });

  // An address with only the filters that are set is one that people can read and send.
  document.querySelector("[data-filters]")?.addEventListener("submit", (event) => {
    for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
  });
  window.addEventListener("pageshow", () => {
    for (const field of document.querySelector("[data-filters]")?.elements ?? []) field.disabled = false;
    tell();
  });
  tell();
})();
