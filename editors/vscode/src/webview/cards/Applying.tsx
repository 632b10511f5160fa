// The confirmation before code of an answer replaces the selection in the editor, with the diff.
//
// Rule: nothing is changed before the user confirms, and then only by the shown text: the replacement is refused when
// the text at the place has changed. The user opened the card, so it takes the focus; Enter replaces, Escape cancels.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { applyCode, haveApplied } from "../app/code.ts";
import { useApp, useSelect } from "../app/context.ts";
import type { Applying } from "../app/state.ts";
import { Icon } from "../panels/Icon.tsx";
import { exactLine } from "../text.ts";
import { Diff } from "./Diff.tsx";
import { replaced } from "./replaced.ts";

/** The code that waits for a yes. */
export function ApplyingCard() {
    const applying = useSelect((state) => state.applying);
    return applying ? <Card applying={applying} /> : null;
}

function Card({ applying }: { applying: Applying }) {
    const app = useApp();
    const card = useRef<HTMLElement>(null);
    const [busy, setBusy] = useState(false);
    const { place, code } = applying;
    const editor = useSelect((state) => state.host?.editor);
    const path = editor?.uri === place.uri ? editor.path : decodeURIComponent(place.uri.split("/").at(-1) ?? "");
    const first = place.range.start.line + 1;
    const file = useMemo(() => replaced(path, place.text, code, first), [path, place, code, first]);
    // Before the next key can come.
    useLayoutEffect(() => card.current?.focus(), [applying]);
    const leave = () => {
        app.set({ applying: undefined });
        app.focus.get("prompt")?.();
    };
    const apply = async () => {
        if (busy) return;
        setBusy(true);
        const done = await applyCode(app);
        setBusy(false);
        if (done) app.focus.get("prompt")?.();
    };
    return (
        <section
            ref={card}
            class="prompt-card applying"
            tabIndex={-1}
            aria-labelledby="applying-title"
            onKeyDown={(event) => {
                if (event.key === "Escape") leave();
                else if (event.key === "Enter" && event.target === card.current) void apply();
                else return;
                event.preventDefault();
                event.stopPropagation();
            }}
        >
            <header>
                <Icon name="diff" />
                <h2 id="applying-title">
                    Replace the selection in <bdi>{exactLine(path)}</bdi>?
                </h2>
            </header>
            <div class="preview-diff">
                <Diff unified="" files={[file]} named={false} />
            </div>
            <div class="answer">
                <button type="button" class="primary" disabled={busy} onClick={() => void apply()}>
                    Replace
                </button>
                <button type="button" class="secondary" onClick={leave}>
                    Cancel
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => {
                        leave();
                        void app.attempt(() => haveApplied(app, code));
                    }}
                >
                    Let Kode apply it
                </button>
            </div>
        </section>
    );
}
