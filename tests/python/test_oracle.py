"""The official SDK takes the scripted model for the real API.

Rule: the scripted model is what all other tests believe, so an independent client judges it.
"""

import anthropic
import pytest

from harness import LIMIT, Model, call, say

TOOL = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
}
PROMPT = {"role": "user", "content": "Look at it."}
USAGE = {"input_tokens": 1200, "output_tokens": 34, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 50}


def whole(client: anthropic.Anthropic, **request) -> anthropic.types.Message:
    return client.messages.create(**request)


def streamed(client: anthropic.Anthropic, **request) -> anthropic.types.Message:
    with client.messages.stream(**request) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


@pytest.fixture(params=[whole, streamed], ids=["whole", "streamed"])
def ask(request):
    """A function that asks a model, once with a whole answer and once with a stream."""

    def ask(model: Model, *messages: dict) -> anthropic.types.Message:
        client = anthropic.Anthropic(base_url=model.base_url, api_key="test-key", max_retries=0, timeout=LIMIT)
        return request.param(
            client, model="claude-test", max_tokens=1000, messages=list(messages) or [PROMPT], tools=[TOOL]
        )

    return ask


def test_text_and_usage(serve, ask):
    answer = ask(serve({**say("It says 🙂 häh?"), "usage": USAGE, "chunk": 1}))
    assert [block.text for block in answer.content] == ["It says 🙂 häh?"]
    assert (answer.type, answer.role, answer.model) == ("message", "assistant", "claude-test")
    assert (answer.stop_reason, answer.stop_sequence) == ("end_turn", None)
    assert {name: getattr(answer.usage, name) for name in USAGE} == USAGE


def test_thinking_with_its_signature(serve, ask):
    thinking = {"type": "thinking", "thinking": "Let me see…", "signature": "c2lnbmVk"}
    sealed = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    answer = ask(serve({"content": [thinking, sealed, {"type": "text", "text": "Yes."}]}))
    assert [block.model_dump(exclude_none=True) for block in answer.content[:2]] == [thinking, sealed]
    assert answer.content[2].text == "Yes."


def test_tool_calls_and_the_history_they_make(serve, ask):
    path = 'C:\\Temp\\"quoted" ☃.txt'
    model = serve(
        {"content": [call("Read", file_path=path)["content"][0], call("Read", file_path="b")["content"][0]]},
        say("Done."),
    )
    answer = ask(model)
    assert answer.stop_reason == "tool_use"
    assert [block.name for block in answer.content] == ["Read", "Read"]
    assert [block.input for block in answer.content] == [{"file_path": path}, {"file_path": "b"}]
    assert len({block.id for block in answer.content}) == 2

    said = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]}
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "text"} for block in answer.content]
    assert ask(model, PROMPT, said, {"role": "user", "content": results}).content[0].text == "Done."

    with pytest.raises(anthropic.BadRequestError) as refused:
        ask(model, PROMPT, said, {"role": "user", "content": results[:1]})
    assert refused.value.body["error"]["type"] == "invalid_request_error"


def test_a_stop_for_length(serve, ask):
    assert ask(serve({**say("It was"), "stop_reason": "max_tokens"})).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, anthropic.RateLimitError), (529, anthropic.APIStatusError), (401, anthropic.AuthenticationError)],
)
def test_errors(serve, ask, status, error):
    model = serve({**say("At last."), "faults": [{"status": status, "headers": {"retry-after": "7"}}]})
    with pytest.raises(error) as refused:
        ask(model)
    assert refused.value.status_code == status
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.body["type"] == "error" and refused.value.body["error"]["message"]
    assert ask(model).content[0].text == "At last."


def test_a_cut_stream_is_noticed(serve):
    model = serve({**say("A text of many pieces."), "chunk": 2, "faults": [{"cut_after_events": 5}]})
    client = anthropic.Anthropic(base_url=model.base_url, api_key="test-key", max_retries=0, timeout=LIMIT)
    with pytest.raises(Exception, match="(?i)peer closed|incomplete|disconnect"):
        streamed(client, model="claude-test", max_tokens=1000, messages=[PROMPT])


def test_the_events_come_in_the_order_of_the_real_api(serve):
    model = serve({**say("Hello."), "chunk": 3})
    client = anthropic.Anthropic(base_url=model.base_url, api_key="test-key", max_retries=0, timeout=LIMIT)
    with client.messages.create(model="claude-test", max_tokens=1000, messages=[PROMPT], stream=True) as stream:
        kinds = [event.type for event in stream]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
