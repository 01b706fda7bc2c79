// Takes simulated providers down and up, and shows which provider was asked to make each order.
import { providers } from "./actions.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { state } from "./state.js";
import { getText, known } from "./texts.js";

const REFRESH_MS = 2000;

let timer = null;
let body = null;

const refresh = () => providers().then(fill, showError);

export function drawProviders(tab) {
    body = tab;
    body.replaceChildren(
        node("p", { class: "hint" }, getText("provider_hint")),
        node("ul", { class: "faults", data: { providers: "" } }),
        node("ul", { class: "faults", data: { orders: "" } }),
    );
    refresh();
}

/** Refresh while the panel is open: orders go on by themselves. */
export function watchProviders(open) {
    clearInterval(timer);
    if (!open || !state.providers) return;
    timer = setInterval(() => shown() && refresh(), REFRESH_MS);
}

const shown = () => body?.isConnected && find("[data-providers]", body);

function showError(error) {
    if (shown()) body.firstChild.textContent = error.message;
}

function fill(answer) {
    if (!shown()) return;
    body.firstChild.textContent = getText("provider_hint");
    const titles = new Map(answer.providers.map(({ name, title }) => [name, title]));
    const list = find("[data-providers]", body);
    if (list.children.length !== answer.providers.length) list.replaceChildren(...answer.providers.map(line));
    for (const one of answer.providers) update(find(`[data-provider="${one.name}"]`, list), one);
    const orders = answer.orders.map((order) => orderLine(order, titles));
    const none = node("li", { class: "fault" }, node("small", {}, getText("provider_no_orders")));
    find("[data-orders]", body).replaceChildren(
        node("h3", {}, getText("provider_orders")),
        ...(orders.length ? orders : [none]),
    );
}

function line({ name, title }) {
    const turn = () => {
        const up = find(".switch", row).getAttribute("aria-checked") !== "true";
        providers({ name, up }).then(fill).catch(failed);
    };
    const turning = button("switch", turn, { role: "switch", "aria-label": title });
    const about = node("span", { class: "about" }, node("b", {}, title), node("small", {}));
    const row = node("li", { class: "fault", data: { provider: name } }, about, turning);
    return row;
}

function update(row, { up, tasks }) {
    const words = [getText(up ? "provider_up" : "provider_down"), getText("provider_tasks", { n: tasks })];
    find("small", row).textContent = words.join(" · ");
    find(".switch", row).setAttribute("aria-checked", String(up));
}

const reason = (code) => (known(`code_${code}`) ? getText(`code_${code}`) : code);

function orderLine({ job, attempts, delivered }, titles) {
    const path = attempts.map(({ provider, code }) => `${titles.get(provider) ?? provider}${code ? ` (${reason(code)})` : ""}`);
    const words = [path.join(" → "), getText(delivered ? "provider_delivered" : "provider_working")];
    const about = node("span", { class: "about" }, node("b", {}, getText("provider_order", { n: job })));
    about.append(node("small", {}, words.join(" · ")));
    return node("li", { class: "fault", data: { order: job } }, about);
}
