// Pictures, films, sound and files inside a bubble.
import { fileUrl } from "./hands.js";
import { icon } from "./icons.js";
import { node } from "./nodes.js";
import { enlarge } from "./viewer.js";
import { kindOf } from "./world.js";
import { bytes, duration, say } from "./words.js";

const WIDTH = 420;
const HEIGHT = 440;
const NARROWEST = 180;

/** How many pictures stand in each row of an album. */
const ROWS = {
    2: [2],
    3: [1, 2],
    4: [2, 2],
    5: [2, 3],
    6: [3, 3],
    7: [2, 2, 3],
    8: [2, 3, 3],
    9: [3, 3, 3],
    10: [2, 4, 4],
};

export const isVisual = (message) => ["photo", "video", "animation"].includes(kindOf(message));

/** The media of one message, or null. */
export function mediaOf(message) {
    const kind = kindOf(message);
    return MAKERS[kind] ? marked(MAKERS[kind](message[kind], message), message) : null;
}

/** So that a row that is drawn again keeps what is playing. */
function marked(made, message) {
    const media = message[kindOf(message)];
    made.dataset.file = (Array.isArray(media) ? media.at(-1) : media).file_id;
    return made;
}

const MAKERS = {
    photo: (sizes, message) => sized(picture(message), sizes.at(-1)),
    video: (video, message) => sized(film(video, message), video),
    animation: (animation, message) => sized(loop(animation, message), animation),
    audio: (audio) =>
        player(
            audio,
            [audio.performer, audio.title].filter(Boolean).join(" – ") || audio.file_name || say("kind_audio"),
        ),
    voice: (voice) => player(voice, say("kind_voice")),
    document: (file) => paper(file),
};

/** Several pictures in one bubble, or files below each other. */
export function albumOf(messages) {
    if (!messages.every(isVisual)) return messages.map(mediaOf);
    const rows = ROWS[messages.length] ?? messages.map(() => 1);
    const tiles = [];
    let place = 0;
    for (const count of rows) {
        for (const message of messages.slice(place, place + count)) {
            const tile = marked(TILES[kindOf(message)](message[kindOf(message)], message), message);
            tile.style.gridColumn = `span ${12 / count}`;
            tile.style.setProperty("--shape", count === 1 ? 1.6 : count === 2 ? 1.1 : 1);
            tiles.push(tile);
        }
        place += count;
    }
    return [node("div", { class: "album" }, tiles)];
}

const TILES = {
    photo: (_, message) => picture(message),
    video: (video, message) => film(video, message),
    animation: (one, message) => loop(one, message),
};

/** As large as fits, in the shape that the media has, so that nothing jumps when it arrives. */
function sized(made, { width = 320, height = 320 }) {
    const scale = Math.min(WIDTH / width, HEIGHT / height, Math.max(1, 240 / Math.max(width, height)));
    const shown = Math.max(NARROWEST, Math.round(width * scale));
    made.style.width = `${shown}px`;
    made.style.aspectRatio = `${shown} / ${Math.max(80, Math.round(height * scale))}`;
    return made;
}

function picture(message) {
    const url = fileUrl(message.photo.at(-1).file_id);
    const image = node("img", {
        src: url,
        alt: message.caption ?? say("kind_photo"),
        decoding: "async",
        on: { load: () => image.classList.add("loaded") },
    });
    const open = () => enlarge(message);
    const made = node("div", { class: "media", role: "button", tabindex: "0", "aria-label": say("enlarge") }, image);
    return veiled(made, message, open);
}

function film(video, message) {
    const player = node("video", {
        src: `${fileUrl(video.file_id)}#t=0.001`,
        preload: "metadata",
        playsinline: true,
        "aria-label": message.caption ?? say("kind_video"),
    });
    const start = node(
        "button",
        { class: "play", type: "button", "aria-label": say("play"), on: { click: () => player.play() } },
        icon("playing"),
    );
    const tag = node("span", { class: "tag" }, duration(video.duration));
    player.addEventListener("play", () => {
        alone(player);
        player.controls = true;
        start.hidden = tag.hidden = true;
    });
    return veiled(node("div", { class: "media" }, player, start, tag), message);
}

function loop(animation, message) {
    const url = fileUrl(animation.file_id);
    const label = message.caption ?? say("kind_animation");
    const moving =
        animation.mime_type === "image/gif"
            ? node("img", { src: url, alt: label, class: "loaded" })
            : node("video", { src: url, autoplay: true, loop: true, playsinline: true, "aria-label": label });
    moving.muted = true;
    return veiled(node("div", { class: "media" }, moving, node("span", { class: "tag" }, "GIF")), message);
}

/** A picture that hides behind a spoiler is shown by the first tap; others do what a tap does. */
function veiled(made, message, open = () => {}) {
    if (message.has_media_spoiler) made.classList.add("hidden-by-spoiler");
    const tap = (event) => {
        if (made.classList.contains("hidden-by-spoiler")) {
            event.preventDefault();
            event.stopPropagation();
            made.classList.remove("hidden-by-spoiler");
        } else open();
    };
    made.addEventListener("click", tap, true);
    made.addEventListener("keydown", (event) => event.key === "Enter" && event.target === made && tap(event));
    return made;
}

let sounding = null;

/** Only one thing plays at a time. */
function alone(player) {
    if (sounding && sounding !== player) sounding.pause();
    sounding = player;
}

function player(sound, title) {
    const audio = node("audio", { src: fileUrl(sound.file_id), preload: "metadata" });
    const facts = node("div", { class: "facts" }, duration(sound.duration));
    const seek = node("input", {
        class: "seek",
        type: "range",
        min: "0",
        max: "1000",
        value: "0",
        "aria-label": say("position"),
    });
    const button = node("button", { class: "disc", type: "button", "aria-label": say("play") }, icon("playing"));
    const whole = () => (Number.isFinite(audio.duration) ? audio.duration : sound.duration) || 1;
    const draw = () => {
        button.replaceChildren(icon(audio.paused ? "playing" : "stopped"));
        button.setAttribute("aria-label", say(audio.paused ? "play" : "pause"));
        const share = audio.currentTime / whole();
        seek.value = String(share * 1000);
        seek.style.setProperty("--done", `${share * 100}%`);
        facts.textContent = audio.currentTime
            ? `${duration(audio.currentTime)} / ${duration(whole())}`
            : duration(whole());
    };
    button.addEventListener("click", () => (audio.paused ? audio.play() : audio.pause()));
    seek.addEventListener("input", () => (audio.currentTime = (seek.value / 1000) * whole()));
    for (const event of ["play", "pause", "timeupdate", "loadedmetadata", "ended"]) audio.addEventListener(event, draw);
    audio.addEventListener("play", () => alone(audio));
    return node(
        "div",
        { class: "file" },
        button,
        node("div", { class: "about" }, node("div", { class: "name" }, title), seek, facts),
        audio,
    );
}

function paper(file) {
    const name = file.file_name ?? say("kind_document");
    const ending = /\.(\w{1,4})$/u.exec(name)?.[1] ?? "";
    const disc = node("span", { class: "disc sheet", "aria-hidden": "true" }, ending || icon("download"));
    const facts = node("div", { class: "facts" }, `${bytes(file.file_size)} · ${say("download")}`);
    return node(
        "a",
        { class: "file", href: fileUrl(file.file_id), download: name, title: say("download") },
        disc,
        node("div", { class: "about" }, node("div", { class: "name" }, name), facts),
    );
}
