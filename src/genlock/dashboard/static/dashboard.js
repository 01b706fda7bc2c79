// Progressive enhancement: every page also works without this file.
"use strict";

// The server writes times in this zone.
(function rememberZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = document.cookie.split("; ").some((one) => one === `genlock_zone=${zone}`);
  if (zone && !known) {
    document.cookie = `genlock_zone=${zone}; path=/dashboard; max-age=31536000; samesite=lax`;
    if (document.body.dataset.zone && document.body.dataset.zone !== zone) location.reload();
  }
})();

// A one-time link logs in by itself; scanners that open it do not run this.
document.querySelectorAll("form[data-submit-at-once]").forEach((form) => form.requestSubmit());

// A button that was pressed cannot be pressed again while the answer is on its way.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (event.submitter && event.submitter.matches("[data-download]")) return; // the page stays
  setTimeout(() => form.querySelectorAll("button").forEach((one) => (one.disabled = true)));
});
addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("form button").forEach((one) => (one.disabled = false));
});

// Escape and a press outside close an open menu or confirmation.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelectorAll("details[data-popup][open]").forEach((one) => {
    one.open = false;
    one.querySelector("summary").focus();
  });
});
document.addEventListener("click", (event) => {
  document.querySelectorAll("details[data-popup][open]").forEach((one) => {
    if (!one.contains(event.target)) one.open = false;
  });
});

// A confirmation that does not fit on one side opens to the other.
document.addEventListener("toggle", (event) => {
  const panel = event.target.matches("details.action[open]") && event.target.querySelector(":scope > .panel");
  if (!panel) return;
  const place = panel.getBoundingClientRect();
  if (place.right > document.documentElement.clientWidth) event.target.classList.add("right");
  else if (place.left < document.getElementById("main").getBoundingClientRect().left) event.target.classList.remove("right");
}, true);

// The box in the head of a table selects every row of it.
document.addEventListener("change", (event) => {
  const box = event.target;
  if (!box.matches("input[data-select-all]")) return;
  box.closest("form").querySelectorAll(`input[name="${box.dataset.selectAll}"]`).forEach((one) => (one.checked = box.checked));
});

// Filters apply when a choice is made; without this there is the button.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto-submit]");
  if (form && event.target.matches("select")) form.requestSubmit();
});

// Live parts: <div data-live="URL"> is replaced by what the server sends.
document.querySelectorAll("[data-live]").forEach((part) => {
  let wait = 2000;
  (function connect() {
    const stream = new EventSource(part.dataset.live);
    stream.addEventListener("message", (event) => {
      part.innerHTML = event.data;
    });
    stream.addEventListener("release", (event) => {
      document.getElementById("new-release").hidden = event.data === document.body.dataset.release;
    });
    stream.addEventListener("open", () => {
      part.classList.remove("stale");
      wait = 2000;
    });
    stream.addEventListener("error", () => {
      part.classList.add("stale");
      if (stream.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
      setTimeout(connect, wait); // it gave up, because a proxy answered while the service was restarting
      wait = Math.min(wait * 2, 60000);
    });
  })();
});

// A part that asks the server again and again says so while the server does not answer.
function showAnswering(answers) {
  document.getElementById("no-answer").hidden = answers;
}
document.addEventListener("htmx:sendError", () => showAnswering(false));
document.addEventListener("htmx:afterRequest", (event) => {
  const status = event.detail.xhr ? event.detail.xhr.status : 0;
  if (status) showAnswering(status < 500);
});
