// The stickers that can be sent, as a grid above the message field.
import { sendSticker, stickerUrl, stickers } from "./actions.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { view } from "./view.js";
import { getText } from "./texts.js";

let known = null;

const opened = () => find(".stickers");

export function closeStickers() {
    if (!opened()) return;
    opened().remove();
    find(".sticker-button")?.setAttribute("aria-expanded", "false");
}

/** Open or close the grid. `replyTo` returns the id of the message that the sticker replies to, and ends the reply. */
export async function toggleStickers(replyTo) {
    if (opened()) return closeStickers();
    try {
        known ??= await stickers();
    } catch (error) {
        return failed(error);
    }
    const send = (emoji) => {
        closeStickers();
        sendSticker(view.person, view.chat, emoji, replyTo()).catch(failed);
        find(".write textarea")?.focus();
    };
    const one = (emoji) =>
        button("", () => send(emoji), { "aria-label": emoji }, node("img", { src: stickerUrl(emoji), alt: "" }));
    const grid = node("div", { class: "stickers", role: "group", "aria-label": getText("stickers") }, known.map(one));
    grid.addEventListener("keydown", (event) => event.key === "Escape" && leave());
    find(".composer-wrap").append(grid);
    find(".sticker-button")?.setAttribute("aria-expanded", "true");
    return find("button", grid).focus();
}

function leave() {
    closeStickers();
    find(".sticker-button")?.focus();
}

document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".stickers, .sticker-button")) closeStickers();
});
