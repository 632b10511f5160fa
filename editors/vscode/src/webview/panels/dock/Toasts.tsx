// The last error, and what can be taken back.
//
// Rule: an error stays until it is closed. A report names its act, belongs to its session and goes by itself, but not
// while the pointer or the keyboard is on it.

import { useEffect, useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../../app/context.ts";
import { takeBack, unresolved } from "../../app/edits.ts";
import { exact } from "../../text.ts";
import { Icon } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";
import { Words } from "../Words.tsx";

/** How long a report is shown, in milliseconds. */
const SHOWN_MS = 12_000;

/** Faults: of the session's storage, and of the last act of the user. */
export function Troubles() {
    const app = useApp();
    const trouble = useSelect((state) => state.trouble);
    const storage = useSession((view) => view.storage);
    return (
        <>
            {storage && (
                <div class="toast error">
                    <Icon name="warning" />
                    <p>{exact(storage.message)}</p>
                </div>
            )}
            {trouble && (
                <div class="toast error">
                    <Icon name="warning" />
                    <p>
                        <Words text={exact(trouble.message)} />{" "}
                        {trouble.hint !== "" && (
                            <span class="hint">
                                <Words text={exact(trouble.hint)} />
                            </span>
                        )}
                    </p>
                    <IconAct icon="close" label="Close" onClick={() => app.set({ trouble: undefined })} />
                </div>
            )}
        </>
    );
}

/** The last act, which can be taken back. */
export function Done() {
    const app = useApp();
    const undoable = useSelect((state) => (state.undoable?.sessionId === state.active ? state.undoable : undefined));
    const resolved = useSession((view) => view.resolved);
    const [held, setHeld] = useState(false);
    useEffect(() => {
        if (!undoable || held) return undefined;
        const timer = setTimeout(() => app.set({ undoable: undefined }), SHOWN_MS);
        return () => clearTimeout(timer);
    }, [app, undoable, held]);
    if (!undoable) return null;
    const problem = resolved && undoable.resolutionId === resolved.resolutionId ? unresolved(resolved) : undefined;
    const hold = { onPointerEnter: () => setHeld(true), onFocusCapture: () => setHeld(true) };
    return (
        <div class="toast" {...hold} onPointerLeave={() => setHeld(false)} onBlurCapture={() => setHeld(false)}>
            <p>
                {exact(undoable.text)} {problem !== undefined && <span class="hint">{exact(problem)}</span>}
            </p>
            <button type="button" class="quiet" onClick={() => void takeBack(app)}>
                Take back
            </button>
            <IconAct icon="close" label="Close" onClick={() => app.set({ undoable: undefined })} />
        </div>
    );
}
