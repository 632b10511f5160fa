"""AWS' own library judges signatures and frames: it talks to the scripted Bedrock, and signs again what kode-ls has sent.

Rule: what the other tests believe of AWS' protocols is believed because botocore agrees.
"""

import json
import subprocess
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from harness import LIMIT, Model, call, say

KEY_ID, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
MODEL_ID = "us.anthropic.claude-sonnet-5-v1:0"
BODY = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Look at it."}],
}


def client(model: Model, secret: str = SECRET, token: str | None = None):
    session = botocore.session.Session()
    return session.create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=model.base_url,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"max_attempts": 0}, read_timeout=LIMIT),
    )


def streamed(answer) -> list[dict]:
    return [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]


@pytest.mark.parametrize("token", [None, "session-token"])
def test_the_scripted_bedrock_takes_signatures_and_streams_frames(serve, token):
    model = serve({**say("It says 🙂 häh?"), "chunk": 3}, call("Read", file_path="/a"))
    bedrock = client(model, token=token)
    events = streamed(bedrock.invoke_model_with_response_stream(modelId=MODEL_ID, body=json.dumps(BODY)))
    text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
    assert text == "It says 🙂 häh?"
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]


def test_a_whole_answer(serve):
    answer = client(serve(say("Yes."))).invoke_model(modelId=MODEL_ID, body=json.dumps(BODY))
    assert json.load(answer["body"])["content"] == [{"type": "text", "text": "Yes."}]


def test_a_wrong_key_is_refused(serve):
    with pytest.raises(ClientError) as refused:
        client(serve(say("Never.")), secret="wrong").invoke_model(modelId=MODEL_ID, body=json.dumps(BODY))
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


class Recorder(ThreadingHTTPServer):
    """A server that keeps requests and answers each with an error that is not tried again."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(400)
        self.end_headers()
        self.wfile.write(b'{"message": "recorded"}')

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("token", [None, "session/token+="])
@pytest.mark.parametrize("model", [MODEL_ID, "arn:aws:bedrock:us-east-1:123:inference-profile/us.anthropic.x-v1:0", "plain"])
def test_botocore_makes_the_same_signatures(kode_ls, tmp_path: Path, project: Path, model, token):
    recorder = Recorder()
    settings = tmp_path / "home" / ".kode"
    settings.mkdir(parents=True)
    profile = {"provider": "bedrock", "model": model, "region": "eu-central-1", "baseUrl": recorder.url}
    (settings / "settings.json").write_text(json.dumps({"modelProfiles": {"main": profile}}), "utf-8")
    environment = {
        "HOME": str(tmp_path / "home"),
        "KODE_LS_HOME": str(tmp_path / "state"),
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        **({"AWS_SESSION_TOKEN": token} if token else {}),
    }
    subprocess.run(
        [kode_ls, "run", "Hello, häh?"], cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT
    )
    recorder.shutdown()
    path, headers, body = recorder.requests[0]
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    kept = {name: headers[name] for name in signed if name not in ("host", "x-amz-date", "x-amz-security-token")}
    request = botocore.awsrequest.AWSRequest("POST", recorder.url + path, headers=kept, data=body)
    request.context["client_config"] = None
    at = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    credentials = botocore.credentials.Credentials(KEY_ID, SECRET, token)
    with mock.patch("botocore.auth.get_current_datetime", return_value=at.replace(tzinfo=None)):
        botocore.auth.SigV4Auth(credentials, "bedrock", "eu-central-1").add_auth(request)
    assert request.headers["Authorization"] == headers["authorization"]
    assert headers.get("x-amz-security-token") == token
    assert urlsplit(path).path.startswith("/model/")
