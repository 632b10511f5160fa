// The side questions of the session, each with its answer.
//
// Rule: a card is apart from the transcript and takes no focus. It stays until it is closed: by its button, or by Escape in it.

import { askAgain, closeAside } from "../../app/asides.ts";
import type { SideQuestion } from "../../app/state.ts";
import { useApp, useSelect } from "../../app/context.ts";
import { copyAnswer } from "../../app/turns.ts";
import { Markdown } from "../../markdown/Markdown.tsx";
import { exact, prose } from "../../text.ts";
import { Icon, Spinner } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";
import { Words } from "../Words.tsx";

export function Asides() {
    const asides = useSelect((state) => state.asides);
    const active = useSelect((state) => state.active);
    const shown = asides.filter(({ sessionId }) => sessionId === active);
    return (
        <>
            {shown.map((aside) => (
                <AsideCard key={aside.askId} aside={aside} />
            ))}
        </>
    );
}

function AsideCard({ aside }: { aside: SideQuestion }) {
    const app = useApp();
    const { askId, question, text, state, problem } = aside;
    const close = () => closeAside(app, askId);
    return (
        <section
            class="aside"
            aria-label={`Side question: ${question}`}
            aria-busy={state === "asking"}
            onKeyDown={(event) => {
                if (event.key !== "Escape") return;
                event.preventDefault();
                event.stopPropagation();
                close();
            }}
        >
            <header>
                {state === "asking" ? <Spinner /> : <Icon name="question" />}
                <h2>{prose(question)}</h2>
                {state === "failed" && <IconAct icon="retry" label="Ask again" onClick={() => askAgain(app, aside)} />}
                {(state === "answered" || state === "cut") && (
                    <IconAct icon="copy" label="Copy the answer" onClick={() => copyAnswer(app, text)} />
                )}
                <IconAct icon="close" label={state === "asking" ? "Cancel the side question" : "Close"} onClick={close} />
            </header>
            <div class="aside-answer" tabIndex={0} role="group" aria-label="The answer">
                {text !== "" && <Markdown text={text} complete={state !== "asking"} />}
                {state === "cut" && <p class="hint">The answer was cut at its limit.</p>}
                {problem && (
                    <p class="aside-problem">
                        <Words text={exact(problem.message)} />{" "}
                        {problem.hint !== "" && (
                            <span class="hint">
                                <Words text={exact(problem.hint)} />
                            </span>
                        )}
                    </p>
                )}
            </div>
        </section>
    );
}
