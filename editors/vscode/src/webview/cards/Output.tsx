// The whole output of a call, page by page: from its beginning, or from its end where it failed.
//
// Rule: at most a few pages are on the page; all of it can be opened in an editor.

import type { CallId, SessionId } from "kode-protocol";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useApp, useSelect } from "../app/context.ts";
import type { App } from "../app/app.ts";
import { Words } from "../panels/Words.tsx";
import { bytes, exact, relativePaths } from "../text.ts";
import { OutputText } from "./OutputText.tsx";

/** Bytes of a page. */
const PAGE = 16_384;

/** The most bytes that are shown on the page. */
const SHOWN = 131_072;

/** The most bytes that are opened in an editor. */
const OPENED = 8_388_608;

/** A stretch of an output, in bytes. */
interface Loaded {
    readonly text: string;
    readonly start: number;
    readonly end: number;
    readonly total: number;
}

/** Outputs that were read last, so that a row that comes back has its height at once. */
const seen = new Map<string, Loaded>();

function remember(key: string, loaded: Loaded): void {
    seen.delete(key);
    seen.set(key, loaded);
    const oldest = seen.keys().next();
    if (seen.size > 50 && !oldest.done) seen.delete(oldest.value);
}

interface Props {
    callId: CallId;
    display: string;
    title: string;
    /** Whether the end is shown first: what failed says why there. */
    fromEnd?: boolean;
    /** Whether the short result is all that is shown here; the whole is opened in an editor. */
    brief?: boolean;
    /** Further buttons. */
    children?: ComponentChildren;
}

/** The short result of a call, and all of it on demand. */
export function Output({ callId, display, title, fromEnd = false, brief = false, children }: Props) {
    const app = useApp();
    const { sessionId } = app.session();
    const folders = useSelect((state) => state.host?.folders);
    const key = `${sessionId} ${callId}`;
    const [loaded, setLoaded] = useState<Loaded | undefined>(seen.get(key));
    const [busy, setBusy] = useState(false);
    const read = async (next: (page: Loaded | undefined) => Promise<Loaded>) => {
        setBusy(true);
        await app.attempt(async () => {
            const now = await next(loaded);
            remember(key, now);
            setLoaded(now);
        });
        setBusy(false);
    };
    useEffect(() => {
        if (!loaded && !brief) void read(() => first(app, sessionId, callId, fromEnd));
    }, []);
    const box = useRef<HTMLPreElement>(null);
    useLayoutEffect(() => {
        if (fromEnd) box.current?.scrollTo(0, box.current.scrollHeight);
    }, [fromEnd, loaded?.end]);
    const text = loaded?.text ?? display;
    const whole = () => wholeOutput(app, sessionId, callId);
    return (
        <div class="output-box">
            {loaded && <Earlier loaded={loaded} busy={busy} onMore={() => void read((page) => earlier(app, sessionId, callId, page))} />}
            {brief && (
                <p class="hint">
                    <Words text={relativePaths(exact(display), folders ?? [])} />
                </p>
            )}
            {!brief && text !== "" && (
                <pre ref={box} class="output" tabIndex={0} role="region" aria-label="Output">
                    <OutputText text={text} />
                </pre>
            )}
            <div class="actions">
                {loaded && loaded.end < loaded.total && loaded.end - loaded.start < SHOWN && (
                    <button
                        type="button"
                        class="quiet"
                        disabled={busy}
                        onClick={() => void read((page) => later(app, sessionId, callId, page))}
                    >
                        Show more ({bytes(loaded.total - loaded.end)} left)
                    </button>
                )}
                <button
                    type="button"
                    class="quiet"
                    onClick={() => void app.attempt(async () => app.host.act("openText", { title, text: await whole() }))}
                >
                    Open in editor
                </button>
                <button type="button" class="quiet" onClick={() => void app.attempt(async () => copy(app, await whole()))}>
                    Copy
                </button>
                {children}
            </div>
        </div>
    );
}

function Earlier({ loaded, busy, onMore }: { loaded: Loaded; busy: boolean; onMore: () => void }) {
    if (loaded.start === 0 || loaded.end - loaded.start >= SHOWN) return null;
    return (
        <button type="button" class="quiet" disabled={busy} onClick={onMore}>
            Show earlier output ({bytes(loaded.start)})
        </button>
    );
}

async function first(app: App, sessionId: SessionId, callId: CallId, fromEnd: boolean): Promise<Loaded> {
    const page = await readPage(app, sessionId, callId, 0, PAGE);
    if (!fromEnd || page.end >= page.total) return page;
    return readPage(app, sessionId, callId, page.total - PAGE, PAGE);
}

async function later(app: App, sessionId: SessionId, callId: CallId, page: Loaded | undefined): Promise<Loaded> {
    const next = await readPage(app, sessionId, callId, page?.end ?? 0, PAGE);
    return { ...next, text: (page?.text ?? "") + next.text, start: page?.start ?? next.start };
}

async function earlier(app: App, sessionId: SessionId, callId: CallId, page: Loaded | undefined): Promise<Loaded> {
    const end = page?.start ?? 0;
    const start = Math.max(0, end - PAGE);
    const before = await readPage(app, sessionId, callId, start, end - start);
    return { ...before, text: before.text + (page?.text ?? ""), end: page?.end ?? before.end };
}

async function readPage(app: App, sessionId: SessionId, callId: CallId, offset: number, limit: number): Promise<Loaded> {
    const page = await app.host.request("agent/output/read", { sessionId, callId, offset, limit });
    return { text: page.text, start: page.offset, end: page.nextOffset, total: page.totalBytes };
}

async function copy(app: App, text: string): Promise<void> {
    await app.host.act("copy", { text });
    app.announce("Copied.");
}

async function wholeOutput(app: App, sessionId: SessionId, callId: CallId): Promise<string> {
    let text = "";
    for (let offset = 0; offset < OPENED; ) {
        const page = await readPage(app, sessionId, callId, offset, 65_536);
        text += page.text;
        if (page.end >= page.total || page.end === offset) return text;
        offset = page.end;
    }
    return `${text}\n[Only the first ${bytes(OPENED)}; the rest is in the session's output folder.]\n`;
}
