// A sub-agent: its task, what it does now, and what it came to.
//
// Rule: the task is named first and never gives way. The result is shown once, as the last of what the sub-agent said.

import type { Item } from "kode-protocol";
import type { ComponentChild } from "preact";

import { useApp, useSession } from "../app/context.ts";
import { loadAgent } from "../app/sessions.ts";
import { Markdown } from "../markdown/Markdown.tsx";
import type { AgentView } from "../store/session.ts";
import { itemsOf } from "../store/transcript.ts";
import { counted, exactLine, prose, tokens } from "../text.ts";
import { CancelCall } from "./CallActs.tsx";
import { Card } from "./Card.tsx";
import { durationOf, isOver, toneOf, type CallItem } from "./parts.tsx";

/** The newest items of a sub-agent that are shown. */
const AGENT_ITEMS = 60;

/** The report of a finished call about its sub-agent. */
interface Result {
    agentId?: string;
    usage?: { inputTokens?: number; outputTokens?: number; cacheReadTokens?: number; cacheWriteTokens?: number };
    toolCalls?: number;
}

interface Props {
    item: CallItem;
    agentId?: string;
    /** Draws a call of the sub-agent. */
    draw: (item: CallItem) => ComponentChild;
}

export function AgentCard({ item, agentId, draw }: Props) {
    const app = useApp();
    const { body } = item;
    const agent = useSession((view) => (agentId === undefined ? undefined : view.agents.get(agentId)));
    const result = body.structured as Result | undefined;
    const known = agentId ?? result?.agentId;
    const { description } = (body.input ?? {}) as { description?: unknown };
    const task = agent?.description || (typeof description === "string" ? description : body.title);
    return (
        <Card
            name={item.itemId}
            icon="agent"
            tone={toneOf(body)}
            title={<bdi class="title-name">{exactLine(task)}</bdi>}
            aside={<AgentAside item={item} agent={agent} result={result} />}
            {...(known === undefined ? {} : { onOpen: () => void loadAgent(app, app.session().sessionId, known) })}
        >
            {() => <Inside item={item} agentId={known} draw={draw} />}
        </Card>
    );
}

function AgentAside({ item: { body }, agent, result }: { item: CallItem; agent: AgentView | undefined; result: Result | undefined }) {
    const calls = result?.toolCalls ?? agent?.calls.size ?? 0;
    const taken = totalOf(result?.usage ?? agent?.usage);
    const figures = [
        calls > 0 ? counted(calls, "call") : "",
        agent?.running || taken === 0 ? "" : `${tokens(taken)} tokens`,
        durationOf(body),
    ];
    return (
        <>
            {agent?.running && agent.latest !== "" && <span>{exactLine(agent.latest)}</span>}
            <span>{figures.filter(Boolean).join(" · ")}</span>
        </>
    );
}

function totalOf(usage: Result["usage"]): number {
    if (!usage) return 0;
    const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
    return inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
}

interface InsideProps extends Pick<Props, "item" | "draw"> {
    agentId: string | undefined;
}

function Inside({ item: { body }, agentId, draw }: InsideProps) {
    const transcript = useSession((view) => (agentId === undefined ? undefined : view.agents.get(agentId)?.transcript));
    const items = transcript ? itemsOf(transcript).slice(-AGENT_ITEMS) : [];
    // The last message of a sub-agent is its result. Without its transcript, the result is what the call came to.
    const saysResult = items.some(({ body }) => body.type === "agentMessage");
    return (
        <>
            <div class="agent-items">
                {items.map((item) => (
                    <AgentItem key={item.itemId} item={item} draw={draw} />
                ))}
            </div>
            {isOver(body) && !saysResult && (
                <div class="agent-result">
                    <Markdown text={body.display} complete />
                </div>
            )}
            {body.state === "EXECUTING" && (
                <div class="actions">
                    <CancelCall callId={body.callId} />
                </div>
            )}
        </>
    );
}

function AgentItem({ item, draw }: { item: Item; draw: Props["draw"] }) {
    const { body } = item;
    switch (body.type) {
        case "toolCall":
            return <>{draw({ ...item, body })}</>;
        case "agentMessage":
            return <Markdown text={body.text} complete={body.complete} />;
        case "userMessage":
        case "notice":
            return <p class="agent-task">{prose(body.text)}</p>;
        default:
            return null;
    }
}
