// One session as a page sees it: a snapshot, and every event since folded into it.
//
// Rule: the fold is pure and total. Events up to the bookmark change nothing, unknown ones are skipped, and what comes out
// is the same whether it began with an early snapshot and many events or with a late one and few.

import type {
    AgentEventParams,
    AgentId,
    CallId,
    ContextUse,
    Event,
    Goal,
    Item,
    ItemId,
    ModelRetry,
    PermissionPrompt,
    ProviderLimit,
    Question,
    SessionWriter,
    Snapshot,
    StopReason,
    StorageFailure,
    Subagent,
    SubagentStarted,
    Team,
    ToolCall,
    TurnId,
    Usage,
} from "kode-protocol";

import { isNews } from "../../shared/news.ts";
import { changeItem, findItem, putItem, rewindTo, transcriptOf, type Transcript } from "./transcript.ts";

/** The most sub-agents that are remembered. */
const MAX_AGENTS = 200;

/** The most turns whose end is remembered. */
const MAX_TURNS = 100;

/** The most characters of output of a running call that are shown. */
const MAX_LIVE = 16_384;

/** Characters of a title that is the first line of a prompt. */
const TITLE = 80;

/** A sub-agent as its row shows it. */
export interface AgentView {
    readonly agentId: AgentId;
    readonly callId: CallId;
    readonly kind: string;
    readonly description: string;
    readonly running: boolean;
    readonly ok?: boolean;
    readonly usage?: Usage;
    readonly durationMs?: number;
    /** Its last act, in one line. */
    readonly latest: string;
    /** The calls of tools it made, as far as this page has seen. */
    readonly calls: ReadonlySet<CallId>;
    /** Its transcript; absent until it is opened. */
    readonly transcript?: Transcript;
    /** The number of the newest event that was in the transcript when it came. */
    readonly since?: number;
}

/** How full the context window is. */
export interface ContextView {
    readonly tokens: number;
    readonly window: number;
    /** Its parts, as last reported; absent before. */
    readonly detail?: ContextUse;
}

/** A compaction that runs. */
export interface Compressing {
    readonly written: number;
}

/** A turn that runs, or one that ended while this page was there. */
export interface TurnView {
    readonly turnId: TurnId;
    readonly startedAt: string;
    readonly stopReason?: StopReason;
    readonly durationMs?: number;
    readonly cost?: number;
    readonly usage?: Usage;
    /** Output tokens that the provider has reported so far. */
    readonly tokens: number;
    /** Characters that have streamed since the last report. */
    readonly streamed: number;
}

/** A session. */
export interface SessionView {
    readonly sessionId: string;
    readonly title: string;
    /** The number of the newest event in it. */
    readonly seq: number;
    readonly state: Snapshot["state"];
    readonly mode: Snapshot["mode"];
    readonly model: string;
    readonly effort: Snapshot["effort"];
    readonly outputStyle: Snapshot["outputStyle"];
    /** The sandbox profile; absent for the sandbox of the settings. */
    readonly sandbox: Snapshot["sandbox"];
    readonly transcript: Transcript;
    readonly agents: ReadonlyMap<AgentId, AgentView>;
    /** The newest output of calls that run. */
    readonly live: ReadonlyMap<CallId, string>;
    readonly permissions: readonly PermissionPrompt[];
    readonly questions: readonly Question[];
    readonly todos: NonNullable<Snapshot["todos"]>;
    /** The goal with its progress; absent without one. */
    readonly goal: Goal | undefined;
    /** The git worktree it works in; absent where it works in the workspace itself. */
    readonly worktree: Snapshot["worktree"];
    /** The main conversation and the sub-agents in the background; absent without any. */
    readonly team: Team | undefined;
    readonly queue: Snapshot["queue"];
    readonly steering: Snapshot["queue"];
    readonly queuePaused: boolean;
    readonly draft: Snapshot["draft"];
    readonly tasks: NonNullable<Snapshot["tasks"]>;
    readonly usage: Usage;
    readonly cost: number | undefined;
    readonly context: ContextView | undefined;
    /** Tokens a second of the newest long answer; absent before one. */
    readonly speed: number | undefined;
    /** The provider's rate limits as it stated them last. */
    readonly limits: readonly ProviderLimit[];
    readonly turn: TurnView | undefined;
    /** How turns ended, the newest last. */
    readonly ends: ReadonlyMap<TurnId, TurnView>;
    /** The costs of turns that ended before the session was loaded, in US dollars. */
    readonly costs: ReadonlyMap<TurnId, number>;
    readonly compressing: Compressing | undefined;
    readonly retry: ModelRetry | undefined;
    readonly storage: StorageFailure | undefined;
    /** Present when another server writes the session. */
    readonly following: { readonly by?: SessionWriter } | undefined;
    /** Counts what makes a list of edits out of date. */
    readonly edits: number;
    /** Counts what makes the lists of rules and of what waits for approval out of date. */
    readonly rules: number;
    /** How much of what files of the workspace ask for waits for the user. */
    readonly trust: Snapshot["trustRequired"];
    /** The newest act on hunks or on a checkpoint that was reported as done. */
    readonly resolved: Extract<Event, { type: "edits_resolved" }> | undefined;
    /** Whether events were lost: the session must be loaded again. */
    readonly gap: boolean;
}

/** Makes the view of a snapshot. */
export function sessionOf(snapshot: Snapshot): SessionView {
    const context = snapshot.context;
    return {
        sessionId: snapshot.sessionId,
        title: snapshot.title,
        seq: snapshot.bookmark.seq,
        state: snapshot.state,
        mode: snapshot.mode,
        model: snapshot.model.name,
        effort: snapshot.effort,
        outputStyle: snapshot.outputStyle,
        sandbox: snapshot.sandbox,
        transcript: transcriptOf(snapshot.items, snapshot.moreItems),
        agents: new Map((snapshot.subagents ?? []).map((agent) => [agent.agentId, workingAgent(agent)])),
        live: new Map(),
        permissions: snapshot.pendingPermissions,
        questions: snapshot.questions ?? [],
        todos: snapshot.todos ?? [],
        goal: snapshot.goal,
        worktree: snapshot.worktree,
        team: snapshot.team,
        queue: snapshot.queue,
        steering: snapshot.steering ?? [],
        queuePaused: snapshot.queuePaused ?? false,
        draft: snapshot.draft,
        tasks: snapshot.tasks ?? [],
        usage: snapshot.usage,
        cost: snapshot.cost,
        context: context && { tokens: context.tokens, window: context.window, detail: context },
        speed: undefined,
        limits: [],
        turn: undefined,
        ends: new Map(),
        costs: new Map(),
        compressing: undefined,
        retry: undefined,
        storage: undefined,
        following: snapshot.following,
        edits: 0,
        rules: 0,
        trust: snapshot.trustRequired,
        resolved: undefined,
        gap: false,
    };
}

/** Folds one event into a session. */
export function foldEvent(view: SessionView, params: AgentEventParams): SessionView {
    const { event, bookmark } = params;
    // The writer of a session is not part of its events, and has the number of the event before it.
    if (event.type === "lease_changed") return leaseChanged(view, event);
    if (event.type === "gap") return { ...view, gap: true };
    if (!isNews(params, view.seq)) return view;
    const fold = FOLDS[event.type] as Fold<Event["type"]> | undefined;
    const folded = fold ? fold(view, event as never, bookmark) : view;
    return { ...folded, seq: bookmark.seq };
}

/** Puts the known sub-agents into the view of a snapshot, which has only the running ones. */
export function withKnownAgents(view: SessionView, known: ReadonlyMap<AgentId, AgentView>): SessionView {
    const before = [...known].map(([id, agent]): [AgentId, AgentView] => {
        const now = view.agents.get(id);
        return [id, now ? { ...agent, callId: now.callId, running: true } : { ...agent, running: false }];
    });
    return { ...view, agents: new Map([...before, ...[...view.agents].filter(([id]) => !known.has(id))]) };
}

/** Puts what a sub-agent did so far into the session. */
export function withAgentTranscript(view: SessionView, agent: Subagent): SessionView {
    const known = view.agents.get(agent.agentId) ?? blankAgent(agent.agentId, "");
    const transcript = transcriptOf(agent.items, agent.moreItems);
    return withAgent(view, { ...known, transcript, since: agent.bookmark.seq });
}

/** Folds an event that came while a sub-agent's transcript was on its way into that transcript alone. */
export function foldAgentEvent(view: SessionView, id: AgentId, { event, bookmark }: AgentEventParams): SessionView {
    const agent = view.agents.get(id);
    if (!agent?.transcript || !isNew(agent, bookmark.seq)) return view;
    switch (event.type) {
        case "item_added":
        case "item_updated":
        case "tool:start":
        case "tool:end":
            if (event.item.agentId !== id) return view;
            return withAgent(view, { ...agent, transcript: putItem(agent.transcript, event.item) });
        case "text_chunk":
        case "think_chunk": {
            const grow = growing(event.type === "text_chunk" ? "agentMessage" : "thinking", event.text);
            return withAgent(view, { ...agent, transcript: changeItem(agent.transcript, event.itemId, grow) });
        }
        default:
            return view;
    }
}

/** Whether a turn runs. */
export function isRunning(view: SessionView): boolean {
    return view.state !== "READY";
}

/** How many answers of the user the session waits for. */
export function waitingFor(view: SessionView): number {
    return view.permissions.length + view.questions.length;
}

type EventOf<T extends Event["type"]> = Extract<Event, { type: T }>;
type Fold<T extends Event["type"]> = (
    view: SessionView,
    event: EventOf<T>,
    bookmark: AgentEventParams["bookmark"],
) => SessionView;

const FOLDS: { [T in Event["type"]]?: Fold<T> } = {
    turn_started: (view, event, { timestamp }) => ({
        ...view,
        turn: { turnId: event.turnId, startedAt: timestamp, tokens: 0, streamed: 0 },
    }),
    item_added: (view, event, { seq }) => putAnyItem(view, event.item, seq),
    item_updated: (view, event, { seq }) => putAnyItem(view, event.item, seq),
    "tool:start": (view, event, { seq }) => putAnyItem(view, event.item, seq),
    "tool:end": (view, event, { seq }) => toolEnded(view, event.item, seq),
    text_chunk: (view, event, { seq }) =>
        streamed(grown(view, event.itemId, growing("agentMessage", event.text), seq), event.text),
    think_chunk: (view, event, { seq }) =>
        streamed(grown(view, event.itemId, growing("thinking", event.text), seq), event.text),
    "tool:progress": (view, event) => ({
        ...view,
        live: new Map(view.live).set(event.callId, event.text.slice(-MAX_LIVE)),
    }),
    done: (view, event) => {
        const turn: TurnView = {
            turnId: event.turnId,
            startedAt: view.turn?.startedAt ?? "",
            tokens: view.turn?.tokens ?? 0,
            streamed: 0,
            stopReason: event.stopReason,
            durationMs: event.durationMs,
            usage: event.usage,
            ...(event.cost === undefined ? {} : { cost: event.cost }),
        };
        return {
            ...view,
            turn,
            ends: withEnd(view.ends, turn),
            usage: addedUsage(view.usage, event.usage),
            live: new Map(),
            retry: undefined,
            compressing: undefined,
        };
    },
    permission_required: (view, event) => ({
        ...view,
        permissions: [
            ...view.permissions.filter((prompt) => prompt.permissionId !== event.prompt.permissionId),
            event.prompt,
        ],
    }),
    permission_updated: (view, { permissionId, diagnostics }) => ({
        ...view,
        permissions: view.permissions.map((prompt) =>
            prompt.permissionId === permissionId ? { ...prompt, diagnostics } : prompt,
        ),
    }),
    permission_decided: (view, event) => ({
        ...view,
        permissions: view.permissions.filter((prompt) => prompt.permissionId !== event.permissionId),
    }),
    question_asked: (view, event) => ({
        ...view,
        questions: [
            ...view.questions.filter((question) => question.questionId !== event.question.questionId),
            event.question,
        ],
    }),
    question_answered: (view, event) => ({
        ...view,
        questions: view.questions.filter((question) => question.questionId !== event.questionId),
    }),
    state_changed: (view, event) => ({ ...view, state: event.state }),
    mode_changed: (view, event) => ({
        ...view,
        mode: event.mode,
        model: event.model,
        effort: event.effort,
        outputStyle: event.outputStyle,
        sandbox: event.sandbox,
    }),
    queue_changed: (view, event) => ({
        ...view,
        queue: event.queue,
        steering: event.steering ?? [],
        queuePaused: event.paused ?? false,
    }),
    title_changed: (view, event) => ({ ...view, title: event.title }),
    draft_changed: (view, event) => ({ ...view, draft: event.draft }),
    goal_changed: (view, event) => ({ ...view, goal: event.goal }),
    team_changed: (view, event) => ({ ...view, team: event.team }),
    todo_changed: (view, event) => ({ ...view, todos: event.todos }),
    background_started: (view, event) => ({
        ...view,
        tasks: [...view.tasks.filter((task) => task.taskId !== event.task.taskId), event.task],
    }),
    background_ended: (view, event) => ({
        ...view,
        tasks: view.tasks.filter((task) => task.taskId !== event.task.taskId),
    }),
    edits_changed: (view) => ({ ...view, edits: view.edits + 1 }),
    edits_resolved: (view, event) => ({ ...view, edits: view.edits + 1, resolved: event }),
    trust_required: (view, event) => ({ ...view, trust: event, rules: view.rules + 1 }),
    config_changed: (view, event) => ({
        ...view,
        trust: event.withheld.length === 0 ? undefined : view.trust,
        rules: view.rules + 1,
    }),
    rewound: (view, event) => ({ ...view, transcript: rewindTo(view.transcript, event.itemId) }),
    subagent_started: (view, event) =>
        withAgent(view, {
            ...(view.agents.get(event.agentId) ?? blankAgent(event.agentId, event.callId)),
            callId: event.callId,
            kind: event.agentType,
            description: event.description,
            running: true,
        }),
    subagent_ended: (view, event) =>
        withAgent(view, {
            ...(view.agents.get(event.agentId) ?? blankAgent(event.agentId, "")),
            running: false,
            ok: event.ok,
            usage: event.usage,
            durationMs: event.durationMs,
        }),
    token_usage: (view, event) => ({
        ...view,
        // Tokens of a side question are of no turn.
        ...(view.turn?.turnId === event.turnId && {
            turn: { ...view.turn, tokens: view.turn.tokens + event.usage.outputTokens, streamed: 0 },
            retry: undefined,
        }),
        speed: event.tokensPerSecond ?? view.speed,
        limits: event.limits?.length ? event.limits : view.limits,
        context:
            event.contextTokens !== undefined && event.contextWindow !== undefined
                ? { ...view.context, tokens: event.contextTokens, window: event.contextWindow }
                : view.context,
        cost: view.cost === undefined || event.cost === undefined ? undefined : view.cost + event.cost,
    }),
    context_compression: (view, event) => {
        if (event.agentId !== undefined) return view;
        switch (event.step.type) {
            case "started":
                return { ...view, compressing: { written: 0 } };
            case "progress":
                return { ...view, compressing: { written: event.step.written } };
            case "done":
                return {
                    ...view,
                    compressing: undefined,
                    context: view.context && { tokens: event.step.tokensAfter, window: view.context.window },
                };
            default:
                return { ...view, compressing: undefined };
        }
    },
    model_retry: (view, event) => ({ ...view, retry: event }),
    // Earlier open prompts are closed when the session is resumed, unless it is reported again.
    agent_resumed: (view) => ({ ...view, permissions: [], questions: [], live: new Map(), retry: undefined }),
    storage_failure: (view, event) => ({ ...view, storage: event.recovered ? undefined : event }),
};

function streamed(view: SessionView, text: string): SessionView {
    return view.turn ? { ...view, turn: { ...view.turn, streamed: view.turn.streamed + text.length } } : view;
}

function withEnd(ends: SessionView["ends"], turn: TurnView): SessionView["ends"] {
    const all = new Map(ends).set(turn.turnId, turn);
    const [oldest] = all.keys();
    if (all.size > MAX_TURNS && oldest !== undefined) all.delete(oldest);
    return all;
}

function leaseChanged(view: SessionView, event: EventOf<"lease_changed">): SessionView {
    if (event.isMine) return { ...view, following: undefined };
    return { ...view, following: event.writer ? { by: event.writer } : {} };
}

function putAnyItem(view: SessionView, item: Item, seq: number): SessionView {
    const agentId = item.agentId;
    if (agentId === undefined)
        return { ...view, title: titled(view, item), transcript: putItem(view.transcript, item) };
    const agent = view.agents.get(agentId) ?? blankAgent(agentId, "");
    const call = item.body.type === "toolCall" ? item.body : undefined;
    return withAgent(view, {
        ...agent,
        latest: call?.title ?? agent.latest,
        calls: call && !agent.calls.has(call.callId) ? new Set(agent.calls).add(call.callId) : agent.calls,
        ...(agent.transcript && isNew(agent, seq) ? { transcript: putItem(agent.transcript, item) } : {}),
    });
}

/** A session is called by the first line of its first prompt until it is given a title, which no event tells. */
function titled(view: SessionView, item: Item): string {
    if (view.title !== "" || item.body.type !== "userMessage") return view.title;
    const line = [...(item.body.text.trim().split("\n")[0] ?? "")];
    return line.length > TITLE ? `${line.slice(0, TITLE).join("")}…` : line.join("");
}

function toolEnded(view: SessionView, item: Item, seq: number): SessionView {
    const ended = putAnyItem(view, item, seq);
    const callId = (item.body as ToolCall).callId;
    if (!ended.live.has(callId)) return ended;
    const live = new Map(ended.live);
    live.delete(callId);
    return { ...ended, live };
}

/** Whether an event is not in the transcript of a sub-agent yet. */
function isNew(agent: AgentView, seq: number): boolean {
    return agent.since === undefined || seq > agent.since;
}

function growing(kind: "agentMessage" | "thinking", text: string): (item: Item) => Item {
    return (item) =>
        item.body.type === kind ? { ...item, body: { ...item.body, text: item.body.text + text } } : item;
}

function grown(view: SessionView, id: ItemId, grow: (item: Item) => Item, seq: number): SessionView {
    const transcript = changeItem(view.transcript, id, grow);
    if (transcript !== view.transcript) return { ...view, transcript };
    for (const agent of view.agents.values()) {
        if (!agent.transcript || !isNew(agent, seq) || !findItem(agent.transcript, id)) continue;
        return withAgent(view, { ...agent, transcript: changeItem(agent.transcript, id, grow) });
    }
    return view;
}

function blankAgent(agentId: AgentId, callId: CallId): AgentView {
    return { agentId, callId, kind: "", description: "", running: true, latest: "", calls: new Set() };
}

function workingAgent({ agentId, callId, agentType, description }: SubagentStarted): AgentView {
    return { ...blankAgent(agentId, callId), kind: agentType, description };
}

function withAgent(view: SessionView, agent: AgentView): SessionView {
    const agents = new Map(view.agents).set(agent.agentId, agent);
    const oldest = agents.keys().next();
    if (agents.size > MAX_AGENTS && !oldest.done) agents.delete(oldest.value);
    return { ...view, agents };
}

function addedUsage(sum: Usage, more: Usage): Usage {
    const thinking = (sum.thinkingTokens ?? 0) + (more.thinkingTokens ?? 0);
    return {
        inputTokens: sum.inputTokens + more.inputTokens,
        outputTokens: sum.outputTokens + more.outputTokens,
        cacheReadTokens: sum.cacheReadTokens + more.cacheReadTokens,
        cacheWriteTokens: sum.cacheWriteTokens + more.cacheWriteTokens,
        ...(sum.thinkingTokens === undefined && more.thinkingTokens === undefined
            ? {}
            : { thinkingTokens: thinking }),
    };
}
