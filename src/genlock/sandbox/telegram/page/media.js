// Photos, videos, audio and documents inside a bubble.
import { fileUrl } from "./actions.js";
import { icon } from "./icons.js";
import { node } from "./dom.js";
import { enlarge } from "./viewer.js";
import { kindOf } from "./state.js";
import { bytes, duration, getText } from "./texts.js";

const WIDTH = 420;
const HEIGHT = 440;
const NARROWEST = 180;

/** Number of tiles in each row of an album, by its size. */
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

export const isVisual = (message) => ["photo", "video", "video_note", "animation", "sticker"].includes(kindOf(message));

/** The media of one message, or null. */
export function mediaOf(message) {
    const kind = kindOf(message);
    return MAKERS[kind] ? marked(MAKERS[kind](message[kind], message), message) : null;
}

/** Mark the node with its file id, so that a redraw can keep a playing player. */
function marked(made, message) {
    const media = message[kindOf(message)];
    made.dataset.file = (Array.isArray(media) ? media.at(-1) : media).file_id;
    return made;
}

const MAKERS = {
    photo: (sizes, message) => sized(picture(message), sizes.at(-1)),
    video: (video, message) => sized(videoTile(video, message), video),
    video_note: (note, message) => sized(videoTile(note, message), { width: note.length, height: note.length }),
    animation: (animation, message) => sized(animationTile(animation, message), animation),
    audio: (audio) =>
        player(
            audio,
            [audio.performer, audio.title].filter(Boolean).join(" – ") || audio.file_name || getText("kind_audio"),
        ),
    voice: (voice) => player(voice, getText("kind_voice")),
    document: (file) => documentLink(file),
    sticker: ({ file_id: id, emoji }) =>
        node("div", { class: "sticker" }, node("img", { src: fileUrl(id), alt: emoji ?? getText("kind_sticker") })),
};

/** A small picture of a message for quotes, or null. */
export function thumbnailOf(message) {
    const kind = kindOf(message);
    const media = message[kind];
    const image = (id) => node("span", { class: "thumb", style: { "background-image": `url("${fileUrl(id)}")` } });
    if (message.has_media_spoiler) return null;
    if (kind === "photo") return image((media.find((size) => size.width >= 90) ?? media.at(-1)).file_id);
    if (kind === "sticker") return image(media.file_id);
    if (media?.thumbnail) return image(media.thumbnail.file_id);
    return null;
}

/** Photos and videos as tiles, other files below each other. */
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
    video: (video, message) => videoTile(video, message),
    animation: (one, message) => animationTile(one, message),
};

/** Set the size in advance, so that the layout does not jump when the media has loaded. */
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
        alt: message.caption ?? getText("kind_photo"),
        decoding: "async",
        on: { load: () => image.classList.add("loaded") },
    });
    const open = () => enlarge(message);
    const made = node("div", { class: "media", role: "button", tabindex: "0", "aria-label": getText("enlarge") }, image);
    return withSpoiler(made, message, open);
}

function videoTile(video, message) {
    const player = node("video", {
        src: `${fileUrl(video.file_id)}#t=0.001`,
        preload: "metadata",
        playsinline: true,
        "aria-label": message.caption ?? getText("kind_video"),
    });
    const start = node(
        "button",
        { class: "play", type: "button", "aria-label": getText("play"), on: { click: () => player.play() } },
        icon("playing"),
    );
    const tag = node("span", { class: "tag" }, duration(video.duration));
    player.addEventListener("play", () => {
        pauseOthers(player);
        player.controls = true;
        start.hidden = tag.hidden = true;
    });
    return withSpoiler(node("div", { class: "media" }, player, start, tag), message);
}

function animationTile(animation, message) {
    const url = fileUrl(animation.file_id);
    const label = message.caption ?? getText("kind_animation");
    const moving =
        animation.mime_type === "image/gif"
            ? node("img", { src: url, alt: label, class: "loaded" })
            : node("video", { src: url, autoplay: true, loop: true, playsinline: true, "aria-label": label });
    moving.muted = true;
    return withSpoiler(node("div", { class: "media" }, moving, node("span", { class: "tag" }, "GIF")), message);
}

/** The first tap reveals a spoiler; later taps run `open`. */
function withSpoiler(made, message, open = () => {}) {
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

/** Pause all other players. */
function pauseOthers(player) {
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
        "aria-label": getText("position"),
    });
    const button = node("button", { class: "disc", type: "button", "aria-label": getText("play") }, icon("playing"));
    const whole = () => (Number.isFinite(audio.duration) ? audio.duration : sound.duration) || 1;
    const draw = () => {
        button.replaceChildren(icon(audio.paused ? "playing" : "stopped"));
        button.setAttribute("aria-label", getText(audio.paused ? "play" : "pause"));
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
    audio.addEventListener("play", () => pauseOthers(audio));
    return node(
        "div",
        { class: "file" },
        button,
        node("div", { class: "about" }, node("div", { class: "name" }, title), seek, facts),
        audio,
    );
}

function documentLink(file) {
    const name = file.file_name ?? getText("kind_document");
    const ending = /\.(\w{1,4})$/u.exec(name)?.[1] ?? "";
    const disc = node("span", { class: "disc sheet", "aria-hidden": "true" }, ending || icon("download"));
    const facts = node("div", { class: "facts" }, `${bytes(file.file_size)} · ${getText("download")}`);
    return node(
        "a",
        { class: "file", href: fileUrl(file.file_id), download: name, title: getText("download") },
        disc,
        node("div", { class: "about" }, node("div", { class: "name" }, name), facts),
    );
}
