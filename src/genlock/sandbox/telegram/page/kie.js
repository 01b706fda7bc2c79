// Switches for what goes wrong at the simulated Kie.ai.
import { kie } from "./hands.js";
import { button, find, node } from "./nodes.js";
import { failed } from "./notices.js";
import { world } from "./world.js";
import { say } from "./words.js";

const LOOK = 2000;
const GROUPS = ["callback", "task", "result", "file", "create", "credits", "status"];

export const kieState = {
    faults: { on: [], coming: [], chances: {} },
    kinds: [],
    credits: null,
    changed() {},
    take(said) {
        Object.assign(kieState, { faults: said.faults, kinds: said.kinds_of_faults, credits: said.credits });
        kieState.changed();
        fill();
    },
};

let timer = null;
let body = null;

const look = () => kie().then(kieState.take, troubled);

export function drawKie(tab) {
    body = tab;
    body.replaceChildren(node("div", { class: "hint" }, "…"));
    look();
}

/** As long as the panel is open: orders use up what was meant for them. */
export function watchKie(open) {
    clearInterval(timer);
    if (!open || !world.kie) return;
    timer = setInterval(look, LOOK);
    look();
}

function troubled(error) {
    if (body?.isConnected) body.replaceChildren(node("div", { class: "hint" }, error.message));
}

function fill() {
    if (!body?.isConnected) return;
    if (!find("[data-kie]", body)) {
        const groups = GROUPS.map((group) => [group, kieState.kinds.filter((kind) => kind.startsWith(`${group}_`))]);
        const lists = groups
            .filter(([, kinds]) => kinds.length)
            .map(([group, kinds]) => [node("h3", {}, say(`kie_group_${group}`)), kinds.map(line)]);
        body.replaceChildren(
            node("p", { class: "hint", data: { kie: "" } }),
            node("ul", { class: "faults" }, lists.flat(2)),
        );
    }
    find("[data-kie]", body).textContent = say("kie_hint", { n: Math.floor(kieState.credits) });
    for (const one of body.querySelectorAll("[data-fault]")) {
        one.setAttribute("aria-checked", String(kieState.faults.on.includes(one.dataset.fault)));
    }
}

function line(kind) {
    const words = say(`kie_${kind}`);
    const change = (said) => kie(said).then(kieState.take).catch(failed);
    const turn = () => change(kieState.faults.on.includes(kind) ? { off: [kind] } : { on: [kind] });
    const label = { data: { next: kind }, "aria-label": `${words}: ${say("next_order")}` };
    const next = button("next", () => change({ order: [kind] }), label, say("next_order"));
    const turning = button("switch", turn, { role: "switch", data: { fault: kind }, "aria-label": words });
    return node("li", { class: "fault" }, node("span", { class: "about" }, node("b", {}, words)), next, turning);
}
