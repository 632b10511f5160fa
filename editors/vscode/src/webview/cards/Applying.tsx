// Code of an answer that is about to take the place of what is selected in the editor: the diff, and the user's yes.
//
// Rule: nothing is changed before the yes, and then only what was shown: a place that is another text by then is refused. It was
// opened by an act of the user and takes the focus; Enter applies, Escape discards.

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
                    Put this code in the place of what is selected in <bdi>{exactLine(path)}</bdi>?
                </h2>
            </header>
            <div class="preview-diff">
                <Diff unified="" files={[file]} named />
            </div>
            <div class="answer">
                <button type="button" class="primary" disabled={busy} onClick={() => void apply()}>
                    Apply
                </button>
                <button type="button" class="secondary" onClick={leave}>
                    Discard
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => {
                        leave();
                        void app.attempt(() => haveApplied(app, code));
                    }}
                >
                    Have the agent put it where it belongs
                </button>
            </div>
        </section>
    );
}
