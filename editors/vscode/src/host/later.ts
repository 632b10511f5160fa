// Parts that are loaded when they are first needed, so that activation does not wait for them.
//
// Rule: a part is made once. One that could not be made says why to each who asks for it.

import type * as vscode from "vscode";

/** A part of the extension that is in a file of its own. */
export class Later<Part extends vscode.Disposable> implements vscode.Disposable {
    private made: Promise<Part> | undefined;

    constructor(private readonly make: () => Promise<Part>) {}

    /** The part. */
    get(): Promise<Part> {
        this.made ??= this.make();
        return this.made;
    }

    dispose(): void {
        // Where it could not be made, its caller has the error, and there is nothing to end.
        void this.made?.then((part) => part.dispose()).catch(() => undefined);
    }
}
