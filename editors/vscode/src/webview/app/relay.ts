// The way of the keyboard from one card that asks to the next.
//
// Rule: a card takes the focus only when the user has just answered another card by it and has typed or clicked nothing since.
// A key that was meant for the answered card never answers the next: see `SETTLE_MS`.

/** A card that took the focus by itself ignores the answering keys for this long, in milliseconds. */
export const SETTLE_MS = 400;

/** The parts of the page that a relay hands the focus to. */
interface Places {
    /** Focuses the card that asks; undefined when none does. */
    card(): (() => void) | undefined;
    /** Focuses the prompt. */
    prompt(): void;
}

/** Follows the keyboard between cards. */
export class Relay {
    private running = false;

    constructor(private readonly places: Places) {
        const stop = (event: Event) => {
            const target = event.target as Element | null;
            if (!target?.closest(".prompt-card")) this.running = false;
        };
        document.addEventListener("keydown", stop, true);
        document.addEventListener("pointerdown", stop, true);
    }

    /** A card with the focus in it is gone: the next card has the focus, or the prompt until one comes. */
    leave(): void {
        this.running = true;
        requestAnimationFrame(() => {
            if (document.activeElement !== document.body && document.activeElement !== null) return;
            const card = this.places.card();
            if (card) card();
            else this.places.prompt();
        });
    }

    /** Whether a card that comes now takes the focus. */
    get takes(): boolean {
        return this.running && document.hasFocus();
    }
}
