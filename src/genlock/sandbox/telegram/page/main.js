// The page begins here.
import { startAppearance } from "./appearance.js";
import { startDropping } from "./attach.js";
import { redrawComposer, startComposer, utter } from "./composer.js";
import { drawHead } from "./head.js";
import { close } from "./layers.js";
import { openMessageMenu } from "./message_menu.js";
import { find } from "./nodes.js";
import { redrawPanel, startPanel } from "./panel.js";
import { planSidebar } from "./sidebar.js";
import { redraw, startThread } from "./thread.js";
import { connect } from "./wire.js";
import { say } from "./words.js";

function drawAll() {
    close();
    planSidebar();
    drawHead();
    redraw();
    redrawComposer();
    redrawPanel();
    find("#thread").setAttribute("aria-label", say("message"));
}

function online(yes) {
    find("#banner").hidden = yes;
    find("#banner").textContent = say("disconnected");
    document.documentElement.dataset.online = String(yes);
}

/** What lies over the chat lies over its middle. */
new ResizeObserver(() => {
    const box = find("#chat").getBoundingClientRect();
    document.documentElement.style.setProperty("--middle", box.width ? `${box.left + box.width / 2}px` : "50%");
}).observe(find("#chat"));

startAppearance(drawAll);
startThread({ run: utter, open: openMessageMenu });
startComposer();
startDropping();
startPanel();
await connect(online);
