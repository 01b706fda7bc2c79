// Addresses that mean something inside Telegram: a link that starts the bot, one that shares another.
import { tell } from "./hands.js";
import { copy } from "./nodes.js";
import { failed, toast } from "./notices.js";
import { show, view } from "./view.js";
import { world } from "./world.js";
import { say } from "./words.js";

const SHARE = /^(?:https?:\/\/)?t\.me\/share\/url\?/iu;

/** Does what Telegram does with an address of its own; false if it is none. */
export function followed(url) {
    const start = new RegExp(`^(?:https?://)?t\\.me/${world.bot.username}(?:\\?start=([\\w-]{1,64}))?$`, "iu").exec(
        url,
    );
    if (start) startBot(start[1]);
    else if (SHARE.test(url)) share(url);
    else return false;
    return true;
}

function startBot(payload) {
    show(view.person, view.person);
    if (payload) tell(view.person, view.person, `/start ${payload}`).catch(failed);
}

/** There is nobody to share it with here: it is copied, to be written in another chat. */
async function share(url) {
    const asked = new URL(/^https?:/iu.test(url) ? url : `https://${url}`).searchParams;
    await copy([asked.get("text"), asked.get("url")].filter(Boolean).join("\n"));
    toast(say("copied"));
}
