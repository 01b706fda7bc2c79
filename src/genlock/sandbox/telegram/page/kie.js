// Switches for the faults of the Kie.ai simulator.
import { kie } from "./actions.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { state } from "./state.js";
import { getText } from "./texts.js";

const REFRESH_MS = 2000;
const GROUPS = ["callback", "task", "result", "file", "create", "credits", "status"];

export const kieState = {
    faults: { on: [], coming: [] },
    kinds: [],
    credits: null,
    changed() {},
    take(answer) {
        Object.assign(kieState, { faults: answer.faults, kinds: answer.kinds_of_faults, credits: answer.credits });
        kieState.changed();
        fill();
    },
};

let timer = null;
let body = null;

const refresh = () => kie().then(kieState.take, showError);

export function drawKie(tab) {
    body = tab;
    body.replaceChildren(node("div", { class: "hint" }, "…"));
    refresh();
}

/** Refresh while the panel is open: orders use up the faults queued for them. */
export function watchKie(open) {
    clearInterval(timer);
    if (!open || !state.kie) return;
    timer = setInterval(refresh, REFRESH_MS);
    refresh();
}

function showError(error) {
    if (body?.isConnected) body.replaceChildren(node("div", { class: "hint" }, error.message));
}

function fill() {
    if (!body?.isConnected) return;
    if (!find("[data-kie]", body)) {
        const groups = GROUPS.map((group) => [group, kieState.kinds.filter((kind) => kind.startsWith(`${group}_`))]);
        const lists = groups
            .filter(([, kinds]) => kinds.length)
            .map(([group, kinds]) => [node("h3", {}, getText(`kie_group_${group}`)), kinds.map(line)]);
        body.replaceChildren(
            node("p", { class: "hint", data: { kie: "" } }),
            node("ul", { class: "faults" }, lists.flat(2)),
        );
    }
    find("[data-kie]", body).textContent = getText("kie_hint", { n: Math.floor(kieState.credits) });
    for (const one of body.querySelectorAll("[data-fault]")) {
        one.setAttribute("aria-checked", String(kieState.faults.on.includes(one.dataset.fault)));
    }
}

function line(kind) {
    const words = getText(`kie_${kind}`);
    const change = (body) => kie(body).then(kieState.take).catch(failed);
    const turn = () => change(kieState.faults.on.includes(kind) ? { off: [kind] } : { on: [kind] });
    const label = { data: { next: kind }, "aria-label": `${words}: ${getText("next_order")}` };
    const next = button("next", () => change({ order: [kind] }), label, getText("next_order"));
    const turning = button("switch", turn, { role: "switch", data: { fault: kind }, "aria-label": words });
    return node("li", { class: "fault" }, node("span", { class: "about" }, node("b", {}, words)), next, turning);
}
