// The user's reply to a call: the reason of a denial, an answer, an accepted plan.
//
// Rule: it is in the transcript as long as the call does, whether the call is open or closed.

import type { Inquiry, QuestionAnswer, ToolCall } from "kode-protocol";

import { Markdown } from "../markdown/Markdown.tsx";
import { Icon } from "../panels/Icon.tsx";
import { prose } from "../text.ts";
import { Card } from "./Card.tsx";
import type { CallItem } from "./parts.tsx";

/** The user's reply, by the form of the call's result. */
interface Said {
    feedback?: unknown;
    questions?: Inquiry[];
    answers?: QuestionAnswer[];
}

export function Reply({ call }: { call: ToolCall }) {
    const { feedback, questions, answers } = (call.structured ?? {}) as Said;
    if (Array.isArray(questions) && Array.isArray(answers))
        return (
            <div class="told">
                <Icon name="reply" />
                <dl>
                    {questions.map(({ question }, index) => (
                        <div key={index}>
                            <dt>{prose(question)}</dt>
                            <dd>{prose(answerText(answers[index]))}</dd>
                        </div>
                    ))}
                </dl>
            </div>
        );
    if (typeof feedback !== "string" || feedback === "") return null;
    return (
        <div class="told">
            <Icon name="reply" />
            <span>{prose(feedback)}</span>
        </div>
    );
}

function answerText(answer: QuestionAnswer | undefined): string {
    const labels = answer?.labels ?? [];
    return [...labels, ...(answer?.text === undefined ? [] : [answer.text])].join(", ") || "No answer";
}

/** A plan that was accepted. */
export function PlanRow({ item }: { item: CallItem }) {
    const { plan, edited } = (item.body.structured ?? {}) as { plan?: unknown; edited?: unknown };
    if (typeof plan !== "string") return null;
    return (
        <Card
            name={item.itemId}
            icon="plan"
            title={edited === true ? "Plan accepted, with your changes" : "Plan accepted"}
        >
            {() => <Markdown text={plan} complete />}
        </Card>
    );
}
