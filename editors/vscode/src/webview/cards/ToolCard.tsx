// Calls of tools: what ran, how it went, how long it took; the rest on demand.
//
// Rule: what a call is called comes from the server, and is shown exactly. A call that failed is open, one that ended well is
// closed unless its change is small enough to be read at a glance.

import type { Item, ToolCall } from "kode-protocol";
import type { ComponentChildren } from "preact";

import { useApp, useFollows, useSelect, useSession } from "../app/context.ts";
import { resolveEdits } from "../app/edits.ts";
import { loadAgent } from "../app/sessions.ts";
import { openPath } from "../app/open.ts";
import { Markdown } from "../markdown/Markdown.tsx";
import type { IconName } from "../panels/Icon.tsx";
import { itemsOf } from "../store/transcript.ts";
import { counted, exact, exactLine, prose, tokens } from "../text.ts";
import { Card } from "./Card.tsx";
import { Counts, Diff } from "./Diff.tsx";
import { readDiff } from "./readDiff.ts";
import { Output } from "./Output.tsx";
import { Aside, CallTitle, durationOf, isOver, toneOf, type CallItem } from "./parts.tsx";
import { ProposalCard } from "./Proposal.tsx";

/** The most lines of a change that are shown unasked. */
const GLANCE = 14;

/** A call. */
export function ToolCard({ item }: { item: CallItem }) {
    const { body } = item;
    const live = useSession((view) => view.live.get(body.callId));
    const agent = useSession((view) => {
        for (const agent of view.agents.values()) if (agent.callId === body.callId) return agent.agentId;
        return undefined;
    });
    const proposals = useSelect((state) => state.proposals.get(body.callId));
    if (agent !== undefined || body.name === "Task")
        return <AgentCard item={item} {...(agent === undefined ? {} : { agentId: agent })} />;
    if (changeOf(body)) return <EditCard item={item} />;
    if (proposals && (body.state === "APPROVAL_REQUIRED" || body.state === "DENIED"))
        return <ProposalCard item={item} proposals={proposals} />;
    const tone = toneOf(body);
    const hasMore = isOver(body) || live !== undefined || body.state === "EXECUTING";
    return (
        <Card
            name={item.itemId}
            icon={iconOf(body)}
            tone={tone}
            habit={tone === "failed" || (tone === "running" && live !== undefined)}
            title={<CallTitle text={body.title || body.name} />}
            aside={<Aside call={body} />}
        >
            {hasMore
                ? () => (
                      <>
                          <Arguments call={body} />
                          {live !== undefined && !isOver(body) && <Tail text={live} />}
                          {isOver(body) && (
                              <Output callId={body.callId} display={body.display} title={body.title} />
                          )}
                          {body.state === "EXECUTING" && <CancelCall callId={body.callId} />}
                      </>
                  )
                : undefined}
        </Card>
    );
}

/** A run of looks at files as one row. */
export function LooksCard({ name, items }: { name: string; items: readonly Item[] }) {
    const calls = items.filter((item): item is CallItem => item.body.type === "toolCall");
    const [only] = calls;
    if (calls.length === 1 && only) {
        const { body } = only;
        return (
            <Card
                name={name}
                icon="look"
                tone={toneOf(body) === "running" ? "running" : "quiet"}
                title={<CallTitle text={body.title || body.name} />}
                aside={<Aside call={body} />}
            >
                {isOver(body)
                    ? () => <Output callId={body.callId} display={body.display} title={body.title} />
                    : undefined}
            </Card>
        );
    }
    const running = calls.some((call) => toneOf(call.body) === "running");
    return (
        <Card name={`${name}+`} icon="look" tone={running ? "running" : "quiet"} title={summaryOf(calls)}>
            {() => calls.map((call) => <LooksCard key={call.itemId} name={call.itemId} items={[call]} />)}
        </Card>
    );
}

function EditCard({ item }: { item: CallItem }) {
    const app = useApp();
    const { body } = item;
    const change = changeOf(body);
    if (!change) return null;
    const files = readDiff(change.unified);
    const [added, removed] = files.reduce(([more, less], file) => [more + file.added, less + file.removed], [
        0, 0,
    ] as [number, number]);
    const line = files[0]?.hunks[0]?.line ?? 1;
    const open = (at: number) => void openPath(app, change.path, at);
    return (
        <Card
            name={item.itemId}
            icon="edit"
            tone={toneOf(body)}
            habit={added + removed <= GLANCE || toneOf(body) === "failed"}
            title={<CallTitle text={body.title || body.name} />}
            aside={
                <>
                    <Counts added={added} removed={removed} />
                    <Aside call={body} />
                </>
            }
        >
            {() => (
                <>
                    <Diff unified={change.unified} named={false} onOpen={(_path, at) => open(at)} />
                    <div class="actions">
                        <button type="button" class="quiet" onClick={() => void openDiffOf(change.path)}>
                            Open diff
                        </button>
                        <button type="button" class="quiet" onClick={() => open(line)}>
                            Open file
                        </button>
                        <HunkActions callId={body.callId} />
                    </div>
                </>
            )}
        </Card>
    );

    function openDiffOf(path: string): Promise<boolean> {
        return app.attempt(async () => {
            const { sessionId } = app.session();
            const known = app.state.edits?.files.find((file) => file.path === path);
            if (known) await app.host.act("openDiff", { sessionId, uri: known.uri });
            else await openPath(app, path, line);
        });
    }
}

/** Keep and undo for what is still open of one call. */
function HunkActions({ callId }: { callId: string }) {
    const app = useApp();
    const follows = useFollows();
    const edits = useSelect((state) => state.edits);
    const hunkIds = (edits?.files ?? [])
        .flatMap((file) => file.hunks)
        .filter((hunk) => hunk.callId === callId && (hunk.state === "applied" || hunk.state === "conflict"))
        .map((hunk) => hunk.hunkId);
    if (hunkIds.length === 0 || follows) return null;
    const act = (action: "keep" | "undo") => void resolveEdits(app, action, { hunkIds });
    return (
        <>
            <button type="button" class="quiet" onClick={() => act("keep")}>
                Keep
            </button>
            <button type="button" class="quiet" onClick={() => act("undo")}>
                Undo
            </button>
        </>
    );
}

function AgentCard({ item, agentId }: { item: CallItem; agentId?: string }) {
    const app = useApp();
    const { body } = item;
    const agent = useSession((view) => (agentId === undefined ? undefined : view.agents.get(agentId)));
    const result = body.structured as { agentId?: string; usage?: { outputTokens?: number } } | undefined;
    const known = agentId ?? result?.agentId;
    const taken = result?.usage?.outputTokens ?? agent?.usage?.outputTokens;
    const aside = agent?.running
        ? [agent.calls > 0 ? counted(agent.calls, "call") : "", agent.latest ? exactLine(agent.latest) : ""]
              .filter(Boolean)
              .join(" · ")
        : [taken === undefined ? "" : `${tokens(taken)} tokens`, durationOf(body)]
              .filter(Boolean)
              .join(" · ");
    return (
        <Card
            name={item.itemId}
            icon="agent"
            tone={toneOf(body)}
            title={<CallTitle text={body.title || body.name} />}
            aside={aside}
            {...(known === undefined
                ? {}
                : { onOpen: () => void loadAgent(app, app.session().sessionId, known) })}
        >
            {() => (
                <>
                    <AgentTranscript {...(known === undefined ? {} : { agentId: known })} />
                    {isOver(body) && (
                        <Output callId={body.callId} display={body.display} title={body.title} />
                    )}
                    {body.state === "EXECUTING" && <CancelCall callId={body.callId} />}
                </>
            )}
        </Card>
    );
}

/** The newest items of a sub-agent that are shown. */
const AGENT_ITEMS = 60;

function AgentTranscript({ agentId }: { agentId?: string }) {
    const transcript = useSession((view) =>
        agentId === undefined ? undefined : view.agents.get(agentId)?.transcript,
    );
    if (!transcript) return null;
    return (
        <div class="agent-items">
            {itemsOf(transcript)
                .slice(-AGENT_ITEMS)
                .map((item) => (
                    <AgentItem key={item.itemId} item={item} />
                ))}
        </div>
    );
}

function AgentItem({ item }: { item: Item }) {
    const { body } = item;
    switch (body.type) {
        case "toolCall":
            return <ToolCard item={{ ...item, body }} />;
        case "agentMessage":
            return <Markdown text={body.text} complete={body.complete} />;
        case "userMessage":
            return <p class="agent-task">{prose(body.text)}</p>;
        case "notice":
            return <p class="agent-task">{prose(body.text)}</p>;
        default:
            return null;
    }
}

function CancelCall({ callId }: { callId: string }) {
    const app = useApp();
    const cancel = () =>
        app.attempt(() =>
            app.host.request("agent/tool/cancel", { sessionId: app.session().sessionId, callId }),
        );
    return (
        <div class="actions">
            <button type="button" class="quiet" onClick={() => void cancel()}>
                Stop this call
            </button>
        </div>
    );
}

/** The arguments of a call that its title may not show whole. */
function Arguments({ call }: { call: ToolCall }) {
    const input = call.input as Record<string, unknown> | null;
    const command = typeof input?.["command"] === "string" ? input["command"] : undefined;
    const shown = command ?? (input && Object.keys(input).length > 0 ? JSON.stringify(input, null, 2) : "");
    if (shown === "" || shown === call.title) return null;
    return (
        <pre
            class={command === undefined ? "arguments" : "arguments command"}
            tabIndex={0}
            role="region"
            aria-label="Arguments"
        >
            {exact(shown)}
        </pre>
    );
}

/** The newest lines of a call that runs. */
function Tail({ text }: { text: string }): ComponentChildren {
    return <pre class="output tail">{exact(text.split("\n").slice(-8).join("\n"))}</pre>;
}

const ICONS: Partial<Record<string, IconName>> = {
    Bash: "command",
    BashOutput: "command",
    KillShell: "command",
    TodoWrite: "list",
    WebFetch: "web",
    WebSearch: "web",
    Think: "think",
    AskUserQuestion: "question",
    ExitPlanMode: "plan",
    EnterPlanMode: "plan",
};

function iconOf(call: ToolCall): IconName {
    return (
        ICONS[call.name] ?? (call.kind === "execute" ? "command" : call.kind === "write" ? "edit" : "look")
    );
}

function changeOf(call: ToolCall): { path: string; unified: string } | undefined {
    const result = call.structured as { path?: unknown; unified?: unknown } | undefined;
    return typeof result?.unified === "string" && typeof result.path === "string" && result.unified !== ""
        ? { path: result.path, unified: result.unified }
        : undefined;
}

function summaryOf(calls: readonly CallItem[]): string {
    const reads = calls.filter(({ body }) => body.name === "Read").length;
    const rest = calls.length - reads;
    return [
        reads > 0 ? `Read ${counted(reads, "file")}` : "",
        rest > 0 ? `${reads > 0 ? "looked" : "Looked"} around ${counted(rest, "time")}` : "",
    ]
        .filter(Boolean)
        .join(", ");
}
