// The list of runs: filters apply as they are chosen, Compare waits for two ticked rows, rows change where they stand.
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

  // Live: the rows shown are brought up to date; those that would come before them are counted, and come when asked for.
  const list = document.querySelector("[data-rows]");
  const { live, asker, swap } = window.runsight;
  const TERMINAL = new Set(["completed", "failed", "cancelled"]);
  const EVERY = 1000;
  const changed = new Set();
  const asked = new Set(); // and not answered yet
  const rowOf = (id) => list.querySelector(`[data-run="${CSS.escape(id)}"]`);

  const refresh = asker(EVERY, () => {
    const address = new URL(list.dataset.rows, location);
    for (const id of changed) asked.add(id);
    changed.clear();
    for (const id of asked) address.searchParams.append("run", id);
    return address;
  }, (page) => {
    asked.clear();
    for (const row of page.querySelectorAll("[data-run]")) swap(rowOf(row.dataset.run), row);
    swap(document.getElementById("newer"), page.getElementById("newer"));
  });

  function take(run) {
    if (rowOf(run.id)) changed.add(run.id);
    else if (!("newest" in list.dataset)) return;
    refresh();
  }

  let isFirst = true;
  live("/ws/dashboard/", {
    onMessage: (message) => {
      if (message.event === "run_updated") take(message.data);
      if (message.event !== "snapshot") return;
      // What was not over when the page was drawn may be so by now.
      const open = [...list.querySelectorAll("[data-run]")].filter((row) => !TERMINAL.has(row.querySelector(".badge").dataset.word));
      for (const row of open) changed.add(row.dataset.run);
      if (open.length || !isFirst) refresh();
      isFirst = false;
    },
  });
})();
