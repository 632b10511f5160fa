// The page as a whole: its state, the host, and what they have to do with each other.
//
// Rule: intents of the user are functions beside this that take the app; the app itself only holds things, and shows what
// went wrong. Nothing in here draws.

import type { SessionId } from "kode-protocol";

import { Host, HostError } from "../host.ts";
import { Observable } from "../store/observable.ts";
import type { SessionView } from "../store/session.ts";
import type { FromPage } from "../../shared/messages.ts";
import { Relay } from "./relay.ts";
import { activeSession, INITIAL, type AppState } from "./state.ts";

/** The most things whose being open is remembered. */
const MAX_TOGGLED = 500;

/** Things that somewhere on the page can be given the focus by a command. */
export type FocusTarget = "prompt" | "waiting" | "lastMessage" | "mode" | "model";

/** The page. */
export class App {
    readonly store = new Observable<AppState>(INITIAL);
    readonly host: Host;
    /** The elements that take the focus by a command of the user; each is set by the part that can. */
    readonly focus = new Map<FocusTarget, () => void>();
    /** Leads the keyboard from one card that asks to the next. */
    readonly relay = new Relay({ card: () => this.focus.get("waiting"), prompt: () => this.focus.get("prompt")?.() });

    constructor(post: (message: FromPage) => void) {
        this.host = new Host(post);
    }

    get state(): AppState {
        return this.store.get();
    }

    /** Changes some of the state, at once. */
    set(change: Partial<AppState>): void {
        this.store.update((state) => ({ ...state, ...change }));
    }

    /** Changes a session that is here. */
    changeSession(id: SessionId, change: (view: SessionView) => SessionView): void {
        this.store.update((state) => withSession(state, id, change));
    }

    /** Does something that may fail and shows what went wrong; answers whether it worked. */
    async attempt(act: () => Promise<unknown>): Promise<boolean> {
        try {
            await act();
            return true;
        } catch (error) {
            this.fail(error);
            return false;
        }
    }

    /** Shows what went wrong. */
    fail(error: unknown): void {
        const message = error instanceof Error ? error.message : String(error);
        const hint = error instanceof HostError ? error.hint : "";
        this.set({ trouble: { message, hint } });
        this.announce(`Failed: ${message}`);
    }

    /** Tells users of screen readers something. */
    announce(text: string): void {
        this.store.update((state) => ({
            ...state,
            announcement: { text, number: state.announcement.number + 1 },
        }));
    }

    /** Remembers whether something is open. */
    toggle(key: string, open: boolean): void {
        this.store.update((state) => {
            const toggled = new Map(state.toggled).set(key, open);
            const oldest = toggled.keys().next();
            if (toggled.size > MAX_TOGGLED && !oldest.done) toggled.delete(oldest.value);
            return { ...state, toggled };
        });
    }

    /** The session that is shown; fails if absent. */
    session(): SessionView {
        const view = activeSession(this.state);
        if (!view) throw new Error("No session is open. Send a prompt to start one.");
        return view;
    }
}

/** Changes a session in a state. */
export function withSession(
    state: AppState,
    id: SessionId,
    change: (view: SessionView) => SessionView,
): AppState {
    const view = state.sessions.get(id);
    if (!view) return state;
    const changed = change(view);
    return changed === view ? state : { ...state, sessions: new Map(state.sessions).set(id, changed) };
}
