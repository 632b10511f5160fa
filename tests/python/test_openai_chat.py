"""The official SDK takes the scripted model for the real Chat Completions API.

Rule: the scripted model is what all other tests believe, so an independent client judges it.
"""

import json
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from harness import LIMIT, Model, call, say

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "Read",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    },
}
PROMPT: Any = {"role": "user", "content": "Look at it."}
USAGE = {
    "input_tokens": 200,
    "output_tokens": 34,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 50,
    "reasoning_tokens": 20,
}


def client_of(model: Model, path: str = "/v1") -> openai.OpenAI:
    return openai.OpenAI(base_url=model.base_url + path, api_key="test-key", max_retries=0, timeout=LIMIT)


def whole(client: openai.OpenAI, **request: Any) -> ChatCompletion:
    return client.chat.completions.create(**request)


def streamed(client: openai.OpenAI, **request: Any) -> ChatCompletion:
    with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


@pytest.fixture(params=[whole, streamed], ids=["whole", "streamed"])
def ask(request):
    """A function that asks a model, once with a whole answer and once with a stream."""

    def ask(model: Model, *messages: Any, path: str = "/v1") -> ChatCompletion:
        said = list(messages) or [PROMPT]
        return request.param(client_of(model, path), model="gpt-test", messages=said, tools=[TOOL])

    return ask


@pytest.mark.parametrize("path", ["/v1", ""])
def test_text_and_usage(serve, ask, path):
    answer = ask(serve({**say("It says 🙂 häh?"), "usage": USAGE, "chunk": 1}), path=path)
    assert (answer.object, answer.model) == ("chat.completion", "gpt-test")
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "It says 🙂 häh?")
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1250, 34)
    assert answer.usage.total_tokens == 1284
    assert answer.usage.prompt_tokens_details.cached_tokens == 1000
    assert answer.usage.completion_tokens_details.reasoning_tokens == 20


def test_usage_is_streamed_only_where_it_is_asked_for(serve):
    model = serve(say("Yes."))
    request = {"model": "gpt-test", "messages": [PROMPT], "stream": True}
    with client_of(model).chat.completions.create(**request) as stream:
        chunks = list(stream)
    assert all(chunk.usage is None and len(chunk.choices) == 1 for chunk in chunks)
    with client_of(model).chat.completions.create(**request, stream_options={"include_usage": True}) as stream:
        *chunks, last = stream
    assert all(chunk.usage is None for chunk in chunks)
    assert last.choices == [] and last.usage.completion_tokens > 0


def test_tool_calls_and_the_history_they_make(serve, ask):
    path = 'C:\\Temp\\"quoted" ☃.txt'
    model = serve(
        {"content": [*call("Read", file_path=path)["content"], *call("Read", file_path="b")["content"]]},
        say("Done."),
    )
    answer = ask(model)
    [choice] = answer.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    calls = choice.message.tool_calls
    assert [(made.type, made.function.name) for made in calls] == [("function", "Read")] * 2
    assert [json.loads(made.function.arguments) for made in calls] == [{"file_path": path}, {"file_path": "b"}]
    assert len({made.id for made in calls}) == 2

    made = [
        {"id": made.id, "type": "function", "function": {"name": made.function.name, "arguments": made.function.arguments}}
        for made in calls
    ]
    said = {"role": "assistant", "content": None, "tool_calls": made}
    results = [{"role": "tool", "tool_call_id": made.id, "content": "text"} for made in calls]
    assert ask(model, PROMPT, said, *results).choices[0].message.content == "Done."

    with pytest.raises(openai.BadRequestError) as refused:
        ask(model, PROMPT, said, results[0])
    assert refused.value.type == "invalid_request_error" and calls[1].id in refused.value.message


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_passed_through(serve, field):
    thinking = {"type": "thinking", "thinking": "Let me see…", "signature": "c2lnbmVk"}
    model = serve({"content": [thinking, {"type": "text", "text": "Yes."}]}, reasoning_field=field)
    request: Any = {"model": "gpt-test", "messages": [PROMPT]}
    message = client_of(model).chat.completions.create(**request).choices[0].message
    assert (getattr(message, field), message.content) == ("Let me see…", "Yes.")
    with client_of(model).chat.completions.create(**request, stream=True) as stream:
        deltas = [chunk.choices[0].delta for chunk in stream]
    assert "".join(getattr(delta, field, "") for delta in deltas) == "Let me see…"
    assert "".join(delta.content or "" for delta in deltas) == "Yes."


@pytest.mark.parametrize(("ours", "theirs"), [("max_tokens", "length"), ("refusal", "content_filter")])
def test_stops(serve, ours, theirs):
    model = serve({**say("It was"), "stop_reason": ours})
    assert whole(client_of(model), model="gpt-test", messages=[PROMPT]).choices[0].finish_reason == theirs
    request: Any = {"model": "gpt-test", "messages": [PROMPT], "stream": True}
    with client_of(model).chat.completions.create(**request) as stream:
        assert [chunk.choices[0].finish_reason for chunk in stream][-1] == theirs


def test_a_refusal_is_no_text(serve, ask):
    message = ask(serve({"content": [{"type": "refusal", "text": "No."}]})).choices[0].message
    assert message.refusal == "No." and not message.content


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (413, openai.APIStatusError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_errors(serve, ask, status, error):
    model = serve({**say("At last."), "faults": [{"status": status, "headers": {"retry-after": "7"}}]})
    with pytest.raises(error) as refused:
        ask(model)
    assert refused.value.status_code == status
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.request_id and refused.value.body["message"]
    assert ask(model).choices[0].message.content == "At last."


def test_the_sdk_waits_as_long_as_it_is_told_and_tries_again(serve):
    model = serve({**say("At last."), "faults": [{"status": 429, "headers": {"retry-after-ms": "1"}}]})
    client = client_of(model).with_options(max_retries=1)
    assert whole(client, model="gpt-test", messages=[PROMPT]).choices[0].message.content == "At last."
    assert len(model.requests()) == 2


def test_a_cut_stream_is_noticed(serve):
    model = serve({**say("A text of many pieces."), "chunk": 2, "faults": [{"cut_after_events": 5}]})
    with pytest.raises(openai.APIConnectionError):
        request: Any = {"model": "gpt-test", "messages": [PROMPT], "stream": True}
        with client_of(model).chat.completions.create(**request) as stream:
            assert [chunk.choices[0].finish_reason for chunk in stream] == "never read to its end"
    assert len(model.requests()) == 1, "it was the answer that broke off"


@pytest.mark.parametrize(
    ("quirk", "request_has"),
    [
        ({"no_streaming": True}, {"stream": True}),
        ({"no_tools": True}, {"tools": [TOOL]}),
        ({"no_system_role": True}, {"messages": [{"role": "system", "content": "You."}, PROMPT]}),
        ({"refused_fields": ["max_tokens"]}, {"max_tokens": 100}),
        ({"refused_fields": ["stream_options"]}, {"stream": True, "stream_options": {"include_usage": True}}),
    ],
)
def test_quirks_refuse_what_the_api_takes(serve, quirk, request_has):
    request: Any = {"model": "gpt-test", "messages": [PROMPT], **request_has}
    client_of(serve(say("Yes."))).chat.completions.create(**request)
    with pytest.raises(openai.BadRequestError) as refused:
        client_of(serve(say("Yes."), **quirk)).chat.completions.create(**request)
    assert refused.value.code in ("unsupported_parameter", "unsupported_value")


def test_long_requests_and_missing_keys_are_refused(serve):
    request: Any = {"model": "gpt-test", "messages": [PROMPT]}
    with pytest.raises(openai.APIStatusError) as refused:
        whole(client_of(serve(say("Yes."), max_request_bytes=50)), **request)
    assert refused.value.status_code == 413
    keyless = openai.Omit()
    with pytest.raises(openai.AuthenticationError):
        whole(client_of(serve(say("Yes."))), **request, extra_headers={"Authorization": keyless})
    client = client_of(serve(say("Yes."), keyless=True))
    assert whole(client, **request, extra_headers={"Authorization": keyless}).choices[0].message.content == "Yes."
