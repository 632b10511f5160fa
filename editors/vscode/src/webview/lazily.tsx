// A part of the page whose code is a chunk of its own.
//
// Rule: a substitute is drawn until the chunk is read. A fault of reading is a fault of the part, which the boundary around it shows.

import type { ComponentChild, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

type Part<P> = (props: P) => ComponentChild;

/** A part that is read when it is drawn for the first time, or when it is preloaded. */
export interface LazyPart<P> extends FunctionComponent<P> {
    /** Reads the chunk now. A fault is shown when the part is drawn. */
    preload(): void;
}

/** A part in a chunk of its own; nothing is drawn before it is read unless there is a substitute. */
export function lazily<P extends object>(load: () => Promise<Part<P>>, substitute: Part<P> = () => null): LazyPart<P> {
    let known: Part<P> | undefined;
    let reading: Promise<Part<P>> | undefined;
    const read = () => {
        reading ??= load().then(
            (part) => {
                known = part;
                return part;
            },
            (fault: unknown) => {
                // The next attempt reads again.
                reading = undefined;
                throw fault;
            },
        );
        return reading;
    };
    function Lazily(props: P) {
        const [state, setState] = useState<{ fault?: unknown }>({});
        const isDrawn = known !== undefined;
        useEffect(() => {
            // Effects run after the browser has painted. The chunk may be here by then, and still is to be drawn.
            if (isDrawn) return;
            read().then(
                () => setState({}),
                (fault: unknown) => setState({ fault }),
            );
        }, []);
        if (state.fault !== undefined) throw state.fault;
        const Drawn = (known ?? substitute) as FunctionComponent<P>;
        return <Drawn {...props} />;
    }
    return Object.assign(Lazily, { preload: () => void read().catch(() => undefined) });
}
