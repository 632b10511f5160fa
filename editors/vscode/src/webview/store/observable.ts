// A value that parts of the page check.
//
// Rule: acts of the user show at once; what comes from the server shows with the next frame, however many events came.

/** A value with those who want to know when it is another one. */
export class Observable<S> {
    private value: S;
    private readonly listeners = new Set<() => void>();
    private scheduled = false;

    constructor(value: S) {
        this.value = value;
    }

    get(): S {
        return this.value;
    }

    /** Changes the value and reports it at once. */
    update(change: (value: S) => S): void {
        const changed = change(this.value);
        if (changed === this.value) return;
        this.value = changed;
        this.tell();
    }

    /** Changes the value and reports it with the next frame; on a page that is not seen, soon. */
    stream(change: (value: S) => S): void {
        const changed = change(this.value);
        if (changed === this.value) return;
        this.value = changed;
        if (this.scheduled) return;
        this.scheduled = true;
        const later = () => {
            if (this.scheduled) this.tell();
        };
        if (document.hidden) setTimeout(later, 100);
        else requestAnimationFrame(later);
    }

    subscribe(listener: () => void): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }

    private tell(): void {
        this.scheduled = false;
        for (const listener of [...this.listeners]) listener();
    }
}
