// Where a fault of the page ends.
//
// Rule: what cannot be drawn says so in its own place, with a way to continue; the rest of the page stays.

import { Component, type ComponentChildren } from "preact";

interface State {
    error?: Error;
}

export class Boundary extends Component<{ name: string; children: ComponentChildren }, State> {
    override state: State = {};

    override componentDidCatch(error: unknown): void {
        this.setState({ error: error instanceof Error ? error : new Error(String(error)) });
    }

    override render() {
        const { error } = this.state;
        if (!error) return this.props.children;
        return (
            <div class="notice error" role="note">
                <div>
                    <p>
                        {this.props.name} could not be drawn: {error.message}
                    </p>
                    <button
                        type="button"
                        class="secondary"
                        onClick={() => this.setState({ error: undefined } as unknown as State)}
                    >
                        Draw it again
                    </button>
                </div>
            </div>
        );
    }
}
