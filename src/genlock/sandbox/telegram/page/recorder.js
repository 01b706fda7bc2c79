// Recording a voice message with the browser's microphone, or a sample voice where there is none.
const TYPES = ["audio/ogg;codecs=opus", "audio/webm;codecs=opus", "audio/mp4"];

/**
 * Start a recording: {sample, seconds(), stop(), cancel()}. `stop` resolves with the sound, or with null if there is no
 * microphone (or no permission to use it), for which the simulator sends its sample voice.
 */
export async function startRecording() {
    const stream = await microphone();
    const began = Date.now();
    const seconds = () => (Date.now() - began) / 1000;
    if (!stream) return { sample: true, seconds, stop: async () => null, cancel() {} };
    const type = TYPES.find((one) => MediaRecorder.isTypeSupported(one));
    const recorder = new MediaRecorder(stream, type ? { mimeType: type } : {});
    const pieces = [];
    recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
    const ended = new Promise((resolve) => recorder.addEventListener("stop", resolve));
    recorder.start();
    const end = async () => {
        recorder.stop();
        await ended;
        for (const track of stream.getTracks()) track.stop();
        return new Blob(pieces, { type: recorder.mimeType });
    };
    return { sample: false, seconds, stop: end, cancel: end };
}

async function microphone() {
    try {
        return window.MediaRecorder ? await navigator.mediaDevices.getUserMedia({ audio: true }) : null;
    } catch {
        return null;
    }
}
