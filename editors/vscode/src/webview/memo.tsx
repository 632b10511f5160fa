// A part that is drawn again only when one of its properties is another value.
//
// Rule: properties are compared by identity; what a part selects from the state is its own matter.

import { Component, type ComponentChild, type FunctionComponent } from "preact";

/** The same part, drawn only for new properties. */
export function memo<P extends object>(part: (props: P) => ComponentChild): FunctionComponent<P> {
    const Part = part as FunctionComponent<P>;
    return class Memo extends Component<P> {
        override shouldComponentUpdate(next: P): boolean {
            const keys = new Set([...Object.keys(next), ...Object.keys(this.props)]);
            return [...keys].some((key) => next[key as keyof P] !== (this.props as P)[key as keyof P]);
        }

        override render() {
            return <Part {...(this.props as P)} />;
        }
    } as unknown as FunctionComponent<P>;
}
