// Drawing when it is time: many events, one drawing.

let held = false;
const hold = () => (held = true);
const release = () => (held = false);
addEventListener("pointerdown", hold, true);
for (const kind of ["pointerup", "pointercancel", "blur"]) addEventListener(kind, release, true);

/** A function that plans a drawing for the next frame. It waits while a button is held down, lest the press be lost. */
export function planner(draw) {
    let planned = false;
    const frame = () => {
        if (held) return requestAnimationFrame(frame);
        planned = false;
        return draw();
    };
    return () => {
        if (planned) return;
        planned = true;
        requestAnimationFrame(frame);
    };
}
