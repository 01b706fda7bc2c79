// Sending files: chosen, dropped or pasted, with a preview; several become an album.
import { send } from "./actions.js";
import { icon } from "./icons.js";
import { dialog } from "./layers.js";
import { find, node } from "./dom.js";
import { failed, toast } from "./notices.js";
import { view } from "./view.js";
import { bytes, getText } from "./texts.js";

const ALBUM_MAX = 10;
const PHOTO_MAX = 10 * 1024 * 1024;
const FILE_MAX = 50 * 1024 * 1024;
const PHOTOS = ["image/jpeg", "image/png", "image/webp", "image/bmp"];

/** Open the browser's file dialog. */
export function chooseFiles(replyTo) {
    const input = node("input", {
        type: "file",
        multiple: true,
        hidden: true,
        on: { change: () => offerFiles([...input.files], replyTo) },
    });
    document.body.append(input);
    input.addEventListener("cancel", () => input.remove());
    input.addEventListener("change", () => input.remove());
    input.click();
}

/** Preview the files before sending. */
export function offerFiles(files, replyTo = null) {
    const fitting = files.filter((file) => file.size <= FILE_MAX);
    for (const file of files)
        if (file.size > FILE_MAX) toast(getText("too_big", { name: file.name, limit: bytes(FILE_MAX) }), { bad: true });
    if (fitting.length > ALBUM_MAX) toast(getText("too_many_files"), { bad: true });
    if (fitting.length) preview(fitting.slice(0, ALBUM_MAX), replyTo);
}

function preview(files, replyTo) {
    const [person, chat] = [view.person, view.chat];
    const urls = new Map(files.map((file) => [file, URL.createObjectURL(file)]));
    let left = files;
    let plain = false;
    const title = node("h3", {});
    const list = node("div", { class: "list" });
    const caption = node("textarea", {
        rows: "1",
        maxlength: "1024",
        placeholder: getText("caption"),
        "aria-label": getText("caption"),
    });
    const choice = (value, key) =>
        node(
            "button",
            {
                type: "button",
                on: {
                    click: () => {
                        plain = value;
                        draw();
                    },
                },
            },
            getText(key),
        );
    const looks = [choice(false, "as_media"), choice(true, "as_files")];
    const pick = node("div", { class: "pick", role: "group" }, looks);

    function draw() {
        title.textContent = getText("send_title", { n: left.length });
        list.className = `list ${left.length === 1 ? "one" : ""}`;
        list.replaceChildren(...left.map(thing));
        pick.hidden = !left.some((file) => kindOf(file) !== "document");
        looks.forEach((button, place) => button.setAttribute("aria-pressed", String(plain === Boolean(place))));
    }

    function thing(file) {
        const drop = () => {
            left = left.filter((one) => one !== file);
            if (left.length) draw();
            else made.close();
        };
        const kind = plain ? "document" : kindOf(file);
        const look =
            kind === "video"
                ? node("video", { src: urls.get(file), muted: true })
                : file.type.startsWith("image/") && kind !== "document"
                  ? node("img", { src: urls.get(file), alt: file.name })
                  : `${file.name}\n${bytes(file.size)}`;
        const away =
            left.length > 1 &&
            node(
                "button",
                { class: "x", type: "button", "aria-label": getText("remove"), on: { click: drop } },
                icon("close"),
            );
        return node("div", { class: "thing" }, look, away);
    }

    async function submit() {
        made.close();
        try {
            for (const [place, things] of batches(left, plain).entries()) {
                await send(person, chat, things, { caption: place ? "" : caption.value.trim(), replyTo });
            }
        } catch (error) {
            failed(error);
        }
    }

    const go = node("button", { class: "wide", type: "button", on: { click: submit } }, getText("send"));
    const stop = node(
        "button",
        { class: "wide plain", type: "button", on: { click: () => made.close() } },
        getText("cancel"),
    );
    const content = node(
        "div",
        { class: "sending" },
        title,
        list,
        pick,
        node("label", { class: "field", style: { margin: "0" } }, caption),
        node("div", { class: "choices" }, stop, go),
    );
    const made = dialog(content, { label: getText("send") });
    made.addEventListener("close", () => urls.forEach((url) => URL.revokeObjectURL(url)));
    caption.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            submit();
        }
    });
    draw();
    caption.focus();
}

function kindOf(file) {
    if (PHOTOS.includes(file.type)) return file.size <= PHOTO_MAX ? "photo" : "document";
    if (file.type === "image/gif") return "animation";
    if (file.type === "video/mp4") return "video";
    if (file.type === "audio/ogg") return "voice";
    if (file.type.startsWith("audio/")) return "audio";
    return "document";
}

/** Split into albums: photos and videos mix; audio and documents only with their own kind. */
function batches(files, plain) {
    const family = { photo: "visual", video: "visual", audio: "audio", document: "document" };
    const made = [];
    for (const file of files) {
        const kind = plain ? "document" : kindOf(file);
        const last = made.at(-1);
        if (last && family[kind] && family[last[0].kind] === family[kind]) last.push({ kind, file });
        else made.push([{ kind, file }]);
    }
    return made;
}

/** Accept files dropped anywhere on the chat. */
export function startDropping() {
    const stage = find("#chat");
    let depth = 0;
    const carries = (event) => event.dataTransfer?.types.includes("Files") && find(".write");
    const hint = node("div", { class: "drop" }, icon("attach"), node("span", {}));
    stage.addEventListener("dragenter", (event) => {
        if (!carries(event)) return;
        depth += 1;
        hint.lastChild.textContent = getText("drop_here");
        find("#stage").append(hint);
    });
    stage.addEventListener("dragleave", (event) => {
        if (carries(event) && (depth -= 1) <= 0) hint.remove();
    });
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => event.preventDefault());
    stage.addEventListener("drop", (event) => {
        depth = 0;
        hint.remove();
        if (carries(event)) offerFiles([...event.dataTransfer.files]);
    });
}
