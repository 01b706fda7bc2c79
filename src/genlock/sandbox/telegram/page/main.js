// Entry point of the page.
import { startAppearance } from "./appearance.js";
import { startDropping } from "./attach.js";
import { redrawComposer, startComposer, sendMessageText } from "./composer.js";
import { drawHead } from "./chat_header.js";
import { close } from "./layers.js";
import { openMessageMenu } from "./message_menu.js";
import { find } from "./dom.js";
import { redrawPanel, startPanel } from "./panel.js";
import { planSidebar } from "./sidebar.js";
import { redraw, startThread } from "./thread.js";
import { connect } from "./connection.js";
import { getText } from "./texts.js";

function drawAll() {
    close();
    planSidebar();
    drawHead();
    redraw();
    redrawComposer();
    redrawPanel();
    find("#thread").setAttribute("aria-label", getText("message"));
}

function online(yes) {
    find("#banner").hidden = yes;
    find("#banner").textContent = getText("disconnected");
    document.documentElement.dataset.online = String(yes);
}

/** Overlays are centred over the chat. */
new ResizeObserver(() => {
    const box = find("#chat").getBoundingClientRect();
    document.documentElement.style.setProperty("--middle", box.width ? `${box.left + box.width / 2}px` : "50%");
}).observe(find("#chat"));

startAppearance(drawAll);
startThread({ run: sendMessageText, open: openMessageMenu });
startComposer();
startDropping();
startPanel();
await connect(online);
