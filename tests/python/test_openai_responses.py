"""The official SDK takes the scripted model for the real Responses API.

Rule: the scripted model is what all other tests believe, so an independent client judges it.
"""

import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent

from harness import LIMIT, Model, call, say

TOOL: Any = {
    "type": "function",
    "name": "Read",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    "strict": False,
}
THINKING = {"type": "thinking", "thinking": "Let me see…", "signature": "c2VhbA"}
USAGE = {"input_tokens": 200, "output_tokens": 34, "cache_read_input_tokens": 1000, "reasoning_tokens": 20}


def client_of(model: Model, path: str = "/v1") -> openai.OpenAI:
    return openai.OpenAI(base_url=model.base_url + path, api_key="test-key", max_retries=0, timeout=LIMIT)


def whole(client: openai.OpenAI, **request: Any) -> Response:
    return client.responses.create(model="gpt-test", **request)


def streamed(client: openai.OpenAI, **request: Any) -> Response:
    with client.responses.stream(model="gpt-test", **request) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def events(client: openai.OpenAI, **request: Any) -> list[ResponseStreamEvent]:
    with client.responses.create(model="gpt-test", stream=True, **request) as stream:
        return list(stream)


@pytest.fixture(params=[whole, streamed], ids=["whole", "streamed"])
def ask(request):
    """A function that asks a model, once with a whole answer and once with a stream."""

    def ask(model: Model, said: Any = "Look at it.", path: str = "/v1", **more: Any) -> Response:
        return request.param(client_of(model, path), input=said, tools=[TOOL], **more)

    return ask


@pytest.mark.parametrize("path", ["/v1", ""])
def test_text_and_usage(serve, ask, path):
    answer = ask(serve({**say("It says 🙂 häh?"), "usage": USAGE, "chunk": 1}), path=path)
    assert (answer.status, answer.model, answer.output_text) == ("completed", "gpt-test", "It says 🙂 häh?")
    assert [item.type for item in answer.output] == ["message"]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1200, 34)
    assert answer.usage.input_tokens_details.cached_tokens == 1000
    assert answer.usage.output_tokens_details.reasoning_tokens == 20


def test_function_calls_and_the_history_they_make(serve, ask):
    path = 'C:\\Temp\\"quoted" ☃.txt'
    calls = {"content": [*call("Read", file_path=path)["content"], *call("Read", file_path="b")["content"]]}
    model = serve(calls, say("Done."))
    answer = ask(model)
    assert [(item.type, item.name) for item in answer.output] == [("function_call", "Read")] * 2
    assert [json.loads(item.arguments) for item in answer.output] == [{"file_path": path}, {"file_path": "b"}]
    assert len({item.call_id for item in answer.output}) == 2

    outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": "text"} for item in answer.output]
    assert ask(model, outputs, previous_response_id=answer.id).output_text == "Done."
    made = [
        {"type": "function_call", "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
        for item in answer.output
    ]
    prompt = {"role": "user", "content": "Look at it."}
    assert ask(model, [prompt, *made, *outputs], store=False).output_text == "Done."

    for said, more in [(outputs[:1], {"previous_response_id": answer.id}), ([prompt, *made, outputs[1]], {})]:
        with pytest.raises(openai.BadRequestError, match="No tool output found"):
            ask(model, said, **more)
    with pytest.raises(openai.BadRequestError, match="No tool call found"):
        ask(model, outputs)


def test_reasoning_is_shown_and_sealed_where_that_is_asked_for(serve, ask):
    model = serve({"content": [THINKING, *call("Read")["content"]]}, say("Done."))
    plain, shown = ask(model).output[0], ask(model, reasoning={"summary": "auto"}).output[0]
    assert (plain.type, plain.summary, plain.encrypted_content) == ("reasoning", [], None)
    assert [part.text for part in shown.summary] == ["Let me see…"]

    stateless: Any = {"store": False, "include": ["reasoning.encrypted_content"]}
    answer = ask(model, **stateless)
    reasoning, made = answer.output
    prompt = {"role": "user", "content": "Look at it."}
    sealed = {"type": "reasoning", "id": reasoning.id, "summary": [], "encrypted_content": reasoning.encrypted_content}
    function = {
        "type": "function_call",
        "id": made.id,
        "call_id": made.call_id,
        "name": made.name,
        "arguments": made.arguments,
    }
    output = {"type": "function_call_output", "call_id": made.call_id, "output": "text"}
    assert ask(model, [prompt, sealed, function, output], **stateless).output_text == "Done."
    with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
        ask(model, [prompt, function, output], **stateless)
    with pytest.raises(openai.BadRequestError, match="required following item"):
        ask(model, [prompt, sealed], **stateless)
    with pytest.raises(openai.BadRequestError) as refused:
        ask(model, [prompt, {**sealed, "encrypted_content": "somebody else's"}, function, output], **stateless)
    assert refused.value.code == "invalid_encrypted_content"


def test_conversations_are_kept_until_they_are_forgotten(serve, ask):
    model = serve(say("One."), {**say("Two."), "faults": []})
    first = ask(model)
    assert ask(model, "And?", previous_response_id=first.id).output_text == "One.", "a new prompt begins again"
    assert ask(model, "And?", previous_response_id=first.id).previous_response_id == first.id
    unkept = ask(model, store=False)
    model.forget()
    for forgotten in [first.id, unkept.id, "resp_of_another_server"]:
        with pytest.raises(openai.BadRequestError) as refused:
            ask(model, "And?", previous_response_id=forgotten)
        assert refused.value.code == "previous_response_not_found"
        assert refused.value.param == "previous_response_id"
    forgetful = serve(say("One."), forgetful=True)
    with pytest.raises(openai.BadRequestError):
        ask(forgetful, "And?", previous_response_id=ask(forgetful).id)


def test_what_is_not_stored_cannot_be_gone_on_from(serve, ask):
    model = serve(say("One."))
    with pytest.raises(openai.BadRequestError):
        ask(model, "And?", previous_response_id=ask(model, store=False).id)


def test_a_script_can_forget_for_one_request(serve, ask):
    model = serve(call("Read"), {**say("Done."), "faults": [{"forget": True}]})
    answer = ask(model)
    outputs = [{"type": "function_call_output", "call_id": answer.output[0].call_id, "output": "text"}]
    with pytest.raises(openai.BadRequestError) as refused:
        ask(model, outputs, previous_response_id=answer.id)
    assert refused.value.code == "previous_response_not_found"


def test_an_incomplete_answer_says_why(serve):
    def final(model: Model) -> list[Response]:
        """The answer as a whole, and as the last event of a stream: the SDK's own helper takes complete ones only."""
        return [whole(client_of(model), input="hi"), events(client_of(model), input="hi")[-1].response]

    for answer in final(serve({**say("It was"), "stop_reason": "max_tokens"})):
        assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert answer.output_text == "It was" and answer.output[0].status == "incomplete"
    for answer in final(serve({**say("It"), "stop_reason": "refusal"})):
        assert answer.incomplete_details.reason == "content_filter"


def test_a_refusal_is_a_part_of_its_own(serve, ask):
    answer = ask(serve({"content": [{"type": "refusal", "text": "No."}]}))
    [part] = answer.output[0].content
    assert (part.type, part.refusal, answer.status) == ("refusal", "No.", "completed")


def test_the_events_come_in_the_order_of_the_real_api(serve):
    content = [THINKING, {"type": "text", "text": "Hello."}, *call("Read")["content"]]
    model = serve({"content": content, "chunk": 100})
    came = events(client_of(model), input="hi", reasoning={"summary": "auto"})
    assert [type(event).__name__.removeprefix("Response").removesuffix("Event") for event in came] == [
        "Created",
        "InProgress",
        "OutputItemAdded",
        "ReasoningSummaryPartAdded",
        "ReasoningSummaryTextDelta",
        "ReasoningSummaryTextDone",
        "ReasoningSummaryPartDone",
        "OutputItemDone",
        "OutputItemAdded",
        "ContentPartAdded",
        "TextDelta",
        "TextDone",
        "ContentPartDone",
        "OutputItemDone",
        "OutputItemAdded",
        "FunctionCallArgumentsDelta",
        "FunctionCallArgumentsDone",
        "OutputItemDone",
        "Completed",
    ]
    assert [event.sequence_number for event in came] == list(range(len(came)))
    done = [event.item for event in came if event.type == "response.output_item.done"]
    assert done == came[-1].response.output


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, openai.AuthenticationError), (429, openai.RateLimitError), (500, openai.InternalServerError)],
)
def test_errors(serve, ask, status, error):
    model = serve({**say("At last."), "faults": [{"status": status, "headers": {"retry-after": "7"}}]})
    with pytest.raises(error) as refused:
        ask(model)
    assert refused.value.response.headers["retry-after"] == "7"
    assert ask(model).output_text == "At last."


def test_a_cut_stream_is_noticed(serve):
    model = serve({**say("A text of many pieces."), "chunk": 2, "faults": [{"cut_after_events": 7}]})
    with pytest.raises(openai.APIConnectionError):
        assert events(client_of(model), input="hi") == "never read to its end"
    assert len(model.requests()) == 1, "it was the answer that broke off"
