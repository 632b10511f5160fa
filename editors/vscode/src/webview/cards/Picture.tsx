// An image that went with a prompt, seen again.
//
// Rule: the bytes come from the server when the image is drawn, and are kept for the images that were drawn last.

import type { ItemId } from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useApp } from "../app/context.ts";
import { exactLine } from "../text.ts";

/** Images that were drawn last, as data URLs. */
const known = new Map<string, string>();

/** The most characters of them together. */
const KEPT = 20_000_000;

function remember(key: string, url: string): void {
    known.set(key, url);
    let kept = [...known.values()].reduce((sum, one) => sum + one.length, 0);
    for (const [oldest, value] of known) {
        if (kept <= KEPT || oldest === key) break;
        known.delete(oldest);
        kept -= value.length;
    }
}

interface Props {
    itemId: ItemId;
    /** The place of the image among the attachments of the prompt. */
    index: number;
    label: string;
}

export function Picture({ itemId, index, label }: Props) {
    const app = useApp();
    const { sessionId } = app.session();
    const key = `${sessionId} ${itemId} ${index}`;
    const [url, setUrl] = useState(known.get(key));
    const [open, setOpen] = useState(false);
    const [problem, setProblem] = useState<string>();
    useEffect(() => {
        if (url !== undefined) return;
        app.host.request("agent/attachment/read", { sessionId, itemId, index }).then(
            ({ mediaType, data }) => {
                const read = `data:${mediaType};base64,${data}`;
                remember(key, read);
                setUrl(read);
            },
            (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
        );
    }, []);
    if (url === undefined) return <span class="chip" title={problem ?? ""}>{exactLine(label)}</span>;
    return (
        <button
            type="button"
            class="picture"
            aria-expanded={open}
            aria-label={`Image ${exactLine(label)}`}
            title={open ? "Show it smaller" : "Show it larger"}
            onClick={() => setOpen(!open)}
        >
            <img alt={exactLine(label)} src={url} />
        </button>
    );
}
