// The other end: the extension host, spoken to by messages.
//
// Rule: every request and every action is answered once, by a result or by a failure, and waits no longer than the host
// lives. The page asks for nothing by any other way.

import type { AgentEventParams } from "kode-protocol";

import { hintOf } from "../logic/words.ts";
import type {
    Action,
    Command,
    Failure,
    FromPage,
    HostActions,
    HostState,
    Method,
    Params,
    RequestMessage,
    Result,
    ToPage,
} from "../shared/messages.ts";

/** The failure of a request or an action. */
export class HostError extends Error {
    readonly failure: Failure;

    constructor(failure: Failure) {
        super(failure.message);
        this.failure = failure;
    }

    /** The next step, for people. */
    get hint(): string {
        return hintOf(this.failure.data);
    }

    /** The kind of the failure, for programs. */
    get kind(): string | undefined {
        return this.failure.data?.kind;
    }
}

/** Listeners to messages of the host. */
export interface HostListener {
    event(params: AgentEventParams): void;
    listChanged(): void;
    state(state: HostState): void;
    command(command: Command): void;
}

interface Waiting {
    resolve: (result: never) => void;
    reject: (error: HostError) => void;
}

/** The extension host. */
export class Host {
    private readonly post: (message: FromPage) => void;
    private readonly waiting = new Map<number, Waiting>();
    private newest = 0;

    constructor(post: (message: FromPage) => void) {
        this.post = post;
    }

    /** Says that the page is drawn, which has the host tell its state. */
    ready(): void {
        this.post({ type: "ready" });
    }

    /** Says whether the page has the keyboard. */
    focused(focused: boolean): void {
        this.post({ type: "focus", focused });
    }

    /** Makes a request of the server. */
    request<M extends Method>(method: M, params: Params<M>, signal?: AbortSignal): Promise<Result<M>> {
        const id = ++this.newest;
        signal?.addEventListener("abort", () => {
            if (this.waiting.has(id)) this.post({ type: "cancel", id });
        });
        return this.answer(id, { type: "request", id, method, params } as RequestMessage);
    }

    /** Has the editor do something. */
    act<A extends Action>(action: A, payload: HostActions[A]["payload"]): Promise<HostActions[A]["result"]> {
        const id = ++this.newest;
        return this.answer(id, { type: "host", id, action, payload } as FromPage);
    }

    /** Takes a message of the host. */
    receive(message: ToPage, listener: HostListener): void {
        switch (message.type) {
            case "response":
                this.settle(message);
                break;
            case "event":
                listener.event(message.params);
                break;
            case "listChanged":
                listener.listChanged();
                break;
            case "host":
                listener.state(message.state);
                break;
            case "command":
                listener.command(message);
                break;
            default:
                // A message of a newer host.
                break;
        }
    }

    private answer<R>(id: number, message: FromPage): Promise<R> {
        return new Promise<R>((resolve, reject) => {
            this.waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
            this.post(message);
        });
    }

    private settle(message: ToPage & { type: "response" }): void {
        const waiting = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        if ("error" in message) waiting?.reject(new HostError(message.error));
        else waiting?.resolve(message.result as never);
    }
}
