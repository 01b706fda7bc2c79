// Redraws at most once per animation frame.

let held = false;
const hold = () => (held = true);
const release = () => (held = false);
addEventListener("pointerdown", hold, true);
for (const kind of ["pointerup", "pointercancel", "blur"]) addEventListener(kind, release, true);

/** Returns a function that schedules `draw` for the next frame. Waits while a pointer is down, so that no click is lost. */
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
