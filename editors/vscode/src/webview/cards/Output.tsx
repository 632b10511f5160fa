// The whole output of a call, page by page.
//
// Rule: at most a few pages are on the page; all of it can be opened in an editor.

import type { CallId, SessionId } from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useApp } from "../app/context.ts";
import type { App } from "../app/app.ts";
import { bytes, exact } from "../text.ts";

/** Bytes of a page. */
const PAGE = 16_384;

/** The most bytes that are shown on the page. */
const SHOWN = 131_072;

/** The most bytes that are opened in an editor. */
const OPENED = 8_388_608;

interface Loaded {
    text: string;
    next: number;
    total: number;
}

/** Outputs that were looked at last, so that a row that comes back has its height at once. */
const seen = new Map<string, Loaded>();

function remember(key: string, loaded: Loaded): void {
    seen.delete(key);
    seen.set(key, loaded);
    const oldest = seen.keys().next();
    if (seen.size > 50 && !oldest.done) seen.delete(oldest.value);
}

/** The short result of a call, and all of it on demand. */
export function Output({ callId, display, title }: { callId: CallId; display: string; title: string }) {
    const app = useApp();
    const { sessionId } = app.session();
    const key = `${sessionId} ${callId}`;
    const [loaded, setLoaded] = useState<Loaded | undefined>(seen.get(key));
    const [busy, setBusy] = useState(false);
    useEffect(() => {
        if (!loaded) void more();
    }, []);
    const more = async () => {
        setBusy(true);
        await app.attempt(async () => {
            const page = await app.host.request("agent/output/read", {
                sessionId,
                callId,
                offset: loaded?.next ?? 0,
                limit: PAGE,
            });
            const text = (loaded?.text ?? "") + page.text;
            const now = { text, next: page.nextOffset, total: page.totalBytes };
            remember(key, now);
            setLoaded(now);
        });
        setBusy(false);
    };
    const left = loaded ? loaded.total - loaded.next : undefined;
    const text = loaded?.text ?? display;
    return (
        <div class="output-box">
            {text !== "" && (
                <pre class="output" tabIndex={0} role="region" aria-label="Output">
                    {exact(text)}
                </pre>
            )}
            <div class="actions">
                {left !== undefined && left > 0 && (loaded?.next ?? 0) < SHOWN && (
                    <button type="button" class="quiet" disabled={busy} onClick={more}>
                        Show more ({bytes(left)} left)
                    </button>
                )}
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void openOutput(app, sessionId, callId, title)}
                >
                    Open in editor
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void app.attempt(async () => copyOutput(app, sessionId, callId))}
                >
                    Copy
                </button>
            </div>
        </div>
    );
}

async function openOutput(app: App, sessionId: SessionId, callId: CallId, title: string): Promise<void> {
    await app.attempt(async () => {
        const text = await wholeOutput(app, sessionId, callId);
        await app.host.act("openText", { title, text });
    });
}

async function copyOutput(app: App, sessionId: SessionId, callId: CallId): Promise<void> {
    await app.host.act("copy", { text: await wholeOutput(app, sessionId, callId) });
    app.announce("Copied.");
}

async function wholeOutput(app: App, sessionId: SessionId, callId: CallId): Promise<string> {
    let text = "";
    for (let offset = 0; offset < OPENED;) {
        const page = await app.host.request("agent/output/read", {
            sessionId,
            callId,
            offset,
            limit: 65_536,
        });
        text += page.text;
        if (page.nextOffset >= page.totalBytes || page.nextOffset === offset) return text;
        offset = page.nextOffset;
    }
    return `${text}\n[Only the first ${bytes(OPENED)}; the rest is in the session's output folder.]\n`;
}
