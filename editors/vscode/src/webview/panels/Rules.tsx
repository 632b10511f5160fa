// The rules in force with their places, and unapproved requests of workspace files.
//
// Rule: every rule and every text is shown exactly and whole, with its file and line, before anything can be said about it;
// an approval names the shown texts and nothing else.

import type {
    ListRulesResult,
    ListTrustResult,
    RuleBehavior,
    RuleEntry,
    RuleSource,
    SettingsProblem,
    ApprovedTrust,
    PendingTrust,
} from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { modeLabel } from "../app/modes.ts";
import { openTarget } from "../app/open.ts";
import { addRule, decideTrust, loadRuling, removeRule, type Ruling } from "../app/rules.ts";
import { counted, exact, exactLine } from "../text.ts";
import { Icon } from "./Icon.tsx";
import { PaneFrame } from "./Pane.tsx";

const BEHAVIORS: Record<RuleBehavior, string> = { deny: "Deny", ask: "Ask", allow: "Allow" };

/** Layers whose files are the user's to change from here. */
const OWN_LAYERS = new Set(["local", "project", "user"]);

export function RulesPane() {
    const app = useApp();
    const active = useSelect((state) => state.active);
    const ready = useSelect((state) => state.host?.connection.state === "ready");
    const stale = useSession((view) => view.rules);
    const [ruling, setRuling] = useState<Ruling>();
    const [again, setAgain] = useState(0);
    useEffect(() => {
        if (!ready) return undefined;
        let gone = false;
        void app.attempt(async () => {
            const found = await loadRuling(app);
            if (!gone) setRuling(found);
        });
        return () => {
            gone = true;
        };
    }, [app, active, ready, stale, again]);
    const refresh = () => setAgain((count) => count + 1);
    return (
        <PaneFrame title="Rules and trust">
            {ruling ? (
                <>
                    <Waiting trust={ruling.trust} onChange={refresh} />
                    {ruling.rules ? (
                        <Rules rules={ruling.rules} onChange={refresh} />
                    ) : (
                        <p class="hint">Start a session to see its rules.</p>
                    )}
                    <Approved approved={ruling.trust.approved} onChange={refresh} />
                </>
            ) : (
                <p class="hint">Asking the server…</p>
            )}
        </PaneFrame>
    );
}

interface Changing {
    onChange: () => void;
}

function Waiting({ trust, onChange }: { trust: ListTrustResult } & Changing) {
    const app = useApp();
    const { waiting } = trust;
    if (waiting.length === 0) return null;
    const decide = (what: "approve" | "dismiss", digests: string[]) =>
        void app.attempt(async () => {
            const whole = await decideTrust(app, what, digests);
            onChange();
            if (!whole)
                throw new Error("A file changed meanwhile, so only unchanged entries were approved. Review the list again.");
            app.announce(what === "approve" ? "Approved." : "Not now.");
        });
    const asked = waiting.filter((one) => !one.dismissed);
    return (
        <section aria-labelledby="trust-waiting">
            <h3 id="trust-waiting" class="section-title">
                Waiting for your approval: {exactLine(trust.summary) || counted(waiting.length, "setting")}
            </h3>
            <p class="hint">
                {trust.distrusted
                    ? "The editor does not trust this workspace, so approvals have no effect."
                    : "Files of this workspace ask for this. It is ignored until you approve the exact text."}
            </p>
            <ul class="trust-list">
                {waiting.map((one) => (
                    <WaitingRow key={one.digest} one={one} onApprove={() => decide("approve", [one.digest])} />
                ))}
            </ul>
            {waiting.length > 1 && (
                <div class="actions">
                    <button
                        type="button"
                        class="secondary"
                        onClick={() =>
                            decide(
                                "approve",
                                waiting.map(({ digest }) => digest),
                            )
                        }
                    >
                        Approve all {waiting.length} shown
                    </button>
                </div>
            )}
            {asked.length > 0 && (
                <div class="actions">
                    <button
                        type="button"
                        class="quiet"
                        onClick={() =>
                            decide(
                                "dismiss",
                                asked.map(({ digest }) => digest),
                            )
                        }
                    >
                        Not now (asks again after a change)
                    </button>
                </div>
            )}
        </section>
    );
}

function WaitingRow({ one, onApprove }: { one: PendingTrust; onApprove: () => void }) {
    return (
        <li class="trust-row" data-digest={one.digest}>
            <div class="trust-head">
                <code>{exactLine(one.key)}</code>
                <Source source={one.source} />
                {one.dismissed && <span class="state">not now</span>}
                <button type="button" class="secondary" aria-label={`Approve ${exactLine(one.key)}`} onClick={onApprove}>
                    Approve
                </button>
            </div>
            <Exactly text={one.text} label={`Text of ${exactLine(one.key)}`} />
            {one.earlier !== undefined && (
                <>
                    <p class="hint">Previously approved text:</p>
                    <Exactly text={one.earlier} label="Previously approved text" />
                </>
            )}
        </li>
    );
}

function Approved({ approved, onChange }: { approved: readonly ApprovedTrust[] } & Changing) {
    const app = useApp();
    if (approved.length === 0) return null;
    const revoke = (digest: string) =>
        void app.attempt(async () => {
            await decideTrust(app, "revoke", [digest]);
            onChange();
            app.announce("The approval was revoked.");
        });
    return (
        <section aria-labelledby="trust-approved">
            <h3 id="trust-approved" class="section-title">
                Approved by you
            </h3>
            <ul class="trust-list">
                {approved.map((one) => (
                    <li key={one.digest} class="trust-row">
                        <div class="trust-head">
                            <code>{exactLine(one.key)}</code>
                            <Source source={one.source} />
                            <button
                                type="button"
                                class="quiet"
                                aria-label={`Revoke the approval of ${exactLine(one.key)}`}
                                onClick={() => revoke(one.digest)}
                            >
                                Revoke
                            </button>
                        </div>
                        <Exactly text={one.text} label={`Text of ${exactLine(one.key)}`} />
                    </li>
                ))}
            </ul>
        </section>
    );
}

function Rules({ rules, onChange }: { rules: ListRulesResult } & Changing) {
    const app = useApp();
    const remove = (entry: RuleEntry) =>
        void app.attempt(async () => {
            await removeRule(app, entry);
            onChange();
        });
    return (
        <section aria-labelledby="rules-in-force">
            <h3 id="rules-in-force" class="section-title">
                Rules in force
            </h3>
            <p class="hint">
                Deny comes before ask, and ask before allow. Where no rule matches, the mode {modeLabel(rules.mode)} decides.
            </p>
            <Problems problems={rules.problems} />
            {rules.rules.length === 0 && <p class="hint">There are none.</p>}
            <ul class="rule-list">
                {rules.rules.map((entry, index) => (
                    <li key={index} class="rule-row">
                        <span class={`behavior ${entry.behavior}`}>{BEHAVIORS[entry.behavior]}</span>
                        <code class="rule-text">{exactLine(entry.rule)}</code>
                        <Source source={entry.source} />
                        {OWN_LAYERS.has(entry.source.layer) && entry.source.file !== undefined && (
                            <button
                                type="button"
                                class="icon-button"
                                title="Remove"
                                aria-label={`Remove ${BEHAVIORS[entry.behavior]} ${exactLine(entry.rule)}`}
                                onClick={() => remove(entry)}
                            >
                                <Icon name="trash" />
                            </button>
                        )}
                    </li>
                ))}
            </ul>
            <NewRule onChange={onChange} />
        </section>
    );
}

function NewRule({ onChange }: Changing) {
    const app = useApp();
    const [behavior, setBehavior] = useState<RuleBehavior>("allow");
    const [scope, setScope] = useState<"project" | "user">("project");
    const [rule, setRule] = useState("");
    const add = () =>
        void app.attempt(async () => {
            await addRule(app, behavior, rule.trim(), scope);
            setRule("");
            onChange();
        });
    return (
        <form
            class="new-rule"
            aria-label="A new rule"
            onSubmit={(event) => {
                event.preventDefault();
                if (rule.trim() !== "") add();
            }}
        >
            <select
                aria-label="Text of the rule"
                value={behavior}
                onChange={(event) => setBehavior(event.currentTarget.value as RuleBehavior)}
            >
                {(["allow", "ask", "deny"] as const).map((choice) => (
                    <option key={choice} value={choice}>
                        {BEHAVIORS[choice]}
                    </option>
                ))}
            </select>
            <input
                type="text"
                class="tell mono"
                placeholder="Bash(npm test:*)"
                aria-label="The rule"
                spellcheck={false}
                value={rule}
                onInput={(event) => setRule(event.currentTarget.value)}
            />
            <select
                aria-label="Where the rule applies"
                value={scope}
                onChange={(event) => setScope(event.currentTarget.value as "project" | "user")}
            >
                <option value="project">In this project</option>
                <option value="user">Everywhere</option>
            </select>
            <button type="submit" class="secondary" disabled={rule.trim() === ""}>
                Add
            </button>
        </form>
    );
}

function Problems({ problems }: { problems: readonly SettingsProblem[] }) {
    if (problems.length === 0) return null;
    return (
        <ul class="problem-list" aria-label="Rules that cannot be used">
            {problems.map((problem, index) => (
                <li key={index} class={problem.severe ? "notice error" : "notice warning"}>
                    <Icon name="warning" />
                    <div>
                        <p>{exact(problem.message)}</p>
                        {problem.file !== undefined && (
                            <Source source={{ ...problem, layer: "", file: problem.file }} />
                        )}
                    </div>
                </li>
            ))}
        </ul>
    );
}

/** The place of an entry; a file opens at the line. */
function Source({ source }: { source: RuleSource }) {
    const app = useApp();
    const { layer, file, line } = source;
    if (file === undefined) return <span class="source">{exactLine(layer)}</span>;
    const place = line === undefined ? file : `${file}:${line}`;
    return (
        <button
            type="button"
            class="source"
            title={exactLine(place)}
            onClick={() => void openTarget(app, { kind: "file", path: file, ...(line === undefined ? {} : { line }) })}
        >
            {layer === "" ? "" : `${exactLine(layer)}: `}
            <bdi>{exactLine(place.split(/[\\/]/).at(-1) ?? place)}</bdi>
        </button>
    );
}

/** A text as it is, whatever is in it. */
function Exactly({ text, label }: { text: string; label: string }) {
    return (
        <pre class="output trust-text" tabIndex={0} role="region" aria-label={label}>
            {exact(text)}
        </pre>
    );
}
