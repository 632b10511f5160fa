// Questions of the model: one or several, one answer or many, words of one's own; plans to accept; answers to choose from.
//
// Rule: nothing is chosen beforehand, and no answer is always possible. The card never takes the focus by itself.

import type { Candidate, Mode, Question, QuestionAnswer, RespondQuestionParams } from "kode-protocol";
import { useRef, useState } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp } from "../app/context.ts";
import { Markdown } from "../markdown/Markdown.tsx";
import { Icon } from "../panels/Icon.tsx";
import { counted, exact, prose } from "../text.ts";
import { useAskingCard } from "./asking.ts";

export function QuestionCard({ question, others }: { question: Question; others: number }) {
    const app = useApp();
    const card = useRef<HTMLElement>(null);
    useAskingCard(card);
    const onKey = (event: KeyboardEvent) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        void refuse(app, question);
    };
    return (
        <section
            ref={card}
            class="prompt-card question"
            tabIndex={-1}
            aria-label={question.plan === undefined ? "A question" : "A plan"}
            onKeyDown={onKey}
            data-question={question.questionId}
        >
            {others > 0 && <span class="badge">{counted(others, "more")}</span>}
            {question.plan === undefined ? (
                <Inquiries question={question} />
            ) : (
                <Plan question={question} plan={question.plan} />
            )}
        </section>
    );
}

interface Picked {
    labels: readonly string[];
    text: string;
}

function Inquiries({ question }: { question: Question }) {
    const app = useApp();
    const [picked, setPicked] = useState<readonly Picked[]>(
        question.questions.map(() => ({ labels: [], text: "" })),
    );
    const set = (index: number, change: Partial<Picked>) =>
        setPicked(picked.map((one, at) => (at === index ? { ...one, ...change } : one)));
    const isWhole = picked.every(({ labels, text }) => labels.length > 0 || text.trim() !== "");
    const ownWords = !["turnLimit", "candidates", "rest"].includes(question.kind ?? "choice");
    const send = () =>
        void app.attempt(() =>
            respond(app, question, {
                answers: picked.map(({ labels, text }): QuestionAnswer => ({
                    labels: [...labels],
                    ...(text.trim() === "" ? {} : { text }),
                })),
            }),
        );
    return (
        <>
            {question.questions.map((inquiry, index) => {
                const one = picked[index] ?? { labels: [], text: "" };
                const pick = (label: string) => {
                    const has = one.labels.includes(label);
                    if (!inquiry.multiSelect) set(index, { labels: has ? [] : [label] });
                    else
                        set(index, {
                            labels: has
                                ? one.labels.filter((other) => other !== label)
                                : [...one.labels, label],
                        });
                };
                return (
                    <fieldset key={index} class="inquiry">
                        <legend>
                            {inquiry.header !== "" && <span class="badge">{prose(inquiry.header)}</span>}{" "}
                            {prose(inquiry.question)}
                        </legend>
                        {inquiry.options.map((option, at) => {
                            const candidate = question.candidates?.[at];
                            return (
                                <label
                                    key={option.label}
                                    class={one.labels.includes(option.label) ? "option chosen" : "option"}
                                >
                                    <input
                                        type={inquiry.multiSelect ? "checkbox" : "radio"}
                                        name={`${question.questionId}-${index}`}
                                        checked={one.labels.includes(option.label)}
                                        onChange={() => pick(option.label)}
                                    />
                                    <span>
                                        <span class="option-label">{prose(option.label)}</span>
                                        {option.description !== "" && (
                                            <span class="hint">{prose(option.description)}</span>
                                        )}
                                        {candidate && <CandidateView candidate={candidate} />}
                                    </span>
                                </label>
                            );
                        })}
                        {ownWords && (
                            <input
                                type="text"
                                class="tell"
                                placeholder="Or in your own words"
                                aria-label={`Your own words: ${prose(inquiry.question)}`}
                                value={one.text}
                                onInput={(event) => set(index, { text: event.currentTarget.value })}
                                onKeyDown={(event) => {
                                    if (event.key === "Enter" && !event.isComposing && isWhole) send();
                                }}
                            />
                        )}
                    </fieldset>
                );
            })}
            <div class="answer">
                <button type="button" class="primary" disabled={!isWhole} onClick={send}>
                    Answer
                </button>
                <button type="button" class="secondary" onClick={() => void refuse(app, question)}>
                    Do not answer
                </button>
            </div>
        </>
    );
}

function CandidateView({ candidate }: { candidate: Candidate }) {
    return (
        <div class="candidate">
            <Markdown text={candidate.text} complete />
            {candidate.calls.map((call, index) => (
                <pre key={index} class="arguments">
                    {exact(`${call.name} ${JSON.stringify(call.input, null, 2)}`)}
                </pre>
            ))}
        </div>
    );
}

function Plan({ question, plan }: { question: Question; plan: string }) {
    const app = useApp();
    const [edited, setEdited] = useState<string>();
    const [words, setWords] = useState("");
    const options = question.questions[0]?.options ?? [];
    const changed = edited !== undefined && edited !== plan;
    const [keep, accept, acceptAll] = options;
    const choose = (label: string, mode?: Mode) =>
        void app.attempt(() =>
            respond(app, question, {
                answers: [
                    {
                        labels: [label],
                        ...(label === keep?.label && words.trim() !== "" ? { text: words } : {}),
                    },
                ],
                ...(label !== keep?.label && changed ? { plan: edited } : {}),
                ...(mode === undefined ? {} : { mode }),
            }),
        );
    return (
        <>
            <header>
                <Icon name="plan" />
                <h2>Plan</h2>
                <button
                    type="button"
                    class="quiet"
                    aria-pressed={edited !== undefined}
                    onClick={() => setEdited(edited === undefined ? plan : undefined)}
                >
                    {edited === undefined ? "Edit" : "Leave as it was"}
                </button>
            </header>
            {edited === undefined ? (
                <div class="plan-text" tabIndex={0} role="region" aria-label="The plan">
                    <Markdown text={plan} complete />
                </div>
            ) : (
                <textarea
                    class="plan-edit"
                    aria-label="The plan"
                    rows={Math.min(24, plan.split("\n").length + 2)}
                    value={edited}
                    onInput={(event) => setEdited(event.currentTarget.value)}
                />
            )}
            <div class="answer">
                {accept && (
                    <button
                        type="button"
                        class="primary"
                        title={prose(accept.description)}
                        onClick={() => choose(accept.label)}
                    >
                        {prose(accept.label)}
                    </button>
                )}
                {acceptAll && (
                    <button
                        type="button"
                        class="secondary"
                        title={prose(acceptAll.description)}
                        onClick={() => choose(acceptAll.label)}
                    >
                        {prose(acceptAll.label)}
                    </button>
                )}
                {keep && (
                    <button
                        type="button"
                        class="secondary"
                        title={prose(keep.description)}
                        onClick={() => choose(keep.label)}
                    >
                        {prose(keep.label)}
                    </button>
                )}
                <input
                    type="text"
                    class="tell"
                    placeholder="Changes to the plan"
                    aria-label="Changes to the plan"
                    value={words}
                    onInput={(event) => setWords(event.currentTarget.value)}
                    onKeyDown={(event) => {
                        if (event.key === "Enter" && !event.isComposing && words.trim() !== "" && keep)
                            choose(keep.label);
                    }}
                />
            </div>
        </>
    );
}

/** Questions whose answer is on its way: a second press of the button is ignored. */
const answering = new Set<string>();

async function respond(app: App, question: Question, answer: Partial<RespondQuestionParams>): Promise<void> {
    const { sessionId, questionId } = question;
    if (answering.has(questionId)) return;
    answering.add(questionId);
    try {
        await app.host.request("agent/question/respond", { sessionId, questionId, ...answer });
    } finally {
        answering.delete(questionId);
    }
}

function refuse(app: App, question: Question): Promise<boolean> {
    return app.attempt(() => respond(app, question, {}));
}
