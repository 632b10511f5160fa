"""`kode-ls acp` behind the Python SDK of the Agent Client Protocol, whose models validate every message.

Rule: a message that the SDK's models refuse is an error in its log, and every test fails for one; what the client shows comes
from the SDK's own objects.
"""

import asyncio
import logging
import os
from contextlib import asynccontextmanager
from typing import Any

import acp
import pytest
from acp import schema

from harness import LIMIT, call, say


class Panel:
    """A client with files, permissions and forms."""

    def __init__(self):
        self.updates: list[Any] = []
        self.asked: list[tuple[schema.ToolCallUpdate, list[schema.PermissionOption]]] = []
        self.answer = "allow_once"
        self.reads: list[str] = []
        self.arrived = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.arrived.set()

    async def request_permission(self, session_id, tool_call, options, **_: Any) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.arrived.set()
        if self.answer == "wait":
            await asyncio.Event().wait()
        option = next(option for option in options if option.kind == self.answer)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id, path, line=None, limit=None, **_: Any) -> schema.ReadTextFileResponse:
        self.reads.append(path)
        with open(path, encoding="utf-8") as file:
            return schema.ReadTextFileResponse(content=file.read())

    async def write_text_file(self, session_id, path, content, **_: Any) -> schema.WriteTextFileResponse:
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return schema.WriteTextFileResponse()

    def on_connect(self, conn: Any) -> None:
        """The connection is used by the tests directly."""

    def text(self) -> str:
        """The text of the agent."""
        chunks = [update for update in self.updates if isinstance(update, schema.AgentMessageChunk)]
        return "".join(chunk.content.text for chunk in chunks)

    async def until(self, find: Any) -> Any:
        """Waits until something is found in what has arrived."""
        async with asyncio.timeout(LIMIT):
            while not (found := find()):
                self.arrived.clear()
                await self.arrived.wait()
            return found


@pytest.fixture(autouse=True)
def no_message_is_refused(caplog):
    """Fails the test for every message that the SDK could not validate or handle."""
    caplog.set_level(logging.WARNING)
    yield
    errors = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    # The SDK does not know this notification of the specification, which every side is free to ignore.
    assert [error for error in errors if "$/cancel_request" not in error] == []


@pytest.fixture
def agent(kode_ls, project, tmp_path):
    """A function that starts an agent for a model and does the handshake."""

    @asynccontextmanager
    async def agent(model):
        environment = {
            "PATH": os.environ["PATH"],
            "KODE_LS_HOME": str(tmp_path / "home"),
            "ANTHROPIC_BASE_URL": model.base_url,
            "ANTHROPIC_API_KEY": "test-key",
        }
        panel = Panel()
        async with acp.spawn_agent_process(panel, kode_ls, "acp", env=environment, cwd=project) as (connection, process):
            capabilities = schema.ClientCapabilities(
                fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
            )
            told = await connection.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=capabilities,
                client_info=schema.Implementation(name="python-sdk", version="1"),
            )
            yield panel, connection, told
        assert process.returncode == 0

    return agent


async def prompt(connection, session: str, text: str) -> schema.PromptResponse:
    return await asyncio.wait_for(connection.prompt(session_id=session, prompt=[acp.text_block(text)]), LIMIT)


async def test_a_handshake_names_what_the_agent_can(agent, serve):
    async with agent(serve(say("Hello."))) as (_, _, told):
        assert told.protocol_version == acp.PROTOCOL_VERSION
        assert told.agent_info.name == "kode-ls"
        assert told.agent_capabilities.load_session
        assert told.agent_capabilities.prompt_capabilities.image


async def test_an_allowed_edit_is_written_by_the_client(agent, serve, project):
    path = project / "a.txt"
    path.write_text("one\ntwo\n", "utf-8")
    model = serve(
        call("Read", file_path=str(path)), call("Edit", file_path=str(path), old_string="two", new_string="2"), say("Done.")
    )
    async with agent(model) as (panel, connection, _):
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        ended = await prompt(connection, session, "edit")
        assert (ended.stop_reason, panel.text()) == ("end_turn", "Done.")
        [(asked, options)] = panel.asked
        [diff] = [content for content in asked.content if content.type == "diff"]
        assert (diff.path, diff.old_text, diff.new_text) == (str(path), "one\ntwo\n", "one\n2\n")
        assert {"allow_once", "reject_once"} <= {option.kind for option in options}
        assert path.read_text("utf-8") == "one\n2\n"
        assert str(path) in panel.reads
        starts = [update for update in panel.updates if isinstance(update, schema.ToolCallStart)]
        assert [start.kind for start in starts] == ["read", "edit"]


async def test_a_refused_command_does_not_run(agent, serve, project):
    model = serve(call("Bash", command="touch made"), say("Then not."))
    async with agent(model) as (panel, connection, _):
        panel.answer = "reject_once"
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        ended = await prompt(connection, session, "run")
        assert ended.stop_reason in ("end_turn", "refusal")
        assert len(panel.asked) == 1 and not (project / "made").exists()


async def test_a_cancelled_turn_ends_as_cancelled(agent, serve, project):
    model = serve(call("Bash", command="touch made"), say("Never."))
    async with agent(model) as (panel, connection, _):
        panel.answer = "wait"
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        turn = asyncio.create_task(prompt(connection, session, "run"))
        await panel.until(lambda: panel.asked)
        await connection.cancel(session_id=session)
        assert (await asyncio.wait_for(turn, LIMIT)).stop_reason == "cancelled"
        assert not (project / "made").exists()


async def test_modes_and_options_are_set_and_reported(agent, serve, project):
    async with agent(serve(say("Hello."))) as (panel, connection, _):
        begun = await connection.new_session(cwd=str(project), mcp_servers=[])
        modes = {mode.id for mode in begun.modes.available_modes}
        assert {"default", "acceptEdits", "plan"} <= modes
        await connection.set_session_mode(session_id=begun.session_id, mode_id="plan")
        option = begun.config_options[0]
        values = [choice.value for choice in option.options if hasattr(choice, "value")]
        answer = await connection.set_config_option(
            config_id=option.id, session_id=begun.session_id, value=values[-1]
        )
        assert any(one.id == option.id for one in answer.config_options)


async def test_a_session_is_listed_and_replayed_by_another_process(agent, serve, project):
    model = serve(say("Remember this."))
    async with agent(model) as (panel, connection, _):
        session = (await connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        await prompt(connection, session, "hello there")
    async with agent(model) as (panel, connection, _):
        listed = await connection.list_sessions(cwd=str(project))
        assert [one.session_id for one in listed.sessions] == [session]
        await connection.load_session(cwd=str(project), session_id=session, mcp_servers=[])
        said = [update for update in panel.updates if isinstance(update, schema.UserMessageChunk)]
        assert (said[0].content.text, panel.text()) == ("hello there", "Remember this.")
