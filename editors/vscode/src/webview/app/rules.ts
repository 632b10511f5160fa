// The rules in force and what waits for the user's approval: asked of the server, changed by it.
//
// Rule: nothing is kept here; the page shows the last list of the server, and an approval names the digest that
// was listed with the shown text.

import type { ListRulesResult, ListTrustResult, RuleBehavior, RuleEntry, Scope } from "kode-protocol";

import type { App } from "./app.ts";

/** The content of the page of rules. */
export interface Ruling {
    readonly trust: ListTrustResult;
    /** Absent where no session is shown: rules are those of a session. */
    readonly rules: ListRulesResult | undefined;
}

/** Gets both lists. */
export async function loadRuling(app: App): Promise<Ruling> {
    const sessionId = app.state.active;
    const [trust, rules] = await Promise.all([
        app.host.request("agent/trust/list", sessionId === undefined ? {} : { sessionId }),
        sessionId === undefined ? undefined : app.host.request("agent/permission/rules", { sessionId }),
    ]);
    return { trust, rules };
}

/** Approves, takes back, or dismisses entries by their digests; answers whether all of it was still there. */
export async function decideTrust(
    app: App,
    what: "approve" | "revoke" | "dismiss",
    digests: string[],
): Promise<boolean> {
    const sessionId = app.state.active;
    const params = { ...(sessionId === undefined ? {} : { sessionId }), digests };
    if (what === "dismiss") {
        await app.host.request("agent/trust/dismiss", params);
        if (sessionId !== undefined) app.changeSession(sessionId, (view) => ({ ...view, trust: undefined }));
        return true;
    }
    const { changed } = await app.host.request(`agent/trust/${what}`, params);
    return changed === digests.length;
}

/** Writes a rule; answers the file it is in. */
export async function addRule(app: App, behavior: RuleBehavior, rule: string, scope: Scope): Promise<string> {
    const { sessionId } = app.session();
    const { file } = await app.host.request("agent/permission/addRule", { sessionId, scope, behavior, rule });
    app.announce("The rule was added.");
    return file;
}

/** Takes a rule out of its file. */
export async function removeRule(app: App, { behavior, rule, source }: RuleEntry): Promise<void> {
    const { sessionId } = app.session();
    const { file } = source;
    if (file === undefined) throw new Error("This rule was not removed: it is not in a settings file.");
    const { removed } = await app.host.request("agent/permission/removeRule", { sessionId, file, behavior, rule });
    if (!removed) throw new Error(`The rule is no longer in ${file}.`);
    app.announce("The rule was removed.");
}
