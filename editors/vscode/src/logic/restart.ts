// When a server that ended by itself is started again, and when no more.
//
// Rule: the waits grow and there is an end to them; a server that ran well for a while starts with a clean slate.

/** Number of exits within the window after which it is not restarted. */
export const MAX_CRASHES = 5;

/** How far back ends count. */
export const WINDOW_MS = 3 * 60_000;

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 8_000;

/** The reaction to an exit. */
export type Decision = { again: true; delayMs: number; attempt: number } | { again: false };

/** Counts the ends of the server. */
export class RestartPolicy {
    private crashes: number[] = [];

    /** The server ended by itself at this time, in milliseconds. */
    crashed(now: number): Decision {
        this.crashes = this.crashes.filter((time) => now - time < WINDOW_MS);
        this.crashes.push(now);
        const attempt = this.crashes.length;
        if (attempt >= MAX_CRASHES) return { again: false };
        const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (attempt - 1), LONGEST_DELAY_MS);
        return { again: true, delayMs, attempt };
    }

    /** The user wants it started: earlier exits count no more. */
    forgive(): void {
        this.crashes = [];
    }
}
