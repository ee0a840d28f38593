// Hover, click and arrow keys for trend charts. Works on whatever is on the page, also after a swap.
(() => {
  let shown = null; // {chart, mark}

  const marks = (chart) => [...chart.querySelectorAll(".chart__plot > .mark")];

  function centre(mark, plot) {
    const shape = mark.lastElementChild;
    return (parseFloat(shape.getAttribute("cx") ?? shape.getAttribute("x")) / 100) * plot.width;
  }

  function height(mark) {
    const shape = mark.lastElementChild;
    return parseFloat(shape.getAttribute("cy") ?? shape.getAttribute("y"));
  }

  function nearest(chart, clientX) {
    const plot = chart.querySelector(".chart__plot").getBoundingClientRect();
    const all = marks(chart);
    if (!all.length) return null;
    // Bins are evenly spaced, so the place gives the index without measuring every mark.
    const index = Math.floor(((clientX - plot.left) / plot.width) * all.length);
    return all[Math.min(Math.max(index, 0), all.length - 1)];
  }

  function words(mark) {
    mark.dataset.tip ??= mark.querySelector("title")?.textContent ?? "";
    // Two tooltips for one mark are one too many: ours replaces the browser's, the name stays.
    mark.setAttribute("aria-label", mark.dataset.tip);
    mark.querySelector("title")?.remove();
    return mark.dataset.tip.split(" · ");
  }

  function show(chart, mark) {
    if (shown?.mark === mark) return;
    hide();
    const [head, ...rest] = words(mark);
    const tip = document.createElement("div");
    tip.className = "chart__tip";
    tip.setAttribute("aria-hidden", "true");
    const title = document.createElement("b");
    title.textContent = head;
    tip.append(title, rest.join("\n"));
    chart.append(tip);
    mark.classList.add("is-near");
    const plot = chart.querySelector(".chart__plot");
    const area = plot.getBoundingClientRect();
    const box = chart.getBoundingClientRect();
    const x = centre(mark, area);
    const left = area.left - box.left + x;
    const isRight = left + tip.offsetWidth + 16 > box.width;
    tip.style.transform = `translate(${Math.max(isRight ? left - tip.offsetWidth - 12 : left + 12, 0)}px, ${Math.max(height(mark) - tip.offsetHeight / 2, 0)}px)`;
    shown = { chart, mark, tip };
  }

  function hide() {
    shown?.tip.remove();
    shown?.mark.classList.remove("is-near");
    shown = null;
  }

  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.(".chart__plot");
    const chart = plot?.closest('[data-chart="trend"]');
    if (!chart) { if (shown && !shown.mark.matches(":focus-visible")) hide(); return; }
    const mark = event.target.closest(".mark") ?? nearest(chart, event.clientX);
    if (mark) show(chart, mark);
  });

  document.addEventListener("click", (event) => {
    const plot = event.target.closest?.('[data-chart="trend"] .chart__plot');
    if (!plot || event.target.closest("a")) return;
    const mark = shown?.mark ?? nearest(plot.closest(".chart"), event.clientX); // pressing may have taken the focus, and the tip
    const href = mark?.getAttribute("href");
    if (href) location.assign(href);
  });

  document.addEventListener("focusin", (event) => {
    const mark = event.target.closest?.(".chart__plot > .mark");
    if (mark) show(mark.closest(".chart"), mark);
    else if (shown) hide();
  });

  // Each chart is one stop of the Tab key; what is picked for it is in sight, where its row is scrolled.
  function settle() {
    for (const picked of document.querySelectorAll(".trend-pickers [aria-current]")) picked.parentElement.scrollLeft = picked.offsetLeft - picked.parentElement.offsetLeft - 40;
    for (const chart of document.querySelectorAll('[data-chart="trend"]:not([data-ready])')) {
      marks(chart).slice(0, -1).forEach((mark) => mark.setAttribute("tabindex", "-1"));
      chart.dataset.ready = "";
    }
  }
  settle();
  document.addEventListener("runsight:swap", settle);

  document.addEventListener("keydown", (event) => {
    const mark = event.target.closest?.(".chart__plot > a.mark");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!mark || !step) return;
    const all = marks(mark.closest(".chart")).filter((one) => one.matches("a"));
    const next = all[all.indexOf(mark) + step];
    if (!next) return;
    mark.setAttribute("tabindex", "-1");
    next.removeAttribute("tabindex");
    next.focus();
    event.preventDefault();
  });
})();
