// How full the context window is and of what, what the session has taken, and how near the provider's limits are.
//
// Rule: only known shares are shown, and unknown costs say so.

import type { ContextParts, ContextUse, SessionUsage } from "kode-protocol";
import { useEffect, useRef, useState } from "preact/hooks";

import { useApp, useSession } from "../app/context.ts";
import { counted, dollars, exactLine, tokens } from "../text.ts";
import { Limits, tightest } from "./Limits.tsx";

const PARTS: Record<keyof ContextParts, string> = {
    systemPrompt: "System prompt",
    tools: "Tools",
    memoryFiles: "Instruction files",
    userMessages: "Your messages",
    assistantMessages: "Answers",
    toolResults: "Results of tools",
    images: "Pictures",
    summary: "Summary",
};

export function Meter() {
    const app = useApp();
    const context = useSession((view) => view.context);
    const cost = useSession((view) => view.cost);
    const output = useSession((view) => view.usage.outputTokens) ?? 0;
    const tight = tightest(useSession((view) => view.limits) ?? []);
    const [open, setOpen] = useState(false);
    const [detail, setDetail] = useState<{ context: ContextUse; usage: SessionUsage }>();
    const box = useRef<HTMLDivElement>(null);

    useEffect(() => {
        if (!open) return undefined;
        const outside = (event: Event) => {
            if (!box.current?.contains(event.target as Node)) setOpen(false);
        };
        document.addEventListener("pointerdown", outside);
        return () => document.removeEventListener("pointerdown", outside);
    }, [open]);

    if (!context && output === 0) return null;
    const share = context && context.window > 0 ? Math.min(1, context.tokens / context.window) : undefined;
    const percent = share === undefined ? "" : `${Math.round(share * 100)} %`;
    const toggle = () => {
        setOpen(!open);
        if (open) return;
        void app.attempt(async () => {
            const { sessionId } = app.session();
            const [use, usage] = await Promise.all([
                app.host.request("agent/context/get", { sessionId }),
                app.host.request("agent/usage/get", { sessionId }),
            ]);
            setDetail({ context: use, usage });
        });
    };
    const label =
        [
            percent && `Context ${percent} full`,
            cost ? `cost ${dollars(cost)}` : "",
            tight && `limit ${tight.name} ${tight.percent} % used`,
        ]
            .filter(Boolean)
            .join(", ") || "Usage";
    return (
        <div
            class="meter"
            ref={box}
            onKeyDown={(event) => {
                if (event.key !== "Escape" || !open) return;
                event.stopPropagation();
                setOpen(false);
                box.current?.querySelector("button")?.focus();
            }}
        >
            <button type="button" class="menu-button" aria-expanded={open} title={label} onClick={toggle}>
                <Ring share={share ?? 0} />
                <span class="unseen">Context window</span> <span>{percent || "usage"}</span>
                {cost !== undefined && cost > 0 && <span class="cost roomy">{dollars(cost)}</span>}
                {tight && (
                    <span class="tight">
                        {exactLine(tight.name)} {tight.percent} %
                    </span>
                )}
            </button>
            {open && (
                <section class="popover" aria-label="Context and usage" tabIndex={-1}>
                    {detail ? (
                        <Detail {...detail} onCompact={() => setOpen(false)} />
                    ) : (
                        <p class="hint">Counting…</p>
                    )}
                </section>
            )}
        </div>
    );
}

function Ring({ share }: { share: number }) {
    const around = 2 * Math.PI * 5;
    return (
        <svg class={share > 0.85 ? "ring full" : "ring"} viewBox="0 0 14 14" aria-hidden="true">
            <circle cx="7" cy="7" r="5" class="ring-back" />
            <circle
                cx="7"
                cy="7"
                r="5"
                class="ring-front"
                stroke-dasharray={`${around * share} ${around}`}
                transform="rotate(-90 7 7)"
            />
        </svg>
    );
}

function Detail({
    context,
    usage,
    onCompact,
}: {
    context: ContextUse;
    usage: SessionUsage;
    onCompact: () => void;
}) {
    const app = useApp();
    const parts = (Object.entries(context.parts) as [keyof ContextParts, number][]).filter(
        ([, count]) => count > 0,
    );
    const busy = useSession((view) => view.following !== undefined) ?? false;
    const compact = () => {
        onCompact();
        void app.attempt(() =>
            app.host.request("agent/session/compact", { sessionId: app.session().sessionId }),
        );
    };
    return (
        <>
            <h3>Context window</h3>
            <p>
                {tokens(context.tokens)} of {tokens(context.window)} tokens
                <span class="hint"> {SOURCES[context.source]}</span>
            </p>
            <table class="figures">
                <tbody>
                    {parts.map(([part, count]) => (
                        <tr key={part}>
                            <th scope="row">{PARTS[part] ?? part}</th>
                            <td>{tokens(count)}</td>
                        </tr>
                    ))}
                    <tr>
                        <th scope="row">Kept free for the answer</th>
                        <td>{tokens(context.reserved)}</td>
                    </tr>
                    <tr>
                        <th scope="row">Free</th>
                        <td>{tokens(context.free)}</td>
                    </tr>
                </tbody>
            </table>
            <div class="actions">
                <button type="button" class="secondary" disabled={busy} onClick={compact}>
                    Compact now
                </button>
            </div>
            <Limits />
            <h3>This session</h3>
            <table class="figures">
                <tbody>
                    {usage.models.map((model) => (
                        <tr key={model.model}>
                            <th scope="row">
                                <bdi>{exactLine(model.model)}</bdi>{" "}
                                <span class="hint">{counted(model.calls, "call")}</span>
                            </th>
                            <td>
                                {tokens(
                                    model.usage.inputTokens +
                                        model.usage.cacheReadTokens +
                                        model.usage.cacheWriteTokens,
                                )}{" "}
                                in, {tokens(model.usage.outputTokens)} out
                            </td>
                            <td>{model.cost === undefined ? "price unknown" : dollars(model.cost)}</td>
                        </tr>
                    ))}
                    {usage.turns.slice(-3).map((turn, index, all) => (
                        <tr key={turn.turnId}>
                            <th scope="row">
                                {index === all.length - 1
                                    ? "Last turn"
                                    : `${counted(all.length - 1 - index, "turn")} before`}
                            </th>
                            <td>{tokens(turn.usage.outputTokens)} out</td>
                            <td>{turn.cost === undefined ? "" : dollars(turn.cost)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </>
    );
}

const SOURCES: Record<ContextUse["source"], string> = {
    reported: "as the provider reports",
    estimated: "estimated",
};
