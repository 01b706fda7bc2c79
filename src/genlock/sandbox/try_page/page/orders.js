// How an order is shown: its state, its progress, what became of the money, and its results.

import { button, node } from "./dom.js";
import { credits, explain, text } from "./texts.js";

export const FINAL = ["succeeded", "failed", "canceled", "expired"];
const PROGRESS_MAX = 0.95;

/** A job of the service as a card. `titles` are those of models; `cancel` ends the job. */
export function jobCard(job, { titles, cancel }) {
    const isOpen = !FINAL.includes(job.status);
    const error = node("p", { class: "error", role: "alert", hidden: true });
    const stop = button("plain", async () => {
        stop.disabled = true;
        const problem = await cancel(job);
        stop.disabled = false;
        error.hidden = !problem;
        error.textContent = problem ? text("cancel_failed", { why: explain(problem) }) : "";
    }, text("cancel"));
    return node(
        "li",
        { class: "card order", id: job.id },
        node("div", { class: "row" }, node("strong", {}, titles.get(job.model) || job.model), node("span", { class: `badge ${job.status}` }, text(job.status))),
        node("p", { class: "prompt" }, node("bdi", {}, summary(job.input))),
        isOpen ? progress(job) : null,
        job.error ? node("p", {}, job.error.message) : null,
        node("p", { class: "quiet" }, money(job)),
        job.results.length ? node("div", { class: "results" }, job.results.map((result) => resultView(result))) : null,
        isOpen ? node("div", { class: "row" }, stop) : null,
        error,
    );
}

/** What became of the money of a job. */
export function money(job) {
    if (job.charged) return text("money_charged", { n: credits(job.price) });
    if (!FINAL.includes(job.status)) return text("money_held", { n: credits(job.price) });
    if (job.late || job.status === "succeeded") return text("late");
    return job.price ? text("money_released", { n: credits(job.price) }) : text("money_free");
}

/** An order that was sent and is not answered, or was refused. */
export function pendingCard(order, { titles, state, problem, dismiss }) {
    const words = problem ? text("refused", { why: explain(problem) }) : text(state);
    return node(
        "li",
        { class: "card order", id: `pending-${order.key}` },
        node("div", { class: "row" }, node("strong", {}, titles.get(order.model) || order.model)),
        node("p", { class: "prompt" }, node("bdi", {}, summary(order.input))),
        problem ? null : node("progress", { "aria-label": text("progress") }),
        node("p", problem ? { class: "error", role: "alert" } : { class: "quiet" }, words),
        problem ? node("div", { class: "row" }, node("span", { class: "quiet" }, text("nothing_charged")), button("plain", dismiss, "OK")) : null,
    );
}

function summary(input) {
    const words = Object.values(input || {}).filter((value) => typeof value === "string" && !value.startsWith("file_"));
    return words.reduce((longest, one) => (one.length > longest.length ? one : longest), "").slice(0, 200);
}

/** A bar that follows the expected time; the service tells when it is really done. */
function progress(job) {
    const bar = node("progress", { max: 1, "aria-label": text("progress") });
    if (!job.expected_seconds) return bar;
    const move = () => {
        const share = (Date.now() - Date.parse(job.created_at)) / 1000 / job.expected_seconds;
        bar.value = Math.min(PROGRESS_MAX, Math.max(job.progress || 0, share, 0.02));
        if (bar.isConnected) setTimeout(move, 500);
    };
    setTimeout(move);
    return bar;
}

/** The signed link of a result, as an address of this origin: it works without the key for an hour. */
function address(result) {
    const { pathname, search } = new URL(result.link, location.href);
    return pathname.startsWith("/v1/jobs/") ? pathname + search : "";
}

function resultView(result) {
    const label = text("result", { n: result.index + 1 });
    const gone = (event) => event.target.replaceWith(node("p", { class: "quiet" }, text("gone")));
    const src = address(result);
    const on = { error: gone };
    const shown = {
        image: () => node("img", { src, alt: label, loading: "lazy", on }),
        video: () => node("video", { src, controls: true, playsinline: true, preload: "metadata", "aria-label": label, on }),
        audio: () => node("audio", { src, controls: true, preload: "metadata", "aria-label": label, on }),
        text: () => node("pre", { tabindex: 0, "aria-label": label }, result.text),
    }[result.kind];
    const link = node("a", { href: src, target: "_blank", rel: "noopener noreferrer" }, text("open"));
    return node("figure", {}, shown ? shown() : null, node("figcaption", {}, link));
}
