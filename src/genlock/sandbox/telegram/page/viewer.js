// Full-screen viewer for the photos of a chat.
import { fileUrl } from "./actions.js";
import { icon, roundButton } from "./icons.js";
import { node } from "./dom.js";
import { view } from "./view.js";
import { kindOf, messagesOf } from "./state.js";
import { getText } from "./texts.js";

/** Open the photo of a message. */
export function enlarge(message) {
    const pictures = messagesOf(view.person, view.chat).filter((one) => kindOf(one) === "photo");
    let place = pictures.findIndex((one) => one.message_id === message.message_id);
    const image = node("img", { alt: "" });
    const words = node("div", { class: "words" });
    const save = node("a", { class: "round", "aria-label": getText("save"), title: getText("save") }, icon("download"));
    const left = roundButton("left", getText("previous"), () => go(-1), "side left");
    const right = roundButton("right", getText("next"), () => go(1), "side right");
    const shut = roundButton("close", getText("close"), () => made.close());
    const made = node(
        "dialog",
        { class: "viewer", "aria-label": getText("kind_photo") },
        image,
        left,
        right,
        words,
        node("div", { class: "bar" }, save, shut),
    );

    function go(step) {
        place = Math.max(0, Math.min(pictures.length - 1, place + step));
        const url = fileUrl(pictures[place].photo.at(-1).file_id);
        Object.assign(image, { src: url, alt: pictures[place].caption ?? getText("kind_photo") });
        Object.assign(save, { href: url, download: `photo_${pictures[place].message_id}.jpg` });
        words.textContent = pictures[place].caption ?? "";
        left.hidden = place === 0;
        right.hidden = place === pictures.length - 1;
    }

    go(0);
    made.addEventListener("close", () => made.remove());
    made.addEventListener("click", (event) => event.target === made && made.close());
    made.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step) go(step);
    });
    document.body.append(made);
    made.showModal();
}
