// How parts of the page get at the app and at what of its state they show.
//
// Rule: a part is drawn again only when what it has selected is another value.

import { createContext } from "preact";
import { useContext, useLayoutEffect, useReducer, useRef } from "preact/hooks";

import type { SessionView } from "../store/session.ts";
import type { App } from "./app.ts";
import { activeSession, type AppState } from "./state.ts";

export const AppContext = createContext<App | undefined>(undefined);

/** The app. */
export function useApp(): App {
    const app = useContext(AppContext);
    if (!app) throw new Error("This part of the page is outside of the app.");
    return app;
}

/** A part of the state. */
export function useSelect<T>(select: (state: AppState) => T): T {
    const app = useApp();
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    const value = select(app.state);
    const current = useRef({ select, value });
    current.current = { select, value };
    useLayoutEffect(() => {
        const look = () => {
            const { select, value } = current.current;
            if (!Object.is(select(app.state), value)) redraw(0);
        };
        look();
        return app.store.subscribe(look);
    }, [app]);
    return value;
}

/** A part of the session that is shown; undefined when none is. */
export function useSession<T>(select: (view: SessionView) => T): T | undefined {
    return useSelect((state) => {
        const view = activeSession(state);
        return view && select(view);
    });
}

/** Whether another window writes the session that is shown: only there can be decided. */
export function useFollows(): boolean {
    return useSession((view) => view.following !== undefined) ?? false;
}

/** Whether something is open: against its habit if the user said so. */
export function useToggle(key: string, habit: boolean): [boolean, () => void] {
    const app = useApp();
    const open = useSelect((state) => state.toggled.get(key) ?? habit);
    return [open, () => app.toggle(key, !open)];
}
