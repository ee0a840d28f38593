// An evaluation that goes on asks for its part every second until it is done.
(() => {
  const EVERY_MS = 1000;
  const isDone = () => Boolean(document.getElementById("suite-run").dataset.done);

  const refresh = window.runsight.refresher(EVERY_MS, () => {
    const url = new URL(location);
    url.searchParams.set("part", "1");
    return url;
  }, () => {
    if (isDone()) document.getElementById("suite-said").textContent = "The evaluation is done.";
    else refresh();
  });

  if (!isDone()) refresh(EVERY_MS);
})();
