// Calls of tools: what ran, how it went, how long it took; the rest on demand.
//
// Rule: what a call is called comes from the server, and is shown exactly. A call that failed is open, one that ended well is
// closed. What the user said to a call is below it, closed or open.

import type { ToolCall } from "kode-protocol";

import { useSelect, useSession } from "../app/context.ts";
import type { IconName } from "../panels/Icon.tsx";
import { exact, exactLine, relativePaths } from "../text.ts";
import { AgentCard } from "./AgentCard.tsx";
import { CancelCall, InTerminal, MoveToBackground } from "./CallActs.tsx";
import { Card } from "./Card.tsx";
import { changeOf, EditCard } from "./EditCard.tsx";
import { Output } from "./Output.tsx";
import { OutputText } from "./OutputText.tsx";
import { Aside, CallTitle, isOver, titleOf, toneOf, type CallItem } from "./parts.tsx";
import { ProposalCard } from "./Proposal.tsx";
import { PlanRow, Reply } from "./Reply.tsx";

/** Lines of a running call's output that are shown. */
const TAIL = 8;

/** A call. */
export function ToolCard({ item }: { item: CallItem }) {
    const { body } = item;
    const agent = useSession((view) => {
        for (const agent of view.agents.values()) if (agent.callId === body.callId) return agent.agentId;
        return undefined;
    });
    const proposals = useSelect((state) => state.proposals.get(body.callId));
    if (agent !== undefined || body.name === "Task")
        return <AgentCard item={item} draw={drawCall} {...(agent === undefined ? {} : { agentId: agent })} />;
    if (body.name === "ExitPlanMode" && body.state === "COMPLETED") return <PlanRow item={item} />;
    if (changeOf(body)) return <EditCard item={item} />;
    if (proposals && (body.state === "APPROVAL_REQUIRED" || body.state === "DENIED"))
        return (
            <>
                <ProposalCard item={item} proposals={proposals} />
                <Reply call={body} />
            </>
        );
    return (
        <>
            <PlainCard item={item} />
            <Reply call={body} />
        </>
    );
}

/** Draws the calls of a sub-agent, which are calls as any other. */
const drawCall = (item: CallItem) => <ToolCard key={item.itemId} item={item} />;

function PlainCard({ item }: { item: CallItem }) {
    const { body } = item;
    const live = useSession((view) => view.live.get(body.callId));
    const tone = toneOf(body);
    const hasMore = isOver(body) || live !== undefined || body.state === "EXECUTING";
    return (
        <Card
            name={item.itemId}
            icon={iconOf(body)}
            tone={tone}
            habit={tone === "failed" || (tone === "running" && live !== undefined)}
            title={<CallTitle text={titleOf(body)} />}
            aside={<Aside call={body} />}
        >
            {hasMore ? () => <Inside call={body} live={live} /> : undefined}
        </Card>
    );
}

function Inside({ call, live }: { call: ToolCall; live: string | undefined }) {
    const over = isOver(call);
    return (
        <>
            <Arguments call={call} />
            {live !== undefined && !over && <Tail text={live} />}
            {over && (
                <Output
                    callId={call.callId}
                    display={call.display}
                    title={titleOf(call)}
                    fromEnd={call.state === "FAILED"}
                    // Beside a command, what failed has words for people and others for the model.
                    brief={call.state === "FAILED" && call.kind !== "execute" && call.display !== ""}
                >
                    <InTerminal call={call} />
                </Output>
            )}
            {call.state === "EXECUTING" && (
                <div class="actions">
                    <MoveToBackground call={call} />
                    <CancelCall callId={call.callId} />
                    <InTerminal call={call} />
                </div>
            )}
        </>
    );
}

/** The arguments of a call that its title may not show whole. */
function Arguments({ call }: { call: ToolCall }) {
    const folders = useSelect((state) => state.host?.folders);
    const input = call.input as Record<string, unknown> | null;
    const command = typeof input?.["command"] === "string" ? input["command"] : undefined;
    const about = typeof input?.["description"] === "string" ? input["description"] : undefined;
    const shown = command ?? (input && Object.keys(input).length > 0 ? JSON.stringify(input, null, 2) : "");
    if (shown === "" || shown === call.title) return null;
    return (
        <>
            {command !== undefined && about !== undefined && <p class="hint">{exactLine(about)}</p>}
            <pre
                class={command === undefined ? "arguments" : "arguments command"}
                tabIndex={0}
                role="region"
                aria-label="Arguments"
            >
                {command === undefined ? relativePaths(exact(shown), folders ?? []) : exact(shown)}
            </pre>
        </>
    );
}

/** The newest lines of a call that runs. */
function Tail({ text }: { text: string }) {
    return (
        <pre class="output tail">
            <OutputText text={text.split("\n").slice(-TAIL).join("\n")} />
        </pre>
    );
}

const ICONS: Partial<Record<string, IconName>> = {
    Bash: "command",
    BashOutput: "command",
    KillShell: "command",
    PowerShell: "command",
    SendMessage: "reply",
    TeamTasks: "list",
    TodoWrite: "list",
    WaitForMessage: "agent",
    WebFetch: "web",
    WebSearch: "web",
    Think: "think",
    AskUserQuestion: "question",
    ExitPlanMode: "plan",
    EnterPlanMode: "plan",
};

function iconOf(call: ToolCall): IconName {
    return ICONS[call.name] ?? (call.kind === "execute" ? "command" : call.kind === "write" ? "edit" : "look");
}
