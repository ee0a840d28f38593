// A run's page: each event makes it ask for what changed, and a block that is chosen opens in the inspector.
(() => {
  const { live, refresher, swap, toast } = window.runsight;
  const page = document.querySelector("[data-run-page]");
  const EVERY = 400;
  const GATHER = 60; // what happens at the same moment is asked for at once
  const STAY = 20000; // the effects of a run's end, such as a regression, still arrive
  const ENDS = ["run_completed", "run_failed", "run_cancelled"];

  // Whole texts and copies, on demand; on the page of one block, too.

  // In pieces of many lines, of which the browser lays out only those in sight.
  function* pieces(text) {
    for (let start = 0; start < text.length;) {
      const lineEnd = text.indexOf("\n", start + 20000);
      let end = lineEnd < 0 || lineEnd > start + 40000 ? start + 20000 : lineEnd + 1;
      if (/[\uD800-\uDBFF]/.test(text[end - 1])) end += 1; // not through a letter
      const piece = document.createElement("span");
      piece.className = "piece";
      piece.textContent = text.slice(start, end);
      yield piece;
      start = end;
    }
  }

  function showWhole(link, text) {
    const box = document.querySelector(link.dataset.loadWhole);
    box.replaceChildren(...pieces(text));
    const panel = box.closest('[role="tabpanel"]');
    if (panel) document.getElementById(panel.getAttribute("aria-labelledby"))?.click();
    // Of the two links that lead here, the sentence around the one beside the text is no longer true.
    for (const one of document.querySelectorAll(`[data-load-whole="${link.dataset.loadWhole}"]`)) (panel && !panel.contains(one) ? one : one.parentElement).remove();
  }

  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("[data-load-whole], [data-copy-from]");
    if (!link) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.status);
      const text = await answer.text();
      if (link.matches("[data-load-whole]")) return showWhole(link, text);
      await navigator.clipboard.writeText(text);
      toast("Copied: paste it under eval.cases of the workflow.", "success");
    } catch {
      location.assign(link.href);
    }
  });

  if (!page) return;

  // The inspector

  let isChosen = false; // by a person, not by what happens in the run
  const inspected = () => document.querySelector("[data-inspected]")?.dataset ?? {};
  const rows = () => [...page.querySelectorAll("[data-block]")];
  const rowOf = (block) => rows().find((row) => row.dataset.block === block);

  async function open(pk, isByKey = false) {
    isChosen = true;
    try {
      if (!await swap(`${page.dataset.nodesUrl}${pk}/?part=1`, { into: "inspector" })) return;
    } catch {
      toast("This block could not be loaded. Try again in a moment.", "error");
      return;
    }
    history.replaceState(null, "", `#node-${pk}`);
    const inspector = document.getElementById("inspector");
    if (isByKey) inspector.querySelector("#inspector-title")?.focus();
    if (inspector.getBoundingClientRect().top > innerHeight * 0.8) inspector.scrollIntoView({ block: "start" });
  }

  function openHash() {
    let hash = location.hash;
    try { hash = decodeURIComponent(hash); } catch { return; } // nothing of ours
    const [, kind, name] = /^#(node|block)-(.+)$/.exec(hash) ?? [];
    const pk = kind === "node" ? Number(name) : Number(kind && rowOf(name)?.dataset.node);
    if (pk && String(pk) !== inspected().inspected) open(pk);
  }

  function mark() {
    for (const row of rows()) row.ariaCurrent = row.dataset.block === inspected().inspectedBlock ? "true" : null;
  }

  page.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest?.("[data-draw]")) {
      event.preventDefault();
      page.dataset.partsUrl += "&graph=1";
      swap(`${address()}&part=all`, { into: "run-graph" }).catch((error) => toast(error.message, "error"));
      return;
    }
    const drawn = event.target.closest?.("[data-node-id]");
    const link = drawn ? rowOf(drawn.dataset.nodeId) : event.target.closest?.("[data-node]");
    if (!link) return;
    event.preventDefault();
    if (link.dataset.node) open(link.dataset.node, event.detail === 0);
  });
  page.addEventListener("runsight:swap", ({ target }) => {
    mark();
    if (!target.matches(".node-row")) return;
    void target.offsetWidth; // lets the animation begin again
    target.classList.add("is-fresh");
  });
  window.addEventListener("hashchange", openHash);
  mark();
  openHash();

  // Events: the log says which of them are shown, so the server knows what has changed since.

  let heard = 0;
  const logged = () => Number(document.getElementById("log").lastElementChild?.dataset.seq ?? 0);

  function address() {
    const url = new URL(page.dataset.partsUrl, location);
    url.searchParams.set("seq", logged());
    url.searchParams.set("block", inspected().inspectedBlock ?? "");
    if (isChosen) url.searchParams.set("chosen", "1");
    return url;
  }

  const refresh = refresher(EVERY, address, (parts) => {
    for (const news of parts.querySelectorAll("[data-toast]")) toast(news.textContent, "warning");
    if (logged() < heard) refresh();
  });

  function onMessage({ event, seq }) {
    heard = seq;
    refresh(GATHER);
    if (ENDS.includes(event)) setTimeout(() => socket.close(), STAY);
  }

  const socket = page.dataset.live === "yes" && live(`/ws/runs/${page.dataset.runPage}/`, { after: Number(page.dataset.lastSeq), onMessage });
})();
